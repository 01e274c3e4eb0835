/* What boxes, bars and the legend are coloured by. A mode has categories, and says which a context is (so that a box can
 * show its mix) or which a function is. */

const STATE_HUES = { native: [158, 1], interpreted: [38, 1.15], c: [213, 1], gc: [347, 1.05], jit: [268, 0.95] };
const HUES = [213, 28, 158, 347, 268, 190, 55, 310, 95, 12, 238, 132];
const MOST_CATEGORIES = 12; /* the last stands for all others */

let isDark = false;

function hsl(h, s, l) {
        return 'hsl(' + h.toFixed(0) + ',' + s.toFixed(0) + '%,' + l.toFixed(0) + '%)';
}

/* Of lines, bars and the legend. */
function strong([hue, more]) {
        return more ? hsl(hue, (isDark ? 52 : 62) * more, isDark ? 58 : 47) : isDark ? '#6b7484' : '#9aa3b0';
}

/* Of a box; shade, -1 .. 1, tells neighbours apart. */
function soft([hue, more], shade) {
        if (!more) return hsl(220, isDark ? 8 : 10, (isDark ? 30 : 84) + shade * 2);
        return isDark
                ? hsl(hue + shade * 6, 36 * more, 35 + shade * 4)
                : hsl(hue + shade * 7, 62 * more, 77 + shade * 4);
}

/* -1 .. 1 from a name. */
function shadeOf(text) {
        let h = 2166136261;

        for (let i = 0; i < text.length && i < 200; i++) h = Math.imul(h ^ text.charCodeAt(i), 16777619);
        return ((h >>> 8) & 1023) / 511.5 - 1;
}

/* Categories for numbered things: the largest each, the rest together. */
function rankCategories(ticks, text) {
        const order = Array.from(ticks.keys())
                .filter(i => ticks[i] > 0)
                .sort((a, b) => ticks[b] - ticks[a]);
        const of = new Uint32Array(ticks.length).fill(MOST_CATEGORIES - 1);
        const shown = order.length > MOST_CATEGORIES ? order.slice(0, MOST_CATEGORIES - 1) : order;
        const list = shown.map((i, at) => ({ label: text(i), hue: [HUES[at % HUES.length], 1], value: i }));

        shown.forEach((i, at) => {
                of[i] = at;
        });
        if (shown.length < order.length)
                list.push({ label: order.length - shown.length + ' more', hue: [0, 0], value: -1 });
        return { of, list };
}

/* Of a column of the contexts: state, zone, thread or a label. */
function contextMode(column, texts) {
        return p => {
                const all = new Aggregate(p, { from: 0, to: p.time.buckets });
                const { of, list } = rankCategories(all.sumBy(column, texts(p).length), i => texts(p)[i]);

                return { filter: column, list, ofContext: Uint32Array.from(p.contexts[column], v => of[v]) };
        };
}

const COLOR_MODES = {
        kind: {
                label: 'Kind',
                help: 'compiled, interpreted, C, garbage collector, JIT compiler',
                make: p => ({
                        filter: 'state',
                        ofContext: p.contexts.state,
                        list: p.states.map((s, i) => ({ label: s.label, hue: STATE_HUES[s.name] || [0, 0], value: i })),
                        /* A function that runs in C is C; a Lua function is what its Lua code is most. */
                        ofFunction(func, mix) {
                                const kind = p.functions[func].kind;

                                if (kind === KIND_C || kind === KIND_NATIVE || kind === KIND_BUILTIN) return 2;
                                return most(mix, 2);
                        },
                }),
        },
        module: {
                label: 'Module',
                help: 'source file or C module',
                make(p) {
                        const all = new Aggregate(p, { from: 0, to: p.time.buckets });
                        const self = new Float64Array(p.modules.length);

                        for (const row of all.rows('module')) self[row.group] = row.self + row.total / 1e6;
                        const { of, list } = rankCategories(self, i => p.modules[i]);

                        return { filter: null, list, ofContext: null, ofFunction: func => of[p.functions[func].module] };
                },
        },
        zone: { label: 'Zone', help: 'zone that the program was in', make: contextMode('zone', p => p.zones) },
        thread: { label: 'Thread', help: 'thread', make: contextMode('thread', p => p.threads) },
};

/* Those of a profile: each key of its labels is one. */
function colorModes(p) {
        const label = l => ({
                label: cut(l.key, 16),
                help: 'label ' + cut(l.key, 80),
                make: contextMode(l.column, () => l.texts),
        });

        return { ...COLOR_MODES, ...Object.fromEntries(p.labels.map(l => [l.column, label(l)])) };
}

/* The category with the most ticks, without one that counts only alone. -1 = none has any. */
function most(mix, last) {
        let best = -1;

        for (let i = 0; i < mix.length; i++) if (i !== last && mix[i] > 0 && (best < 0 || mix[i] > mix[best])) best = i;
        return best < 0 && last >= 0 && mix[last] > 0 ? last : best;
}

/* Ticks by category of each node of a tree. */
class Mixes {
        constructor(aggregate, mode) {
                const p = aggregate.profile,
                        { cells } = p,
                        n = mode.list.length;
                const end = cells.start[aggregate.to] || 0;

                this.n = n;
                this.self = new Float32Array(p.tree.n * n);
                this.total = null;
                this.parent = p.tree.parent;
                for (let i = cells.start[aggregate.from] || 0; i < end; i++)
                        if (aggregate.wanted[cells.context[i]])
                                this.self[p.tree.nodeOf[cells.stack[i]] * n + mode.ofContext[cells.context[i]]] +=
                                        cells.ticks[i];
        }

        of(tree, node) {
                const n = this.n;

                if (!tree.ends) {
                        this.total = this.total || this.addUp();
                        return this.total.subarray(node * n, node * n + n);
                }
                if (this.tree !== tree) {
                        this.tree = tree;
                        this.known = [];
                }
                if (!this.known[node]) this.known[node] = this.sumEnds(tree.ends[node]);
                return this.known[node];
        }

        sumEnds(ends) {
                const n = this.n,
                        mix = new Float32Array(n);

                for (const end of ends) for (let i = 0; i < n; i++) mix[i] += this.self[end * n + i];
                return mix;
        }

        addUp() {
                const n = this.n,
                        ret = this.self.slice();

                for (let node = this.parent.length - 1; node > 0; node--)
                        for (let i = 0; i < n; i++) ret[this.parent[node] * n + i] += ret[node * n + i];
                return ret;
        }
}

/* Red: the share has grown; blue: it has shrunk. change: -1 .. 1. */
function changeColor(change) {
        const c = Math.max(-1, Math.min(1, change)),
                size = Math.pow(Math.abs(c), 0.7);

        if (size < 0.02) return isDark ? hsl(220, 6, 34) : hsl(220, 10, 90);
        return isDark
                ? hsl(c > 0 ? 4 : 215, 20 + 45 * size, 36 + 6 * size)
                : hsl(c > 0 ? 6 : 213, 35 + 50 * size, 90 - 26 * size);
}
