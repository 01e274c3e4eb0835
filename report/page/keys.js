/* Keys: one table, which the help is made from. */

const SHORTCUTS = [
        { keys: ['/'], text: 'search: a part of a name, or /expression/', run: () => $('search').focus() },
        {
                keys: ['Escape'],
                text: 'undo the last of: search, zoom, selected function, selected time',
                run: () => app.escape(),
        },
        {
                keys: ['ArrowUp', 'ArrowDown', 'ArrowLeft', 'ArrowRight'],
                text: 'move in the flame graph',
                run: e =>
                        app.flame.move(
                                { ArrowLeft: -1, ArrowRight: 1 }[e.key] || 0,
                                { ArrowUp: -1, ArrowDown: 1 }[e.key] || 0,
                        ),
        },
        { keys: ['Enter'], text: 'zoom to the box that the arrows are at', run: () => app.zoomToFocus() },
        { keys: ['Backspace'], text: 'zoom out to the caller', run: () => app.zoom(app.state.zoom.slice(0, -1)) },
        { keys: ['0'], text: 'zoom out to all', run: () => app.zoom([]) },
        {
                keys: ['f'],
                text: 'flame (root at the bottom) or icicle (root at the top)',
                run: () => app.set({ direction: app.state.direction === 'flame' ? 'icicle' : 'flame' }),
        },
        {
                keys: ['i'],
                text: 'inverse: functions that ran first, then their callers',
                run: () => app.set({ tree: app.state.tree === 'calls' ? 'inverse' : 'calls' }),
        },
        { keys: ['c'], text: 'next colouring', run: () => app.nextColor() },
        {
                keys: ['u'],
                text: 'shares, ticks or time',
                run: () => app.set({ unit: { percent: 'ticks', ticks: 'time', time: 'percent' }[app.state.unit] }),
        },
        {
                keys: ['j'],
                text: 'what the JIT compiler made of it, or the source',
                run: () => app.set({ side: app.state.side === 'jit' ? 'source' : 'jit', trace: -1, reason: -1 }),
        },
        { keys: ['a'], text: 'all of the time', run: () => app.selectTime(0, app.profile.time.buckets) },
        { keys: ['t'], text: 'light or dark', run: () => app.set({ theme: isDark ? 'light' : 'dark' }) },
        { keys: ['?'], text: 'this help', run: () => $('help').showModal() },
];

function onShortcut(e) {
        const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(e.target.tagName),
                open = document.querySelector('dialog[open]');

        if (e.ctrlKey || e.metaKey || e.altKey || open || (typing && e.key !== 'Escape')) return;
        if (e.target.tagName === 'BUTTON' && e.key === 'Enter') return;
        const shortcut = SHORTCUTS.find(s => s.keys.includes(e.key));

        if (shortcut) {
                e.preventDefault();
                shortcut.run(e);
        }
}

function showShortcuts() {
        const names = {
                ArrowUp: '\u2191',
                ArrowDown: '\u2193',
                ArrowLeft: '\u2190',
                ArrowRight: '\u2192',
                Escape: 'Esc',
                Backspace: '\u232b',
        };

        $('help-body').replaceChildren(
                ...SHORTCUTS.map(s =>
                        el(
                                'tr',
                                {},
                                el('th', {}, ...s.keys.map(k => el('kbd', {}, names[k] || k))),
                                el('td', {}, s.text),
                        ),
                ),
                ...[
                        ['click', 'zoom to a box and show its source; a double click zooms out'],
                        ['Ctrl + wheel', 'zoom the flame graph round the pointer'],
                        ['drag', 'in the timeline: select a part of the time, move it, or move its edges'],
                ].map(([key, text]) => el('tr', {}, el('th', {}, el('kbd', {}, key)), el('td', {}, text))),
        );
}
