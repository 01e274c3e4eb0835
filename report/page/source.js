/* The selected function: its source with the share of each line, its callers and what it called. */

const MOST_SOURCE_LINES = 4000; /* in the document at a time */

const LUA_TOKEN = [
        /(--\[(=*)\[|--.*|\[(=*)\[)/,
        /("(?:\\.|[^"\\])*"?|'(?:\\.|[^'\\])*'?)/,
        /(\b0[xX][\da-fA-F.]+\w*|\b\d[\w.]*(?:[eE][+-]?\d+)?)/,
        /([A-Za-z_]\w*)/,
]
        .map(r => r.source)
        .join('|');

/* Words of Lua, for the eye: [class, text] of each piece. Long strings and comments go on to the next line: state is
 * what ends them. */
function tokens(line, state) {
        const ret = [],
                re = new RegExp(LUA_TOKEN, 'g');
        let at = 0;
        const put = (kind, text) => {
                if (text) ret.push([kind, text]);
        };
        const long = (from, close, kind) => {
                const end = line.indexOf(close, from);

                put(kind, line.slice(at, end < 0 ? line.length : end + close.length));
                at = end < 0 ? line.length : end + close.length;
                return end < 0 ? { close, kind } : null;
        };

        if (state) state = long(0, state.close, state.kind);
        while (!state && at < line.length) {
                re.lastIndex = at;
                const m = re.exec(line);

                if (!m) {
                        put('', line.slice(at));
                        break;
                }
                put('', line.slice(at, m.index));
                at = m.index;
                if (m[1] && m[1].endsWith('[')) {
                        state = long(
                                at + m[1].length,
                                ']' + (m[2] ?? m[3] ?? '') + ']',
                                m[1].startsWith('--') ? 'comment' : 'string',
                        );
                        continue;
                }
                put(m[1] ? 'comment' : m[4] ? 'string' : m[5] ? 'literal' : LUA_WORDS.has(m[6]) ? 'keyword' : '', m[0]);
                at += m[0].length;
        }
        return { ret, state };
}

const LUA_WORDS = new Set(
        (
                'and break do else elseif end false for function goto if in local nil not or repeat return then ' +
                'true until while'
        ).split(' '),
);

class Source {
        constructor() {
                this.panel = $('source-body');
        }

        setData() {
                const func = app.state.selected,
                        f = app.profile.functions[func];

                if (app.state.side === 'jit') {
                        $('source-title').textContent = 'JIT compiler';
                        $('source-place').textContent = '';
                        app.jit.show(this.panel);
                        return;
                }
                $('source-title').textContent = f ? cut(f.name, 300) : 'Source';
                $('source-place').textContent = f ? cut(this.placeText(f), 300) : '';
                if (!f)
                        this.say(
                                'Select a function in the graph or the table to see its source with the share of each line.',
                        );
                else if (app.state.side === 'calls') this.showCalls(func);
                else if (f.kind !== KIND_LUA) this.say(this.whyNot(f));
                else this.showLines(func, f);
        }

        placeText(f) {
                if (f.kind !== KIND_LUA) return app.profile.place(app.state.selected);
                const s = app.profile.sources[f.source];

                return (s.path || s.label) + (f.first ? ':' + f.first : '');
        }

        noticeText(source) {
                return source.text || !source.path
                        ? source.notice
                        : cut(source.path, 300) + ': ' + source.notice + ' (--source-dir names other places)';
        }

        whyNot(f) {
                const words = {
                        [KIND_C]: 'A C function: it has no Lua source.',
                        [KIND_NATIVE]: 'Native code: it has no Lua source.',
                        [KIND_BUILTIN]: 'A function of LuaJIT itself: it has no Lua source.',
                };

                return (words[f.kind] || 'Not a function: a place that stands for others.') + ' See its callers.';
        }

        say(text) {
                this.panel.replaceChildren(el('p', { class: 'empty' }, text));
        }

        /* Self and total of each line of a source. */
        lineSums(source) {
                const { profile } = app,
                        key = profile.key('line'),
                        sums = new Map();

                for (const r of app.aggregate.rows('line')) {
                        const func = key.func(r.group);

                        if (
                                func !== NO_GROUP &&
                                profile.functions[func].kind === KIND_LUA &&
                                profile.functions[func].source === source
                        )
                                sums.set(key.line(r.group), r);
                }
                return sums;
        }

        showLines(func, f) {
                const source = app.profile.sources[f.source],
                        sums = this.lineSums(f.source),
                        parts = [];
                const most = Array.from(sums.values()).reduce((m, r) => Math.max(m, r.self), 1);
                let state = null,
                        n = 0,
                        target = null,
                        best = -1;

                if (app.jit.has(f.source)) parts.push(this.marksLegend());
                if (source.notice) parts.push(el('p', { class: 'notice' }, this.noticeText(source)));
                for (const run of source.text || [[0]]) {
                        state = null;
                        if (run[0] > 1) parts.push(el('div', { class: 'gap' }, '\u22ef'));
                        for (let i = 1; i < run.length && n < MOST_SOURCE_LINES; i++, n++) {
                                const number = run[0] + i - 1,
                                        t = tokens(run[i], state),
                                        sum = sums.get(number);
                                const inside = f.first && number >= f.first && number <= f.last,
                                        hot = sum ? sum.self + sum.total / 1e3 : 0;
                                const e = this.lineElement(number, t.ret, sum, most, inside, f.source);

                                state = t.state;
                                parts.push(e);
                                if (app.state.line ? number === app.state.line : inside && (hot > best || !target)) {
                                        best = hot;
                                        target = e;
                                }
                        }
                }
                if (!source.text || !source.text.length) parts.push(...this.bareLines(sums, most, f.source));
                this.panel.replaceChildren(el('div', { class: 'code' }, ...parts));
                if (target) this.panel.scrollTop = Math.max(0, target.offsetTop - this.panel.clientHeight / 3);
        }

        /* What the marks of the lines mean. */
        marksLegend() {
                return el(
                        'p',
                        { class: 'jit-legend' },
                        ...JIT_MARKS.map((m, i) =>
                                m
                                        ? el(
                                                  'span',
                                                  { title: m.help },
                                                  el('b', { class: 'jit-mark m' + i }, m.sign),
                                                  ' ' + m.name + '\u2003',
                                          )
                                        : null,
                        ).filter(e => e),
                        'a click on one says why',
                );
        }

        bareLines(sums, most, source) {
                return Array.from(sums.keys())
                        .sort((a, b) => a - b)
                        .map(n => this.lineElement(n, [['comment', n ? '' : '(no line)']], sums.get(n), most, true, source));
        }

        lineElement(number, pieces, sum, most, inside, source) {
                const heat = sum ? sum.self / most : 0,
                        all = app.aggregate.ticks;

                return el(
                        'div',
                        {
                                class: 'line' + (inside ? '' : ' outside'),
                                'data-line': number,
                                style: heat ? { '--heat': heat.toFixed(3) } : {},
                        },
                        el('span', { class: 'share' }, sum && sum.self ? amount(sum.self, all) : ''),
                        el('span', { class: 'share dim' }, sum && sum.total ? amount(sum.total, all) : ''),
                        app.jit.has(source) ? app.jit.markElement(source, number) : null,
                        el('span', { class: 'number' }, String(number)),
                        el(
                                'code',
                                {},
                                ...pieces.map(([kind, text]) => (kind ? el('span', { class: kind }, text) : text)),
                        ),
                );
        }

        /* Callers and callees, by ticks of the calls. */
        showCalls(func) {
                const tree = app.callTree(),
                        callers = new Map(),
                        callees = new Map(),
                        add = (m, k, v) => m.set(k, (m.get(k) || 0) + v);
                let roots = 0,
                        own = 0;

                for (let i = 1; i < tree.total.length; i++) {
                        if (tree.func[i] === func) {
                                own += tree.self[i];
                                if (tree.parent[i]) add(callers, tree.func[tree.parent[i]], tree.total[i]);
                                else roots += tree.total[i];
                        }
                        if (tree.parent[i] && tree.func[tree.parent[i]] === func)
                                add(callees, tree.func[i], tree.total[i]);
                }
                const list = (title, map, more) => {
                        const rows = Array.from(map)
                                .filter(r => r[1] > 0)
                                .sort((a, b) => b[1] - a[1])
                                .slice(0, 200);

                        return el(
                                'div',
                                {},
                                el('h3', {}, title),
                                ...more,
                                ...rows.map(([f, ticks]) => this.callElement(f, ticks)),
                                rows.length || more.length ? null : el('p', { class: 'empty' }, 'none'),
                        );
                };
                const line = (text, ticks) => (ticks ? [this.callElement(NO_GROUP, ticks, text)] : []);

                this.panel.replaceChildren(
                        el(
                                'div',
                                { class: 'calls' },
                                list('Called by', callers, line('(root)', roots)),
                                list('Calls', callees, line('(itself)', own)),
                        ),
                );
        }

        callElement(func, ticks, text) {
                const all = app.aggregate.ticks,
                        name = text || app.profile.functions[func].name;

                return el(
                        'button',
                        { type: 'button', class: 'call', disabled: func === NO_GROUP, onclick: () => app.select(func) },
                        el(
                                'div',
                                { class: 'num total' },
                                el('i', {
                                        style: {
                                                width: (all ? Math.min(100, (ticks / all) * 100) : 0).toFixed(2) + '%',
                                        },
                                }),
                                el('span', {}, amount(ticks, all)),
                        ),
                        el('span', { class: 'name' }, cut(name, 300)),
                );
        }
}
