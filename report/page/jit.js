/* What LuaJIT's compiler made of the program: the states over time, why time is interpreted, traces, a trace's listing, and
 * the mark of a line of source. The figures of reasons and traces are of the whole recording. */

const JIT_MARKS = [
        null,
        { sign: 'N', name: 'compiled', help: 'mostly run as machine code that LuaJIT made of it' },
        { sign: 'I', name: 'interpreted', help: 'mostly run by the interpreter, an instruction at a time: slower' },
        { sign: 'X', name: 'given up for good', help: 'LuaJIT has tried to compile it too often, and will not try again' },
];
const JIT_BARS = 56, /* pixels */
        JIT_ROWS = 200;

const TRACE_WORDS =
        'A trace is one path through the program, compiled as a whole, calls included. A root trace begins at a hot loop or ' +
        'function. It has exits, for what turns out otherwise than when it was recorded; a side trace begins at an exit that ' +
        'was taken often. A trace goes on to another, to itself (a loop), or ends: stitch = at a call that is not compiled, ' +
        'and a new one begins behind it; return, interpreter = in code that is not compiled.';

class Jit {
        constructor() {
                this.marks = new Map();
                for (const row of app.profile.jit ? app.profile.jit.lines : []) {
                        if (!this.marks.has(row.source)) this.marks.set(row.source, new Map());
                        this.marks.get(row.source).set(row.line, row);
                }
        }

        /* Whether lines of that source have a column for it. */
        has(source) {
                return this.marks.has(source);
        }

        /* A line's mark: a button where there is something behind it. */
        markElement(source, line) {
                const row = this.marks.get(source) && this.marks.get(source).get(line);

                if (!row) return el('span', { class: 'jit-mark' });
                return el(
                        'button',
                        {
                                type: 'button',
                                class: 'jit-mark m' + row.mark,
                                title: cut(this.markText(row), 600),
                                'aria-label': JIT_MARKS[row.mark].name,
                                onclick: () => this.openMark(row),
                        },
                        JIT_MARKS[row.mark].sign,
                );
        }

        markText(row) {
                const { jit } = app.profile,
                        all = row.compiled + row.uncompiled,
                        { name, help } = JIT_MARKS[row.mark],
                        lines = [name + ': ' + help];
                const reason = jit.reasons[row.reason],
                        trace = jit.traces[row.trace];

                if (all) lines.push(percent(row.compiled / all) + ' of its time compiled');
                if (trace) lines.push('most of that in trace ' + trace.name + ': click for its code');
                if (reason) lines.push('not compiled: ' + reason.text + (reason.place ? ', ' + reason.place : ''));
                return lines.join('\n');
        }

        /* What the mark says: the code of a compiled line, the reason of another. */
        openMark(row) {
                app.state.trace = row.mark === 1 ? row.trace : -1;
                app.state.reason = row.mark === 1 ? -1 : row.reason;
                app.state.side = 'jit';
                app.source.setData();
                app.refresh();
        }

        openTrace(trace) {
                app.state.trace = trace;
                app.source.setData();
        }

        show(panel) {
                const { jit } = app.profile;

                this.canvas = null;
                if (!jit) {
                        panel.replaceChildren(
                                el('p', { class: 'empty' }, 'This event has no time: the compiler is shown by CPU time.'),
                        );
                        return;
                }
                panel.replaceChildren(
                        el(
                                'div',
                                { class: 'jit' },
                                ...(jit.traces[app.state.trace] ? this.traceParts(app.state.trace) : this.summaryParts()),
                        ),
                );
                panel.scrollTop = 0;
                const chosen = panel.querySelector('.chosen');

                if (chosen) panel.scrollTop = Math.max(0, chosen.offsetTop - panel.clientHeight / 3);
                this.draw();
        }

        row(ticks, all, ...cells) {
                return el(
                        'div',
                        { class: 'num total' },
                        el('i', { style: { width: (all ? (ticks / all) * 100 : 0).toFixed(2) + '%' } }),
                        el('span', {}, amount(ticks, all)),
                        ...cells,
                );
        }

        summaryParts() {
                return [...this.stateParts(), ...this.reasonParts(), ...this.listParts()];
        }

        stateParts() {
                const { profile, aggregate } = app,
                        sums = aggregate.sumBy('state', profile.states.length);

                this.canvas = el('canvas', { role: 'img', 'aria-label': 'share of each state over time' });
                return [
                        el('h3', {}, 'Where the time goes'),
                        el('div', { class: 'jit-time' }, this.canvas),
                        ...profile.states.map((s, i) =>
                                el(
                                        'div',
                                        { class: 'jit-row', 'data-state': s.name },
                                        this.row(sums[i], aggregate.ticks),
                                        el(
                                                'div',
                                                {},
                                                el('i', {
                                                        class: 'swatch',
                                                        style: { background: strong(STATE_HUES[s.name] || [0, 0]) },
                                                }),
                                                el('b', {}, s.label),
                                                el('span', { class: 'dim' }, ' ' + profile.jit.states[i].meaning),
                                        ),
                                ),
                        ),
                ];
        }

