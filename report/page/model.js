/* Sums over the samples that are selected. A profile never changes; an aggregate is made for each selection. */

const KIND_LUA = 1,
        KIND_C = 2,
        KIND_BUILTIN = 3,
        KIND_PSEUDO = 4,
        KIND_NATIVE = 5;
const NO_GROUP = 0xffffffff;

/* Stacks merged by function: node 0 is above all roots, a parent has a smaller number. */
function mergeByFunction(p) {
        const { n, parent, location } = p.stacks,
                func = p.locations.func,
                nFuncs = p.functions.length;
        const nodeOf = new Uint32Array(n),
                known = new Map(),
                up = [0],
                funcs = [NO_GROUP],
                depth = [0];

        for (let i = 1; i < n; i++) {
                const above = nodeOf[parent[i]],
                        f = func[location[i]],
                        key = above * nFuncs + f;
                let node = known.get(key);

                if (node === undefined) {
                        node = up.length;
                        known.set(key, node);
                        up.push(above);
                        funcs.push(f);
                        depth.push(depth[above] + 1);
                }
                nodeOf[i] = node;
        }
        return {
                n: up.length,
                nodeOf,
                parent: Uint32Array.from(up),
                func: Uint32Array.from(funcs),
                depth: Uint32Array.from(depth),
        };
}

/* Children of each node, in one array: those of i are list[start[i]] .. list[start[i + 1] - 1]. */
function childLists(n, parent) {
        const start = new Uint32Array(n + 1),
                list = new Uint32Array(Math.max(n - 1, 0)),
                at = new Uint32Array(n);

        for (let i = 1; i < n; i++) start[parent[i] + 1]++;
        for (let i = 0; i < n; i++) start[i + 1] += start[i];
        for (let i = 1; i < n; i++) list[start[parent[i]] + at[parent[i]]++] = i;
        return { start, list };
}

/* The stack that pays for each stack's ticks by line: that of the Lua frame that called builtins, C and native functions. */
function payingStacks(p) {
        const { n, parent, location } = p.stacks,
                paying = new Uint32Array(n);

        for (let i = 1; i < n; i++) {
                const { kind } = p.functions[p.locations.func[location[i]]];

                if (kind === KIND_LUA) paying[i] = i;
                else if (kind === KIND_BUILTIN || kind === KIND_C || kind === KIND_NATIVE) paying[i] = paying[parent[i]];
        }
        return paying.map((stack, i) => stack || i);
}

/* The same by function and module: a builtin that compiled code has inlined is its caller. */
function payingForInlined(p) {
        const { parent, location } = p.stacks,
                isInlined = stack => stack && p.functions[p.locations.func[location[stack]]].inlined;

        if (!p.functions.some(f => f.inlined)) return undefined;
        return Uint32Array.from(parent, (caller, i) => (isInlined(i) && caller ? caller : i));
}

/* What rows can be grouped by: groups of locations, and what each is called. */
const KEYS = {
        function: {
                label: 'Function',
                make(p) {
                        return {
                                group: p.locations.func,
                                paying: payingForInlined(p),
                                isRow: g => !p.functions[g].inlined,
                                n: p.functions.length,
                                text: g => p.functions[g].name,
                                func: g => g,
                        };
                },
        },
        line: {
                label: 'Line',
                make(p) {
                        const group = new Uint32Array(p.locations.n),
                                known = new Map(),
                                sample = [];

                        for (let i = 0; i < p.locations.n; i++) {
                                const f = p.functions[p.locations.func[i]];
                                const key =
                                        f.kind === KIND_LUA
                                                ? f.source + ':' + p.locations.line[i]
                                                : 'f' + p.locations.func[i];

                                if (!known.has(key)) {
                                        known.set(key, sample.length);
                                        sample.push(i);
                                }
                                group[i] = known.get(key);
                        }

                        return {
                                group,
                                paying: payingStacks(p),
                                isRow: g => p.functions[p.locations.func[sample[g]]].kind === KIND_LUA,
                                n: sample.length,
                                func: g => p.locations.func[sample[g]],
                                line: g => p.locations.line[sample[g]],
                                text(g) {
                                        const f = p.functions[p.locations.func[sample[g]]];

                                        return f.kind === KIND_LUA
                                                ? p.sources[f.source].label + ':' + (p.locations.line[sample[g]] || '?')
                                                : f.name;
                                },
                        };
                },
        },
        module: {
                label: 'Module',
                make(p) {
                        return {
                                group: Uint32Array.from(p.locations.func, f => p.functions[f].module),
                                paying: payingForInlined(p),
                                isRow: g => p.modules[g] !== '[inlined]',
                                n: p.modules.length,
                                text: g => p.modules[g],
                                func: () => NO_GROUP,
                        };
                },
        },
};

/* Whether no frame above a stack is of the same group: totals count recursion once. */
function outermost(p, group, nGroups) {
        const { n, location, parent } = p.stacks,
                ret = new Uint8Array(n),
                onPath = new Uint32Array(nGroups);
        const { start, list } = p.children,
                next = start.slice(0, n);
        let at = 0;

        for (;;) {
                if (next[at] < start[at + 1]) {
                        at = list[next[at]++];
                        ret[at] = onPath[group[location[at]]]++ === 0 ? 1 : 0;
                } else if (at) {
                        onPath[group[location[at]]]--;
                        at = parent[at];
                } else {
                        return ret;
                }
        }
}

