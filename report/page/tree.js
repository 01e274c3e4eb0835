/* The two trees of a flame graph: by callers first, or inverse: what ran first, its callers after it. Both have numbered
 * nodes, 0 above all roots, with func[], parent[], depth[], self[], total[], baseTotal[] and children(node), largest
 * first. weight[] is what a node's width stands for: total, or that of the recording to compare with. */

function sumByNode(tree, byStack) {
        const ret = new Float64Array(tree.n);

        for (let i = 0; i < byStack.length; i++) ret[tree.nodeOf[i]] += byStack[i];
        return ret;
}

class CallTree {
        constructor(aggregate, before) {
                const tree = aggregate.profile.tree;

                this.aggregate = aggregate;
                this.func = tree.func;
                this.parent = tree.parent;
                this.depth = tree.depth;
                this.lists = tree.children;
                this.self = sumByNode(tree, aggregate.self);
                this.total = propagate(tree.parent, this.self.slice());
                if (aggregate.base) {
                        this.baseSelf = sumByNode(tree, aggregate.base.self);
                        this.baseTotal = propagate(tree.parent, this.baseSelf.slice());
                }
                this.weight = before ? this.baseTotal : this.total;
                this.sorted = new Map();
        }

        children(node) {
                let list = this.sorted.get(node);

                if (!list) {
                        list = Array.from(
                                this.lists.list.subarray(this.lists.start[node], this.lists.start[node + 1]),
                        ).filter(c => this.weight[c] > 0);
                        list.sort((a, b) => this.weight[b] - this.weight[a] || a - b);
                        this.sorted.set(node, list);
                }
                return list;
        }
}

/* Made as far as it is looked at: the whole would be the square of deep stacks. A node keeps the nodes of the call tree
 * that ran in it (ends) and how far up each is followed (at). */
class InverseTree {
        constructor(aggregate, before) {
                const calls = new CallTree(aggregate, before),
                        ends = [];

                this.aggregate = aggregate;
                this.calls = calls;
                this.before = before;
                this.func = [NO_GROUP];
                this.parent = [0];
                this.depth = [0];
                this.self = [0];
                this.total = [calls.total[0]];
                this.baseTotal = calls.baseTotal ? [calls.baseTotal[0]] : null;
                this.lists = [null];
                for (let i = 1; i < calls.self.length; i++)
                        if (calls.self[i] || (calls.baseSelf && calls.baseSelf[i])) ends.push(i);
                this.ends = [ends];
                this.at = [ends];
        }

        get weight() {
                return this.before ? this.baseTotal : this.total;
        }

        children(node) {
                if (!this.lists[node]) this.lists[node] = this.expand(node);
                return this.lists[node];
        }

        expand(node) {
                const calls = this.calls,
                        found = new Map();

                for (let i = 0; i < this.ends[node].length; i++) {
                        const at = this.at[node][i],
                                end = this.ends[node][i];

                        if (!at) continue;
                        let child = found.get(calls.func[at]);

                        if (child === undefined) {
                                child = this.add(node, calls.func[at]);
                                found.set(calls.func[at], child);
                        }
                        this.ends[child].push(end);
                        this.at[child].push(calls.parent[at]);
                        this.total[child] += calls.self[end];
                        if (!node)
                                /* as report --tree --inverse: only what ran has ticks of its own */
                                this.self[child] += calls.self[end];
                        if (this.baseTotal) this.baseTotal[child] += calls.baseSelf[end];
                }
                return Array.from(found.values())
                        .filter(c => this.weight[c] > 0)
                        .sort((a, b) => this.weight[b] - this.weight[a] || a - b);
        }

        add(parent, func) {
                this.func.push(func);
                this.parent.push(parent);
                this.depth.push(this.depth[parent] + 1);
                this.self.push(0);
                this.total.push(0);
                if (this.baseTotal) this.baseTotal.push(0);
                this.lists.push(null);
                this.ends.push([]);
                this.at.push([]);
                return this.func.length - 1;
        }
}

/* Functions from the root to a node. */
function pathOf(tree, node) {
        const path = [];

        for (; node; node = tree.parent[node]) path.push(tree.func[node]);
        return path.reverse();
}

/* The node that a path leads to, as far as it does. */
function nodeAt(tree, path) {
        let node = 0;

        for (const func of path) {
                const next = tree.children(node).find(c => tree.func[c] === func);

                if (next === undefined) break;
                node = next;
        }
        return node;
}

/* Where a node's box begins, in ticks from the left edge. */
function startOf(tree, node) {
        let x = 0;

        for (; node; node = tree.parent[node])
                for (const c of tree.children(tree.parent[node])) {
                        if (c === node) break;
                        x += tree.weight[c];
                }
        return x;
}

const MOST_BOXES = 300000; /* of a layout: deeper levels are left out, to stay quick */

/* Boxes of the window x0 .. x1 (ticks), level by level: id[], x[], w[] of each, from left to right. Boxes below least
 * ticks are one box with id -1 for all of a parent. */
function layOut(tree, x0, x1, least) {
        const levels = [];
        let ids = [0],
                xs = [0],
                boxes = 0;

        while (ids.length && boxes < MOST_BOXES) {
                const level = { id: [], x: [], w: [] },
                        nextIds = [],
                        nextXs = [];

                for (let i = 0; i < ids.length; i++) {
                        let x = xs[i],
                                left = 0;
                        const children = tree.children(ids[i]);

                        for (let k = 0; k < children.length; k++) {
                                const c = children[k],
                                        w = tree.weight[c];

                                if (x >= x1) break;
                                if (w < least) {
                                        for (left = 0; k < children.length; k++) left += tree.weight[children[k]];
                                        if (x + left > x0 && left >= least) {
                                                level.id.push(-1);
                                                level.x.push(x);
                                                level.w.push(left);
                                        }
                                        break;
                                }
                                if (x + w > x0) {
                                        level.id.push(c);
                                        level.x.push(x);
                                        level.w.push(w);
                                        nextIds.push(c);
                                        nextXs.push(x);
                                }
                                x += w;
                        }
                }
                if (level.id.length) levels.push(level);
                boxes += level.id.length;
                ids = nextIds;
                xs = nextXs;
        }
        return levels;
}