        reasonParts() {
                const { jit } = app.profile,
                        rows = jit.reasons.map((r, i) => ({ ...r, i })).filter(r => r.ticks || r.i === app.state.reason),
                        used = new Set(rows.map(r => r.reason));

                return [
                        el('h3', {}, 'Why ' + percent(jit.ticks ? jit.uncompiled / jit.ticks : 0) + ' runs uncompiled'),
                        el(
                                'p',
                                { class: 'dim' },
                                'Interpreted code, and C that it calls. NYI (not yet implemented): LuaJIT cannot compile it. Of the whole ' +
                                        'recording.' +
                                        (jit.recorded
                                                ? ''
                                                : ' LuaJIT\u2019s attempts to compile were not recorded: there were none, the ' +
                                                  'compiler was off, or the program ran before it was recorded.'),
                        ),
                        ...rows.slice(0, JIT_ROWS).map(r =>
                                el(
                                        'div',
                                        { class: 'jit-row' + (r.i === app.state.reason ? ' chosen' : ''), 'data-reason': r.i },
                                        this.row(r.ticks, jit.ticks),
                                        el(
                                                'div',
                                                {},
                                                el('b', {}, cut(r.text, 300)),
                                                r.place ? el('span', { class: 'dim' }, ' ' + cut(r.place, 300)) : null,
                                        ),
                                ),
                        ),
                        ...jit.meanings
                                .filter((m, i) => used.has(i))
                                .map(m => el('p', { class: 'dim word' }, el('b', {}, m.title), ': ' + m.meaning + '.')),
                        ...(jit.advice.length > 2 /* an empty line, and the heading as text has it */
                                ? [el('h3', {}, 'Advice'), el('pre', {}, jit.advice.slice(2).join('\n'))]
                                : []),
                ];
        }

        listParts() {
                const { jit } = app.profile;

                return [
                        el('h3', {}, 'Traces, by time'),
                        el('p', { class: 'dim' }, TRACE_WORDS + ' Of the whole recording; a click shows the code.'),
                        ...jit.traces.slice(0, JIT_ROWS).map((t, i) =>
                                el(
                                        'button',
                                        { type: 'button', class: 'call jit-row', 'data-trace': i, onclick: () => this.openTrace(i) },
                                        this.row(t.ticks, jit.ticks),
                                        el(
                                                'span',
                                                { class: 'name' },
                                                el('b', {}, t.name),
                                                ' at ' + cut(t.start, 200) + ' \u2192 ' + cut(t.link, 60),
                                        ),
                                ),
                        ),
                        jit.traces.length ? null : el('p', { class: 'empty' }, 'no sample is in a trace that is known'),
                        jit.traces.length + jit.more > JIT_ROWS
                                ? el(
                                          'p',
                                          { class: 'dim' },
                                          count(jit.traces.length + jit.more - JIT_ROWS) +
                                                  ' more: luasample jit --min 0 lists them',
                                  )
                                : null,
                ];
        }

        traceParts(i) {
                const t = app.profile.jit.traces[i];

                return [
                        el(
                                'button',
                                { type: 'button', class: 'link', id: 'jit-back', onclick: () => this.openTrace(-1) },
                                '\u2190 all of the compiler',
                        ),
                        t.listing
                                ? el('pre', {}, t.listing.join('\n'))
                                : el(
                                          'p',
                                          { class: 'empty' },
                                          'The page has no room for this listing: luasample jit --trace ' +
                                                  t.name.split(' ')[0] +
                                                  ' shows it.',
                                  ),
                        el('p', { class: 'dim' }, TRACE_WORDS),
                ];
        }

        /* States over time as shares: how much of it was compiled when. */
        draw() {
                const box = this.canvas && this.canvas.parentElement,
                        { states } = app.profile;

                if (!box || !box.clientWidth || !app.timeline.width || !app.profile.time.buckets) return;
                const ctx = fitCanvas(this.canvas, box.clientWidth, JIT_BARS),
                        scale = box.clientWidth / app.timeline.width;

                ctx.clearRect(0, 0, box.clientWidth, JIT_BARS);
                for (const bar of app.timeline.bars().list) {
                        const x = app.timeline.xOf(bar.from) * scale,
                                w = Math.max(app.timeline.xOf(bar.to) * scale - x, 0.6),
                                sum = bar.cpus.reduce((a, b) => a + b, 0);
                        let y = JIT_BARS;

                        for (let i = 0; sum && i < states.length; i++) {
                                const height = (bar.cpus[i] / sum) * JIT_BARS;

                                ctx.fillStyle = strong(STATE_HUES[states[i].name] || [0, 0]);
                                ctx.fillRect(x, y - height, w, height);
                                y -= height;
                        }
                }
        }
}