class Profile {
        constructor(data) {
                Object.assign(this, data);
                this.children = childLists(this.stacks.n, this.stacks.parent);
                this.tree = mergeByFunction(this);
                this.tree.children = childLists(this.tree.n, this.tree.parent);
                this.keys = {};
        }

        key(name) {
                if (!this.keys[name]) {
                        const key = KEYS[name].make(this);

                        key.outermost = outermost(this, key.group, key.n);
                        this.keys[name] = key;
                }
                return this.keys[name];
        }

        place(func) {
                const f = this.functions[func];

                if (!f || f.kind === KIND_PSEUDO) return '';
                if (f.kind !== KIND_LUA) return this.modules[f.module];
                return this.sources[f.source].label + (f.first ? ':' + f.first : '');
        }
}

/* Adds to each node what its children have; parents have smaller numbers. */
function propagate(parent, sums) {
        for (let i = parent.length - 1; i > 0; i--) sums[parent[i]] += sums[i];
        return sums;
}

/* What is selected: buckets from .. to - 1, and contexts by state, zone, thread, labels: a number by column, -1 = all. */
class Aggregate {
        constructor(profile, selection) {
                this.profile = profile;
                this.from = selection.from;
                this.to = selection.to;
                this.wanted = this.chooseContexts(selection.filter || {});
                this.self = new Float64Array(profile.stacks.n);
                this.ticks = 0;
                this.byContext = new Float64Array(profile.contexts.n);
                this.sum();
                this.total = propagate(profile.stacks.parent, this.self.slice());
                this.countSamples();
                this.base = profile.base ? this.sumBase() : null;
                this.rowsOf = {};
        }

        chooseContexts(filter) {
                const c = this.profile.contexts,
                        ret = new Uint8Array(c.n).fill(1);

                for (const [column, value] of Object.entries(filter))
                        for (let i = 0; value >= 0 && i < c.n; i++) if (c[column][i] !== value) ret[i] = 0;
                return ret;
        }

        sum() {
                const { cells } = this.profile,
                        end = cells.start[this.to] || 0;

                for (let i = cells.start[this.from] || 0; i < end; i++) {
                        const context = cells.context[i];

                        if (!this.wanted[context]) continue;
                        this.self[cells.stack[i]] += cells.ticks[i];
                        this.byContext[context] += cells.ticks[i];
                        this.ticks += cells.ticks[i];
                }
        }

        /* As certain as so many samples of equal weight; where a part of the contexts is hidden, as many as its share. */
        countSamples() {
                const { samples, squares } = this.profile.time;
                let all = 0,
                        sum = 0;

                this.samples = 0;
                for (let b = this.from; b < this.to; b++) {
                        this.samples += samples[b];
                        sum += squares[b];
                }
                for (let i = this.profile.cells.start[this.from] || 0; i < (this.profile.cells.start[this.to] || 0); i++)
                        all += this.profile.cells.ticks[i];
                this.effective = sum ? ((all * all) / sum) * (all ? this.ticks / all : 0) : 0;
        }

        sumBase() {
                const { base, stacks } = this.profile,
                        self = new Float64Array(stacks.n);
                let ticks = 0;

                for (let i = 0; i < base.stack.length; i++) {
                        if (!this.wanted[base.context[i]]) continue;
                        self[base.stack[i]] += base.ticks[i];
                        ticks += base.ticks[i];
                }
                return { self, ticks, total: propagate(stacks.parent, self.slice()) };
        }

        /* Self and total of each group of a key. */
        rows(name) {
                if (!this.rowsOf[name]) this.rowsOf[name] = this.makeRows(name);
                return this.rowsOf[name];
        }

        makeRows(name) {
                const p = this.profile,
                        key = p.key(name),
                        now = this.sumGroups(key, this.self, this.total);
                const base = this.base ? this.sumGroups(key, this.base.self, this.base.total) : null;
                const rows = [];
                /* What others pay for is a row only where there are none. */
                const isRow = g => !key.paying || key.isRow(g);

                for (let g = 0; g < key.n; g++)
                        if (now.self[g] || (base && base.self[g]) || (isRow(g) && (now.total[g] || (base && base.total[g]))))
                                rows.push({
                                        group: g,
                                        self: now.self[g],
                                        total: now.total[g],
                                        baseSelf: base ? base.self[g] : 0,
                                        baseTotal: base ? base.total[g] : 0,
                                });
                return rows;
        }

        sumGroups(key, stackSelf, stackTotal) {
                const { n, location } = this.profile.stacks;
                const self = new Float64Array(key.n),
                        total = new Float64Array(key.n);

                if (stackSelf[0]) {
                        /* samples without a stack */
                        self[key.group[location[0]]] += stackSelf[0];
                        total[key.group[location[0]]] += stackSelf[0];
                }
                for (let i = 1; i < n; i++) {
                        const g = key.group[location[i]];

                        self[key.paying ? key.group[location[key.paying[i]]] : g] += stackSelf[i];
                        if (key.outermost[i]) total[g] += stackTotal[i];
                }
                return { self, total };
        }

        /* Ticks of each state, zone, ... by its number. */
        sumBy(column, n) {
                const ret = new Float64Array(n),
                        of = this.profile.contexts[column];

                for (let i = 0; i < of.length; i++) ret[of[i]] += this.byContext[i];
                return ret;
        }

        /* Half the width of the 95 % interval of a share (Wilson's score), as report shows it. */
        margin(share) {
                const z = 1.959964,
                        n = this.effective;

                return n < 1
                        ? 1
                        : (z / (1 + (z * z) / n)) * Math.sqrt((share * (1 - share)) / n + (z * z) / (4 * n * n));
        }
}
