/* The flat table: functions, lines or modules by their share. Only the rows that are seen are in the document. */

const ROW_HEIGHT = 26;

const COLUMNS = [
        { name: 'self', label: 'Self', title: 'ticks during which it ran itself', value: r => r.self },
        {
                name: 'margin',
                label: '\u00b195 %',
                title: 'the true share lies within this with a probability of 95 %',
                value: r => r.self,
        },
        {
                name: 'total',
                label: 'Total',
                title: 'ticks during which it was on the stack; recursion counts once',
                value: r => r.total,
        },
        { name: 'change', label: 'Change', title: 'of its own share, in points', value: r => r.change, base: true },
        { name: 'name', label: 'Name', title: 'name', value: r => r.name, text: true },
        { name: 'place', label: 'Defined', title: 'where it is defined', value: r => r.place, text: true },
];

class Table {
        constructor() {
                this.scroller = $('table-scroll');
                this.body = $('table-body');
                this.rows = [];
                this.draw = soon(() => this.paint());
                this.scroller.addEventListener('scroll', () => this.draw());
                this.scroller.addEventListener('keydown', e => this.onKey(e));
                new ResizeObserver(() => this.draw()).observe(this.scroller);
        }

        columns() {
                return COLUMNS.filter(c => !c.base || app.profile.base);
        }

        setData() {
                const a = app.aggregate,
                        key = app.profile.key(app.state.key);
                const share = (part, whole) => (whole ? part / whole : 0);

                this.all = a.rows(app.state.key).map(r => {
                        const func = key.func(r.group);

                        return {
                                ...r,
                                func,
                                name: key.text(r.group),
                                line: key.line ? key.line(r.group) : 0,
                                place:
                                        func === NO_GROUP
                                                ? ''
                                                : key.line
                                                  ? app.profile.functions[func].name
                                                  : app.profile.place(func),
                                change: a.base ? share(r.self, a.ticks) - share(r.baseSelf, a.base.ticks) : 0,
                        };
                });
                this.arrange();
        }

        /* Search and order. */
        arrange() {
                const { column, down } = app.state.sort,
                        { value, text } = COLUMNS.find(c => c.name === column);
                const match = app.match,
                        sign = down ? -1 : 1;

                this.rows = match
                        ? this.all.filter(r => match(r.name) || (r.func !== NO_GROUP && app.matches[r.func]))
                        : this.all.slice();
                this.rows.sort((a, b) => {
                        const x = value(a),
                                y = value(b);

                        return (
                                (text ? (x < y ? -1 : x > y ? 1 : 0) : x - y) * sign ||
                                b.self - a.self ||
                                b.total - a.total ||
                                a.group - b.group
                        );
                });
                this.head();
                this.scroller.scrollTop = 0;
                $('table-space').style.height = this.rows.length * ROW_HEIGHT + 'px';
                $('table-empty').hidden = this.rows.length > 0;
                this.draw();
        }

        head() {
                const { column, down } = app.state.sort;

                $('table-panel').classList.toggle('has-change', !!app.profile.base);
                $('table-head').replaceChildren(
                        ...this.columns().map(c =>
                                el(
                                        'div',
                                        {
                                                role: 'columnheader',
                                                class: 'c-' + c.name,
                                                title: c.title,
                                                'aria-sort':
                                                        c.name === column ? (down ? 'descending' : 'ascending') : 'none',
                                        },
                                        el(
                                                'button',
                                                { type: 'button', 'data-column': c.name, onclick: () => this.sortBy(c) },
                                                this.label(c),
                                        ),
                                ),
                        ),
                );
        }

        label(c) {
                return c.name === 'name'
                        ? KEYS[app.state.key].label
                        : c.name === 'place' && app.state.key === 'line'
                          ? 'Function'
                          : c.label;
        }

        sortBy(c) {
                const { column, down } = app.state.sort;

                app.state.sort = { column: c.name, down: c.name === column ? !down : !c.text };
                this.arrange();
        }

        paint() {
                const first = Math.max(0, Math.floor(this.scroller.scrollTop / ROW_HEIGHT) - 4);
                const last = Math.min(this.rows.length, first + Math.ceil(this.scroller.clientHeight / ROW_HEIGHT) + 8);

                this.body.style.transform = 'translateY(' + first * ROW_HEIGHT + 'px)';
                this.body.replaceChildren(...this.rows.slice(first, last).map((r, i) => this.rowElement(r, first + i)));
                this.scroller.setAttribute('aria-rowcount', this.rows.length);
        }

        rowElement(r, at) {
                const a = app.aggregate,
                        selected =
                                r.func !== NO_GROUP &&
                                r.func === app.state.selected &&
                                (!r.line || r.line === app.state.line);
                const bar = (ticks, kind) =>
                        el(
                                'div',
                                { class: 'num ' + kind },
                                el('i', { style: { width: (a.ticks ? (ticks / a.ticks) * 100 : 0).toFixed(2) + '%' } }),
                                el('span', {}, amount(ticks, a.ticks)),
                        );
                const cells = {
                        self: () => bar(r.self, 'self'),
                        total: () => bar(r.total, 'total'),
                        margin: () =>
                                el(
                                        'div',
                                        { class: 'num dim' },
                                        (a.margin(a.ticks ? r.self / a.ticks : 0) * 100).toFixed(1),
                                ),
                        change: () =>
                                el(
                                        'div',
                                        {
                                                class: 'num',
                                                style: {
                                                        color:
                                                                r.change > 0
                                                                        ? theme('more')
                                                                        : r.change < 0
                                                                          ? theme('less')
                                                                          : '',
                                                },
                                        },
                                        (r.change < 0 ? '\u2212' : '+') + Math.abs(r.change * 100).toFixed(2),
                                ),
                        name: () => el('div', { class: 'name', title: cut(r.name, 400) }, cut(r.name, 400)),
                        place: () => el('div', { class: 'place', title: cut(r.place, 400) }, cut(r.place, 200)),
                };

                return el(
                        'div',
                        {
                                role: 'row',
                                class: selected ? 'tr selected' : 'tr',
                                'data-row': at,
                                'aria-selected': String(selected),
                                onclick: () => this.choose(r),
                        },
                        ...this.columns().map(c => {
                                const cell = cells[c.name]();

                                cell.classList.add('c-' + c.name);
                                cell.setAttribute('role', 'cell');
                                return cell;
                        }),
                );
        }

        choose(r) {
                if (r.func !== NO_GROUP) app.select(r.func, r.line);
        }

        onKey(e) {
                const by = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -1e9, End: 1e9 }[e.key];

                if (!by || !this.rows.length) return;
                e.preventDefault();
                e.stopPropagation();
                const now = this.rows.findIndex(
                        r => r.func === app.state.selected && (!r.line || r.line === app.state.line),
                );
                const to = Math.max(0, Math.min(this.rows.length - 1, now + by));

                this.choose(this.rows[to]);
                if (to * ROW_HEIGHT < this.scroller.scrollTop) this.scroller.scrollTop = to * ROW_HEIGHT;
                else if ((to + 1) * ROW_HEIGHT > this.scroller.scrollTop + this.scroller.clientHeight - 30)
                        this.scroller.scrollTop = (to + 1) * ROW_HEIGHT - this.scroller.clientHeight + 30;
        }
}
