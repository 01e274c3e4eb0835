/* The state of the page and what follows from it. Panels read app.state, and change it by the calls below. */

const app = {
        profile: null,
        aggregate: null,
        mixes: null,
        mode: null,
        match: null,
        matches: null,
        state: {
                from: 0,
                to: 0 /* selected buckets: from .. to - 1 */,
                filter: { state: -1, zone: -1, thread: -1 },
                tree: 'calls',
                direction: 'icicle',
                color: 'kind',
                width: 'after',
                unit: 'percent',
                theme: 'auto',
                key: 'function',
                sort: { column: 'self', down: true },
                side: 'source',
                search: '',
                selected: NO_GROUP,
                line: 0,
                trace: -1 /* of the compiler's, whose code is shown */,
                reason: -1 /* of the compiler's, that is pointed at */,
                zoom: [] /* functions from the root to the node that is as wide as the panel */,
        },

        set(changes) {
                const data = ['filter'],
                        tree = ['tree', 'width'],
                        { state } = app;
                const changed = Object.keys(changes).filter(k => state[k] !== changes[k]);

                Object.assign(state, changes);
                if (changed.includes('theme')) {
                        applyTheme(state.theme);
                        storeTheme(state.theme);
                }
                if (changed.includes('color')) app.chooseMode();
                if (changed.some(k => tree.includes(k))) state.zoom = [];
                if (changed.some(k => data.includes(k))) app.recount();
                else if (changed.some(k => tree.includes(k))) app.makeTree();
                if (changed.includes('key')) app.table.setData();
                if (changed.includes('direction')) app.flame.turn();
                if (changed.includes('side') || changed.includes('unit')) app.source.setData();
                app.refresh();
        },

        /* All that depends on which samples are selected. */
        recount() {
                const { from, to, filter } = app.state;

                app.aggregate = new Aggregate(app.profile, { from, to, filter });
                app.calls = null;
                app.mixes = app.mode.ofContext ? new Mixes(app.aggregate, app.mode) : null;
                app.makeTree();
                app.timeline.setData();
                app.table.setData();
                app.source.setData();
                app.refresh();
        },

        callTree() {
                app.calls = app.calls || new CallTree(app.aggregate, false);
                return app.calls;
        },

        makeTree() {
                const before = app.profile.base && app.state.width === 'before';

                app.tree =
                        app.state.tree === 'inverse'
                                ? new InverseTree(app.aggregate, before)
                                : new CallTree(app.aggregate, before);
                app.flame.setTree(app.tree);
        },

        chooseMode() {
                app.modes = app.modes || {};
                app.mode = app.modes[app.state.color] =
                        app.modes[app.state.color] || colorModes(app.profile)[app.state.color].make(app.profile);
                if (app.aggregate) app.mixes = app.mode.ofContext ? new Mixes(app.aggregate, app.mode) : null;
        },

        nextColor() {
                const names = colorChoices().map(c => c[0]);

                app.set({ color: names[(names.indexOf(app.state.color) + 1) % names.length] });
        },

        colorOf(tree, node) {
                const func = tree.func[node],
                        f = app.profile.functions[func];

                if (app.profile.base) {
                        const a = app.aggregate,
                                now = a.ticks ? tree.total[node] / a.ticks : 0,
                                was = a.base.ticks ? tree.baseTotal[node] / a.base.ticks : 0;

                        return changeColor((now - was) / Math.max(now, was, 1e-12));
                }
                const mix = app.mode.ofContext ? app.mixes.of(tree, node) : null;
                const category = app.mode.ofFunction ? app.mode.ofFunction(func, mix) : most(mix, -1);

                return soft(
                        f.kind === KIND_PSEUDO || category < 0 ? [0, 0] : app.mode.list[category].hue,
                        shadeOf(f.name),
                );
        },

        /* Whether a function is one that is searched for. */
        isMatch(func) {
                return !app.matches || app.matches[func] === 1;
        },

        search(text) {
                app.state.search = text;
                app.match = matcher(text);
                app.matches = app.match
                        ? Uint8Array.from(app.profile.functions, (f, i) =>
                                  app.match(f.name) || app.match(app.profile.place(i)) ? 1 : 0,
                          )
                        : null;
                if ($('search').value !== text) $('search').value = text;
                app.table.arrange();
                app.refresh();
        },

        /* Ticks with a function that is searched for on the stack. */
        matchedTicks() {
                const tree = app.callTree(),
                        under = new Uint8Array(tree.total.length);
                let sum = 0;

                for (let i = 1; i < under.length; i++) {
                        under[i] = under[tree.parent[i]];
                        if (!under[i] && app.matches[tree.func[i]]) {
                                under[i] = 1;
                                sum += tree.total[i];
                        }
                }
                return sum;
        },

        select(func, line) {
                app.state.selected = func;
                app.state.line = line || 0;
                if (app.state.side === 'jit') app.state.side = 'source';
                app.source.setData();
                app.refresh();
        },

        zoom(path) {
                app.state.zoom = path;
                app.flame.zoomTo(path, true);
                app.refresh();
        },

        zoomToFocus() {
                if (app.flame.focus) app.zoom(pathOf(app.tree, app.flame.focus));
        },

        selectTime(from, to) {
                if (from === app.state.from && to === app.state.to) return;
                app.state.from = from;
                app.state.to = to;
                app.recountSoon();
        },

        escape() {
                const { state } = app;

                if (state.search || document.activeElement === $('search')) {
                        app.search('');
                        document.activeElement.blur();
                } else if (state.zoom.length) {
                        app.zoom([]);
                } else if (state.selected !== NO_GROUP) {
                        app.flame.focus = 0;
                        app.select(NO_GROUP);
                } else {
                        app.selectTime(0, app.profile.time.buckets);
                }
        },

        /* What is cheap to make anew at any change. */
        refresh() {
                showControls();
                showSelection();
                showZoom();
                app.flame.draw();
                app.timeline.draw();
                app.heap.draw();
                app.table.draw();
        },
};

