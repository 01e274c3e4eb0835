/* The flame graph, on a canvas of the size of its panel: rows are scrolled under it, boxes are laid out for the window
 * that is zoomed to, down to half a pixel. Draws what app.state says; the pointer and keys change that. */

const ROW = 21,
        PAD = 6,
        LEAST_PIXELS = 0.5;

class Flame {
        constructor() {
                this.canvas = $('flame-canvas');
                this.scroller = $('flame-scroll');
                this.tree = null;
                this.view = [0, 1]; /* window in ticks */
                this.levels = [];
                this.hover = 0;
                this.focus = 0; /* node that the arrow keys are at */
                this.draw = soon(() => this.paint());
                this.scroller.addEventListener('scroll', () => this.draw());
                this.canvas.addEventListener('pointermove', e => this.onMove(e));
                this.canvas.addEventListener('pointerleave', () => this.onLeave());
                this.canvas.addEventListener('click', e => this.onClick(e));
                this.canvas.addEventListener('dblclick', () => app.zoom([]));
                this.scroller.addEventListener('wheel', e => this.onWheel(e), { passive: false });
                new ResizeObserver(() => {
                        this.layOut();
                        this.draw();
                }).observe(this.scroller);
        }

        setTree(tree) {
                tooltip.hide();
                this.tree = tree;
                this.hover = 0;
                this.focus = 0;
                this.zoomTo(app.state.zoom, false);
        }

        /* Shows the node at a path as wide as the panel. */
        zoomTo(path, animate) {
                const node = nodeAt(this.tree, path),
                        x = startOf(this.tree, node),
                        w = this.tree.weight[node] || 1;

                this.zoomed = node;
                this.toBox = true;
                this.moveTo([x, x + w], animate && !matchMedia('(prefers-reduced-motion: reduce)').matches);
        }

        moveTo(view, animate) {
                const from = this.view,
                        start = performance.now();
                const step = now => {
                        if (this.moving !== step) return;
                        const t = Math.min(1, (now - start) / 200),
                                k = 1 - Math.pow(1 - t, 3);

                        this.view = [from[0] + (view[0] - from[0]) * k, from[1] + (view[1] - from[1]) * k];
                        this.layOut(t < 1);
                        this.paint();
                        if (t < 1) requestAnimationFrame(step);
                        else this.end();
                };

                if (animate) {
                        this.moving = step;
                        requestAnimationFrame(step);
                        return;
                }
                this.view = view;
                this.layOut();
                this.end();
        }

        /* After a movement; toBox: it was to a box, not of the wheel. */
        end() {
                this.moving = null;
                if (this.toBox) this.showZoomed();
                this.toBox = false;
                this.draw();
        }

        /* keepScroll: in an animation the rows stay where they are. */
        layOut(keepScroll) {
                const width = this.scroller.clientWidth,
                        away = this.rowsAway();

                if (!this.tree || !width) return;
                this.width = width;
                this.levels = layOut(
                        this.tree,
                        this.view[0],
                        this.view[1],
                        ((this.view[1] - this.view[0]) * LEAST_PIXELS) / width,
                );
                this.height = this.levels.length * ROW + 2 * PAD;
                if (keepScroll) return;
                $('flame-space').style.height = Math.max(this.height - this.scroller.clientHeight, 0) + 'px';
                this.goAway(away);
        }

        /* How far the panel is scrolled from the root's edge, in pixels. */
        rowsAway() {
                const { scrollTop, scrollHeight, clientHeight } = this.scroller;

                return app.state.direction === 'flame' ? scrollHeight - clientHeight - scrollTop : scrollTop;
        }

        goAway(pixels) {
                const { scrollHeight, clientHeight } = this.scroller;

                this.scroller.scrollTop =
                        app.state.direction === 'flame' ? scrollHeight - clientHeight - pixels : pixels;
        }

        turn() {
                this.goAway(0);
                this.showZoomed();
                this.draw();
        }

        /* The box that is zoomed to, with two of its callers, where there is room above it. */
        showZoomed() {
                const depth = this.tree.depth[this.zoomed],
                        rows = Math.floor(this.scroller.clientHeight / ROW);

                if (depth * ROW - this.rowsAway() < ROW || depth * ROW - this.rowsAway() > (rows * ROW) / 3)
                        this.goAway(depth > rows / 3 ? (depth - 3) * ROW : 0);
        }

        /* Top of a level in the panel. */
        top(level) {
                const h = this.scroller.clientHeight,
                        whole = Math.max(this.height, h);

                if (app.state.direction === 'flame') return whole - PAD - (level + 1) * ROW - this.scroller.scrollTop;
                return PAD + level * ROW - this.scroller.scrollTop;
        }

        levelAt(y) {
                const first = this.top(0);

                return app.state.direction === 'flame'
                        ? Math.floor((first + ROW - 1 - y) / ROW)
                        : Math.floor((y - first) / ROW);
        }

        scale() {
                return this.width / (this.view[1] - this.view[0]);
        }

