/* Buttons, legend, path and theme: what shows the state of the page and changes it. Called by main.js. */

function colorChoices() {
        return app.profile.base
                ? [['change', 'Change', 'red: more than before, blue: less']]
                : Object.entries(COLOR_MODES)
                          .filter(([name]) => name === 'kind' || name === 'module' || app.profile[name + 's'].length > 1)
                          .map(([name, m]) => [name, m.label, 'colour by ' + m.help + ' (c)']);
}

function showControls() {
        const { state } = app,
                choose = name => value => app.set({ [name]: value });

        segmented(
                'pick-direction',
                [
                        ['icicle', 'Icicle', 'root at the top (f)'],
                        ['flame', 'Flame', 'root at the bottom (f)'],
                ],
                state.direction,
                choose('direction'),
        );
        segmented(
                'pick-tree',
                [
                        ['calls', 'Calls', 'callers, then what they called (i)'],
                        ['inverse', 'Inverse', 'what ran, then its callers (i)'],
                ],
                state.tree,
                choose('tree'),
        );
        segmented(
                'pick-color',
                colorChoices(),
                app.profile.base ? 'change' : state.color,
                app.profile.base ? () => {} : choose('color'),
        );
        segmented(
                'pick-unit',
                [
                        ['percent', '%', 'shares (u)'],
                        ['ticks', 'ticks', 'ticks (u)'],
                        ['time', 'time', 'CPU time (u)'],
                ],
                state.unit,
                choose('unit'),
        );
        segmented(
                'pick-key',
                Object.entries(KEYS).map(([name, k]) => [name, k.label]),
                state.key,
                choose('key'),
        );
        segmented(
                'pick-side',
                [
                        ['source', 'Source'],
                        ['calls', 'Callers & callees'],
                ],
                state.side,
                choose('side'),
        );
        if (app.profile.base)
                segmented(
                        'pick-width',
                        [
                                ['after', 'After', 'widths of the later recording'],
                                ['before', 'Before', 'widths of the earlier one'],
                        ],
                        state.width,
                        choose('width'),
                );
        $('pick-color').hidden = !!app.profile.base;
        $('pick-width').hidden = !app.profile.base;
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

/* Zones and threads to choose from, where there is more than one. */
function fillChoices(id, column, texts) {
        const box = $(id);

        box.parentElement.hidden = texts.length < 2;
        box.replaceChildren(
                el('option', { value: '-1' }, 'all ' + column + 's'),
                ...texts.slice(0, 1000).map((t, i) => el('option', { value: String(i) }, cut(t, 80))),
        );
        box.addEventListener('change', () => app.set({ filter: { ...app.state.filter, [column]: Number(box.value) } }));
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