function start() {
        app.profile = new Profile(decode(JSON.parse($('data').textContent)));
        app.state.to = app.profile.time.buckets;
        app.state.theme = storedTheme();
        applyTheme(app.state.theme);
        app.flame = new Flame();
        app.timeline = new Timeline();
        app.table = new Table();
        app.source = new Source();
        app.jit = new Jit();
        app.heap = new Heap();
        app.recountSoon = soon(() => app.recount());
        app.chooseMode();
        showHeader(app.profile);
        showShortcuts();
        fillChoices('pick-zone', 'all zones', [{ column: 'zone', texts: app.profile.zones }]);
        fillChoices('pick-thread', 'all threads', [
                { column: 'thread', texts: app.profile.base ? [] : app.profile.threads },
        ]);
        fillChoices('pick-label', 'all labels', app.profile.labels);
        splitter('split-rows', '--lower', 'y');
        splitter('split-columns', '--left', 'x');
        app.everByState = new Aggregate(app.profile, { from: 0, to: app.state.to }).sumBy(
                'state',
                app.profile.states.length,
        );
        $('nothing').hidden = app.profile.header.ticks > 0;
        $('nothing').textContent = nothingText(app.profile);
        $('search').addEventListener('input', e => app.search(e.target.value));
        $('time-clear').addEventListener('click', () => app.selectTime(0, app.profile.time.buckets));
        $('theme').addEventListener('click', () => app.set({ theme: isDark ? 'light' : 'dark' }));
        $('help-open').addEventListener('click', () => $('help').showModal());
        for (const d of document.querySelectorAll('dialog'))
                d.addEventListener('click', e => {
                        if (e.target === d) d.close();
                });
        matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => applyTheme(app.state.theme));
        document.addEventListener('keydown', onShortcut);
        app.recount();
        /* There is something to see at once: the Lua function that ran most, or, of those that wait in yield, that called. */
        const lua = app.table.rows.filter(r => app.profile.functions[r.func].kind === KIND_LUA),
                first = lua.find(r => r.self) || lua[0];

        if (first) app.select(first.func);
}

start();
/* For the console, and for tests: the data and the state are there to look at. */
globalThis.luasamplePage = app;