        paint() {
                const h = this.scroller.clientHeight;

                if (!this.tree || !this.width || !h) return;
                const ctx = fitCanvas(this.canvas, this.width, h);

                ctx.clearRect(0, 0, this.width, h);
                ctx.font = '12px ' + theme('mono');
                ctx.textBaseline = 'middle';
                this.charWidth = ctx.measureText('mmmmmmmmmm').width / 10;
                this.colors = {
                        text: theme('box-text'),
                        line: theme('accent'),
                        back: theme('panel'),
                        faint: theme('box-faint'),
                };
                for (let level = 0; level < this.levels.length; level++) {
                        const y = this.top(level);

                        if (y > -ROW && y < h) this.paintLevel(ctx, this.levels[level], y);
                }
        }

        paintLevel(ctx, { id, x, w }, y) {
                const scale = this.scale();

                for (let i = 0; i < id.length; i++) {
                        const left = Math.max(0, (x[i] - this.view[0]) * scale),
                                right = Math.min(this.width, (x[i] + w[i] - this.view[0]) * scale);
                        const width = right - left;

                        if (id[i] < 0) {
                                ctx.fillStyle = this.colors.faint;
                                ctx.fillRect(left, y + 1, Math.max(width - 1, 0.5), ROW - 2);
                        } else {
                                this.paintBox(ctx, id[i], left, width, y);
                        }
                }
        }

        paintBox(ctx, node, left, width, y) {
                const func = this.tree.func[node],
                        shown = app.isMatch(func);
                const gap = width > 3 ? 1 : width > 1.2 ? 0.5 : 0,
                        selected = func === app.state.selected;
                const above = this.zoomed && this.tree.depth[node] < this.tree.depth[this.zoomed];

                ctx.globalAlpha = shown ? (above ? 0.55 : 1) : 0.22;
                ctx.fillStyle = app.colorOf(this.tree, node);
                this.shape(ctx, left, y + 1, width - gap, ROW - 2, width > 8 ? 3 : 0);
                ctx.fill();
                if (width > 10 && !app.profile.base) this.paintMix(ctx, node, left, width - gap, y);
                if (node === this.hover || node === this.focus || (selected && width > 4)) {
                        ctx.globalAlpha = 1;
                        ctx.lineWidth = node === this.hover || node === this.focus ? 2 : 1.5;
                        ctx.strokeStyle = this.colors.line;
                        this.shape(
                                ctx,
                                left + 0.75,
                                y + 1.75,
                                Math.max(width - gap - 1.5, 0.5),
                                ROW - 3.5,
                                width > 8 ? 2.5 : 0,
                        );
                        ctx.stroke();
                }
                if (width > 3 * this.charWidth)
                        this.paintText(
                                ctx,
                                app.profile.functions[func].name,
                                left + 5,
                                y + ROW / 2 + 0.5,
                                width - gap - 8,
                        );
                ctx.globalAlpha = 1;
        }

        shape(ctx, x, y, w, h, radius) {
                ctx.beginPath();
                if (radius && ctx.roundRect) ctx.roundRect(x, y, w, h, radius);
                else ctx.rect(x, y, w, h);
        }

        /* What a box is made of, as a line at its foot; only where it is a mix. */
        paintMix(ctx, node, left, width, y) {
                const mode = app.mode,
                        mix = mode.ofContext ? app.mixes.of(this.tree, node) : null;
                let sum = 0,
                        parts = 0,
                        x = left + 2;

                if (!mix) return;
                for (const v of mix) {
                        sum += v;
                        parts += v > 0 ? 1 : 0;
                }
                if (parts < 2) return;
                for (const i of Array.from(mix.keys()).sort((a, b) => mix[b] - mix[a])) {
                        const w = ((width - 4) * mix[i]) / sum;

                        ctx.fillStyle = strong(mode.list[i].hue);
                        ctx.fillRect(x, y + ROW - 4, w, 2);
                        x += w;
                }
        }

        paintText(ctx, text, x, y, width) {
                let n = Math.floor(width / this.charWidth);

                if (n < 2) return;
                text = text.length > n ? text.slice(0, n - 1) + '\u2026' : text;
                while (/[^ -~\u2026]/.test(text) && ctx.measureText(text).width > width && n > 2)
                        text = text.slice(0, --n - 1) + '\u2026';
                ctx.fillStyle = this.colors.text;
                ctx.fillText(text, x, y - 0.5);
        }

        /* The node at a place of the panel, 0 = none. */
        nodeUnder(e) {
                const at = this.canvas.getBoundingClientRect(),
                        level = this.levels[this.levelAt(e.clientY - at.top)];
                const ticks = this.view[0] + (e.clientX - at.left) / this.scale();
                let low = 0,
                        high = level ? level.x.length : 0;

                while (low < high) {
                        const mid = (low + high) >> 1;

                        if (level.x[mid] + level.w[mid] <= ticks) low = mid + 1;
                        else high = mid;
                }
                return level && low < level.x.length && level.x[low] <= ticks && level.id[low] > 0 ? level.id[low] : 0;
        }

