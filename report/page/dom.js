/* Elements and numbers. Names come from the profiled program: they are set as text, never as HTML. */

const $ = id => document.getElementById(id);

function el(tag, props, ...children) {
        const e = document.createElement(tag);

        for (const [name, value] of Object.entries(props || {})) {
                if (name === 'class') e.className = value;
                else if (name.startsWith('on')) e.addEventListener(name.slice(2), value);
                else if (name === 'style')
                        Object.entries(value).forEach(([property, v]) => e.style.setProperty(property, v));
                else if (value !== false && value !== undefined) e.setAttribute(name, value === true ? '' : value);
        }
        e.append(...children.filter(c => c !== null && c !== undefined));
        return e;
}

/* Long names are cut where they are shown: laying out 64 KiB of text takes longer than anybody reads. */
function cut(text, n) {
        return text.length > n ? text.slice(0, n) + '\u2026' : text;
}

function percent(share) {
        const v = share * 100;

        return !(v > 0)
                ? '0 %'
                : v >= 99.95
                  ? v.toFixed(0) + ' %'
                  : v >= 10
                    ? v.toFixed(1) + ' %'
                    : v >= 0.01
                      ? v.toFixed(2) + ' %'
                      : '<0.01 %';
}

function count(n) {
        return Math.round(n)
                .toString()
                .replace(/\B(?=(\d{3})+(?!\d))/g, '\u202f');
}

function ticksText(n) {
        return count(n) + (n === 1 ? ' tick' : ' ticks');
}

function duration(ns) {
        const units = [
                [6e10, ' min'],
                [1e9, ' s'],
                [1e6, ' ms'],
                [1e3, ' \u00b5s'],
        ];

        for (const [size, unit] of units)
                if (ns >= size && !(size === 6e10 && ns < 6e11)) {
                        const v = ns / size;

                        return (v >= 100 ? v.toFixed(0) : v >= 10 ? v.toFixed(1) : v.toFixed(2)) + unit;
                }
        return Math.round(ns) + ' ns';
}

/* Ticks in the unit that the user chose. */
function amount(ticks, whole) {
        if (app.state.unit === 'ticks') return count(ticks);
        if (app.state.unit === 'time') return duration(ticks * app.profile.interval);
        return percent(whole ? ticks / whole : 0);
}

/* A row of buttons of which one is pressed. items: [value, label, title]. */
function segmented(id, items, current, choose) {
        const box = $(id);

        box.replaceChildren(
                ...items.map(([value, label, title]) =>
                        el(
                                'button',
                                {
                                        type: 'button',
                                        title,
                                        'data-value': value,
                                        'aria-pressed': String(value === current),
                                        onclick: () => choose(value),
                                },
                                label,
                        ),
                ),
        );
}

/* The same, as a list where there are many. */
function choice(id, items, current, choose) {
        const box = $(id),
                list = box.querySelector('select');

        if (items.length <= 5) segmented(id, items, current, choose);
        else if (list) list.value = current;
        else {
                const options = items.map(([value, label, title]) =>
                        el('option', { value, title, selected: value === current }, label),
                );

                box.className = 'choice';
                box.replaceChildren(
                        el(
                                'select',
                                { 'aria-label': box.getAttribute('aria-label'), onchange: e => choose(e.target.value) },
                                ...options,
                        ),
                );
        }
}

/* Calls fn once, before the next picture. */
function soon(fn) {
        let asked = false;

        return () => {
                if (asked) return;
                asked = true;
                requestAnimationFrame(() => {
                        asked = false;
                        fn();
                });
        };
}

/* A canvas as large as its element, sharp on any screen. Returns its context, sized in CSS pixels. */
function fitCanvas(canvas, width, height) {
        const ratio = Math.min(window.devicePixelRatio || 1, 3),
                w = Math.round(width * ratio),
                h = Math.round(height * ratio);
        const ctx = canvas.getContext('2d');

        if (canvas.width !== w || canvas.height !== h) {
                canvas.width = w;
                canvas.height = h;
                canvas.style.width = width + 'px';
                canvas.style.height = height + 'px';
        }
        ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
        return ctx;
}

function theme(name) {
        return getComputedStyle(document.documentElement)
                .getPropertyValue('--' + name)
                .trim();
}

/* The box that follows the pointer. */
const tooltip = {
        show(x, y, ...children) {
                const box = $('tooltip');

                box.replaceChildren(...children);
                box.hidden = false;
                const { width, height } = box.getBoundingClientRect();

                box.style.left = Math.max(4, Math.min(x + 14, innerWidth - width - 8)) + 'px';
                box.style.top = Math.max(4, y + 18 + height > innerHeight ? y - height - 10 : y + 18) + 'px';
        },
        hide() {
                $('tooltip').hidden = true;
        },
};

/* Search text to a test of names and places: plain text without case, or /expression/. null = nothing is searched. */
function matcher(text) {
        const m = /^\/(.+)\/(i?)$/.exec(text);

        if (!text) return null;
        if (m) {
                try {
                        const re = new RegExp(m[1], m[2]);

                        return name => re.test(name);
                } catch {
                        return () => false;
                }
        }
        const plain = text.toLowerCase();

        return name => name.toLowerCase().includes(plain);
}
