/* Buttons, legend, path and theme: what shows the state of the page and changes it. Called by main.js. */

function colorChoices() {
        const several = { zone: app.profile.zones, thread: app.profile.threads };

        return app.profile.base
                ? [['change', 'Change', 'red: more than before, blue: less']]
                : Object.entries(colorModes(app.profile))
                          .filter(([name]) => !several[name] || several[name].length > 1)
                          .map(([name, m]) => [name, m.label, 'colour by ' + m.help + ' (c)']);
}

/* Rows of buttons, each for a member of the state: its values, labels, titles. */
const PICKS = {
        direction: [
                ['icicle', 'Icicle', 'root at the top (f)'],
                ['flame', 'Flame', 'root at the bottom (f)'],
        ],
        tree: [
                ['calls', 'Calls', 'callers, then what they called (i)'],
                ['inverse', 'Inverse', 'what ran, then its callers (i)'],
        ],
        unit: [
                ['percent', '%', 'shares (u)'],
                ['ticks', 'ticks', 'ticks (u)'],
                ['time', 'time', 'time that the ticks stand for (u)'],
        ],
        key: Object.entries(KEYS).map(([name, k]) => [name, k.label]),
        side: [
                ['source', 'Source'],
                ['calls', 'Callers & callees'],
                ['jit', 'JIT', 'what was compiled, what not and why; the compiled code (j)'],
        ],
        width: [
                ['after', 'After', 'widths of the later recording'],
                ['before', 'Before', 'widths of the earlier one'],
        ],
};

function showControls() {
        const { state, profile } = app;

        for (const [name, items] of Object.entries(PICKS))
                segmented('pick-' + name, items, state[name], value => app.set({ [name]: value }));
        choice('pick-color', colorChoices(), state.color, value => app.set({ color: value }));
        $('pick-color').hidden = !!profile.base;
        $('pick-width').hidden = !profile.base;
        for (const id of ['pick-zone', 'pick-thread', 'pick-label']) showChoice($(id));
}

/* The states with their shares: a click shows one alone. Below, those of the colouring, when they are others. */
function showSelection() {
        const { profile, aggregate, state } = app,
                all = profile.header.ticks,
                sums = aggregate.sumBy('state', profile.states.length);
        const chip = (hue, label, share, pressed, act) =>
                el(
                        'button',
                        {
                                type: 'button',
                                class: 'chip',
                                disabled: !act,
                                'aria-pressed': String(pressed),
                                onclick: act || undefined,
                        },
                        el('i', { style: { background: strong(hue) } }),
                        el('span', {}, cut(label, 60)),
                        share === null ? null : el('b', {}, share),
                );

        $('time-text').textContent = app.timeline.text();
        $('selected-ticks').textContent =
                ticksText(aggregate.ticks) +
                (aggregate.ticks === all ? '' : ' \u00b7 ' + percent(all ? aggregate.ticks / all : 0));
        $('time-clear').hidden = state.from === 0 && state.to === profile.time.buckets;
        $('states').replaceChildren(
                ...profile.states
                        .map((s, i) => ({ s, i }))
                        .filter(({ i }) => app.everByState[i] > 0)
                        .map(({ s, i }) =>
                                chip(
                                        STATE_HUES[s.name] || [0, 0],
                                        s.label,
                                        percent(aggregate.ticks ? sums[i] / aggregate.ticks : 0),
                                        state.filter.state === i,
                                        () => toggle('state', i),
                                ),
                        ),
        );
        const legend = profile.base || state.color === 'kind' ? [] : app.mode.list;

        $('legend').replaceChildren(
                ...(profile.base ? [el('span', { class: 'scale' }, 'less ', el('i'), ' more')] : []),
                ...legend.map(c =>
                        chip(
                                c.hue,
                                c.label,
                                null,
                                app.mode.filter && state.filter[app.mode.filter] === c.value,
                                c.value < 0
                                        ? null
                                        : app.mode.filter
                                          ? () => toggle(app.mode.filter, c.value)
                                          : () => app.search(c.label === state.search ? '' : c.label),
                        ),
                ),
        );
        $('found').textContent = app.match
                ? 'found in ' + percent(aggregate.ticks ? app.matchedTicks() / aggregate.ticks : 0)
                : '';
}