        onMove(e) {
                const node = this.nodeUnder(e);

                if (node !== this.hover) {
                        this.hover = node;
                        this.draw();
                }
                this.canvas.style.cursor = node ? 'pointer' : 'default';
                if (node) tooltip.show(e.clientX, e.clientY, ...this.describe(node));
                else tooltip.hide();
        }

        onLeave() {
                this.hover = 0;
                tooltip.hide();
                this.draw();
        }

        onClick(e) {
                const node = this.nodeUnder(e);

                if (!node) return;
                this.focus = node;
                app.select(this.tree.func[node]);
                app.zoom(pathOf(this.tree, node));
        }

        /* With ctrl or shift the window narrows or widens round the pointer. */
        onWheel(e) {
                if (!e.ctrlKey && !e.shiftKey) return;
                e.preventDefault();
                const at = this.canvas.getBoundingClientRect(),
                        whole = this.tree.weight[0];
                const x = this.view[0] + (e.clientX - at.left) / this.scale(),
                        by = Math.exp((e.deltaY || e.deltaX) * 0.002);
                const width = Math.max(Math.min((this.view[1] - this.view[0]) * by, whole), whole / 1e6);
                const from = Math.max(
                        0,
                        Math.min(x - ((x - this.view[0]) / (this.view[1] - this.view[0])) * width, whole - width),
                );

                this.moveTo([from, from + width], false);
        }

        describe(node) {
                const { tree } = this,
                        func = tree.func[node],
                        whole = app.aggregate.ticks,
                        total = tree.total[node];
                const head = [el('strong', {}, cut(app.profile.functions[func].name, 400))],
                        place = app.profile.place(func);
                const line = (name, ticks) =>
                        el(
                                'div',
                                { class: 'row' },
                                el('span', {}, name),
                                el('b', {}, percent(whole ? ticks / whole : 0)),
                                el('span', {}, duration(ticks * app.profile.interval)),
                                el('span', {}, ticksText(ticks)),
                        );

                if (place) head.push(el('div', { class: 'dim' }, cut(place, 300)));
                head.push(line(app.state.tree === 'inverse' ? 'this way' : 'total', total));
                if (app.state.tree !== 'inverse') head.push(line('self', tree.self[node]));
                if (app.profile.base) head.push(...this.describeChange(node));
                else if (app.mode.ofContext) head.push(...this.describeMix(node));
                return head;
        }

        describeChange(node) {
                const { base, ticks } = app.aggregate,
                        before = base.ticks ? this.tree.baseTotal[node] / base.ticks : 0;
                const now = ticks ? this.tree.total[node] / ticks : 0,
                        by = (now - before) * 100;

                return [
                        el(
                                'div',
                                { class: 'row' },
                                el('span', {}, 'before'),
                                el('b', {}, percent(before)),
                                el('span', {}, (by < 0 ? '\u2212' : '+') + Math.abs(by).toFixed(2) + ' points'),
                        ),
                ];
        }

        describeMix(node) {
                const mix = app.mixes.of(this.tree, node),
                        sum = mix.reduce((a, b) => a + b, 0);

                return Array.from(mix.keys())
                        .filter(i => mix[i] > 0)
                        .sort((a, b) => mix[b] - mix[a])
                        .slice(0, 6)
                        .map(i =>
                                el(
                                        'div',
                                        { class: 'mix' },
                                        el('i', { style: { background: strong(app.mode.list[i].hue) } }),
                                        el('span', {}, cut(app.mode.list[i].label, 80)),
                                        el('b', {}, percent(mix[i] / sum)),
                                ),
                        );
        }

        /* Moves the focus: up and down are on the screen. */
        move(dx, dy) {
                const { tree } = this,
                        from = this.focus || this.zoomed;
                tooltip.hide();
                const deeper = app.state.direction === 'flame' ? -dy : dy;
                let to = from;

                if (!from) to = tree.children(0)[0] || 0;
                else if (deeper > 0) to = tree.children(from)[0] || from;
                else if (deeper < 0) to = tree.parent[from] || from;
                else {
                        const row = tree.children(tree.parent[from]),
                                at = row.indexOf(from) + dx;

                        to = row[at] || from;
                }
                this.focus = to;
                if (to) {
                        app.select(tree.func[to]);
                        this.reveal(to);
                        $('said').textContent =
                                app.profile.functions[tree.func[to]].name.slice(0, 200) +
                                ', ' +
                                percent(tree.total[to] / app.aggregate.ticks);
                }
                this.draw();
        }

        /* Scrolls so that a node's row is seen. */
        reveal(node) {
                const y = this.top(this.tree.depth[node] - 1),
                        h = this.scroller.clientHeight;

                if (y < 0) this.scroller.scrollTop += y - PAD;
                else if (y + ROW > h) this.scroller.scrollTop += y + ROW - h + PAD;
        }
}