function toggle(column, value) {
        app.set({ filter: { ...app.state.filter, [column]: app.state.filter[column] === value ? -1 : value } });
}

/* The path that the flame graph is zoomed to. */
function showZoom() {
        const { zoom } = app.state,
                name = f => cut(app.profile.functions[f].name, 60);
        const first = Math.max(0, zoom.length - 3);

        $('crumbs').replaceChildren(
                el('button', { type: 'button', disabled: !zoom.length, onclick: () => app.zoom([]) }, 'all'),
                ...(first ? [el('span', {}, '\u2026')] : []),
                ...zoom.slice(first).map((f, i) =>
                        el(
                                'button',
                                {
                                        type: 'button',
                                        disabled: first + i === zoom.length - 1,
                                        onclick: () => app.zoom(zoom.slice(0, first + i + 1)),
                                },
                                name(f),
                        ),
                ),
        );
}

function applyTheme(name) {
        isDark = name === 'dark' || (name === 'auto' && matchMedia('(prefers-color-scheme: dark)').matches);
        document.documentElement.dataset.theme = isDark ? 'dark' : 'light';
        if (app.aggregate) {
                app.source.setData();
                app.refresh();
        }
}

function storeTheme(name) {
        try {
                localStorage.setItem('luasample-theme', name);
        } catch {
                /* a file may have no storage: then the choice lasts as long as the page */
        }
}

function storedTheme() {
        try {
                return localStorage.getItem('luasample-theme') || 'auto';
        } catch {
                return 'auto';
        }
}

/* A list of what the samples can be filtered by, where there is more than one. columns: each with its column and texts, and
 * a key where there are several. */
function fillChoices(id, all, columns) {
        const box = $(id),
                options = (column, at) =>
                        column.texts.slice(0, 1000).map((t, i) => el('option', { value: at + ' ' + i }, cut(t, 80)));

        box.columns = columns.filter(c => c.texts.length > 1);
        box.parentElement.hidden = !box.columns.length;
        box.replaceChildren(
                el('option', { value: '' }, all),
                ...box.columns.flatMap((c, at) =>
                        c.key === undefined
                                ? options(c, at)
                                : [el('optgroup', { label: cut(c.key, 80) }, ...options(c, at))],
                ),
        );
        box.addEventListener('change', () => {
                const filter = { ...app.state.filter },
                        [at, value] = box.value.split(' ').map(Number);

                for (const c of box.columns) filter[c.column] = -1;
                if (box.value) filter[box.columns[at].column] = value;
                app.set({ filter });
        });
}

/* The legend filters too: the list shows it. */
function showChoice(box) {
        const at = box.columns.findIndex(c => app.state.filter[c.column] >= 0);

        box.value = at < 0 ? '' : at + ' ' + app.state.filter[box.columns[at].column];
}

/* A bar between two panels: dragging it, or its arrow keys, gives one of them more room. */
function splitter(id, property, along) {
        const bar = $(id),
                root = document.documentElement;
        const move = at => {
                const box = bar.parentElement.getBoundingClientRect();
                const share =
                        along === 'y' ? 100 - ((at - box.top) / box.height) * 100 : ((at - box.left) / box.width) * 100;

                root.style.setProperty(property, Math.max(15, Math.min(80, share)).toFixed(1) + '%');
        };

        bar.addEventListener('pointerdown', e => {
                bar.setPointerCapture(e.pointerId);
                bar.dataset.drag = '1';
        });
        bar.addEventListener('pointermove', e => {
                if (bar.dataset.drag) move(along === 'y' ? e.clientY : e.clientX);
        });
        bar.addEventListener('pointerup', () => {
                delete bar.dataset.drag;
        });
        bar.addEventListener('keydown', e => {
                const by = { ArrowUp: -20, ArrowLeft: -20, ArrowDown: 20, ArrowRight: 20 }[e.key],
                        box = bar.getBoundingClientRect();

                if (by) {
                        e.preventDefault();
                        e.stopPropagation();
                        move((along === 'y' ? box.top : box.left) + by);
                }
        });
}
