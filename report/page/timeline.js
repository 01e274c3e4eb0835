/* Activity over time by VM state, and the selection of a part of it. A selection is of whole buckets: the sums are exact.
 * What is drawn are bars of several buckets, as many as show more than noise. */

const BAR_PIXELS = 3,
        BAR_TICKS = 12,
        AXIS = 18,
        EDGE = 6,
        MARK = 5;

/* 1, 2 or 5 times a power of ten, not below v. */
function roundUp(v) {
        const unit = Math.pow(10, Math.floor(Math.log10(v)));

        return [1, 2, 5, 10].map(k => k * unit).find(x => x >= v * 0.999999);
}

class Timeline {
        constructor() {
                this.canvas = $('time-canvas');
                this.draw = soon(() => this.paint());
                this.hoverX = -1;
                this.drag = null;
                this.canvas.addEventListener('pointerdown', e => this.onDown(e));
                this.canvas.addEventListener('pointermove', e => this.onMove(e));
                this.canvas.addEventListener('pointerup', e => this.onUp(e));
                this.canvas.addEventListener('pointercancel', () => {
                        this.drag = null;
                });
                this.canvas.addEventListener('pointerleave', () => {
                        this.hoverX = -1;
                        tooltip.hide();
                        this.draw();
                });
                this.canvas.addEventListener('dblclick', () => app.selectTime(0, app.profile.time.buckets));
                this.canvas.addEventListener('keydown', e => this.onKey(e));
                new ResizeObserver(() => this.draw()).observe(this.canvas.parentElement);
        }

        /* Ticks of each bucket by state, of all contexts that are wanted. */
        setData() {
                const p = app.profile,
                        { cells, contexts, time } = p,
                        n = p.states.length;

                this.sums = new Float64Array(time.buckets * n);
                for (let b = 0; b < time.buckets; b++)
                        for (let i = cells.start[b]; i < cells.start[b + 1]; i++)
                                if (app.aggregate.wanted[cells.context[i]])
                                        this.sums[b * n + contexts.state[cells.context[i]]] += cells.ticks[i];
                this.draw();
        }

        xOf(bucket) {
                return (bucket / Math.max(app.profile.time.buckets, 1)) * this.width;
        }

        bucketAt(x) {
                return Math.max(0, Math.min(app.profile.time.buckets, (x / this.width) * app.profile.time.buckets));
        }

        /* Buckets of one bar. */
        perBar() {
                const { time } = app.profile;
                let ticks = 0;

                for (const v of this.sums) ticks += v;
                return Math.max(
                        1,
                        Math.min(
                                Math.ceil(time.buckets / 30),
                                Math.max(
                                        Math.ceil((BAR_PIXELS * time.buckets) / this.width),
                                        Math.ceil((BAR_TICKS * time.buckets) / Math.max(ticks, 1)),
                                ),
                        ),
                );
        }

        paint() {
                const box = this.canvas.parentElement,
                        { time } = app.profile;

                this.width = box.clientWidth;
                this.height = box.clientHeight;
                if (!this.width || !this.sums) return;
                const ctx = fitCanvas(this.canvas, this.width, this.height);

                ctx.clearRect(0, 0, this.width, this.height);
                ctx.font = '11px ' + theme('sans');
                if (!time.buckets) return;
                this.paintBars(ctx, this.height - AXIS);
                this.paintAxis(ctx, this.height - AXIS);
                this.paintSelection(ctx, this.height - AXIS);
                this.paintMarks(ctx, this.height - AXIS);
        }

        /* The sums of bars, and the highest, in CPUs. */
        bars() {
                const { time, states, interval } = app.profile,
                        per = this.perBar(),
                        n = states.length,
                        list = [];
                let top = 0;

                for (let b = 0; b < time.buckets; b += per) {
                        const end = Math.min(b + per, time.buckets),
                                sums = new Float64Array(n);

                        for (let i = b * n; i < end * n; i++) sums[i % n] += this.sums[i];
                        /* The last may be a part of a bar: it is compared as if it were whole, so as not to stand out. */
                        const cpus = sums.map(v => (v * interval) / ((end - b < per / 2 ? per : end - b) * time.length));

                        top = Math.max(
                                top,
                                cpus.reduce((x, y) => x + y, 0),
                        );
                        list.push({ from: b, to: end, cpus });
                }
                return { list, top };
        }

        paintBars(ctx, h) {
                const { list, top } = this.bars(),
                        most = roundUp(Math.max(top, 1e-9)),
                        states = app.profile.states;

                this.most = most;
                for (const bar of list) {
                        const x = this.xOf(bar.from),
                                w = Math.max(this.xOf(bar.to) - x - (BAR_PIXELS > 2 ? 0.6 : 0), 0.6);
                        let y = h;

                        for (let i = 0; i < states.length; i++) {
                                const height = (bar.cpus[i] / most) * (h - 8);

                                if (!height) continue;
                                ctx.fillStyle = strong(STATE_HUES[states[i].name] || [0, 0]);
                                ctx.fillRect(x, y - height, w, height);
                                y -= height;
                        }
                }
                ctx.fillStyle = theme('line');
                ctx.fillRect(0, h, this.width, 1);
                ctx.setLineDash([2, 4]);
                ctx.strokeStyle = theme('dim');
                ctx.globalAlpha = 0.5;
                ctx.beginPath();
                ctx.moveTo(0, 8.5);
                ctx.lineTo(this.width, 8.5);
                ctx.stroke();
                ctx.setLineDash([]);
                ctx.globalAlpha = 1;
                this.label(
                        ctx,
                        (most >= 1 ? most.toFixed(most < 10 && most % 1 ? 1 : 0) : String(+most.toPrecision(2))) +
                                this.unit(),
                        this.width - 6,
                        22,
                        'right',
                );
        }

        /* Ticks of one thread fill 1. */
        unit() {
                return { cpu: ' CPU', wall: ' threads' }[app.profile.event] || ' coroutines';
        }

        /* Text on what may be bars. */
        label(ctx, text, x, y, align) {
                ctx.textAlign = align;
                ctx.lineWidth = 3;
                ctx.lineJoin = 'round';
                ctx.strokeStyle = theme('panel');
                ctx.strokeText(text, x, y);
                ctx.fillStyle = theme('dim');
                ctx.fillText(text, x, y);
        }

        paintAxis(ctx, h) {
                const { time } = app.profile,
                        span = time.buckets * time.length,
                        step = roundUp(span / Math.max(this.width / 110, 1));

                ctx.fillStyle = theme('dim');
                ctx.textAlign = 'left';
                for (let t = Math.ceil(time.first / step) * step; t <= time.first + span; t += step) {
                        const x = ((t - time.first) / span) * this.width;

                        ctx.globalAlpha = 0.5;
                        ctx.fillRect(Math.round(x), h, 1, 4);
                        ctx.globalAlpha = 1;
                        if (x < this.width - 50) ctx.fillText(t ? this.clock(t, step) : '0', x + 4, this.height - 5);
                }
        }

        /* A time after the start, as exact as the step. */
        clock(ns, step) {
                const s = ns / 1e9;

                return s.toFixed(Math.max(0, Math.min(6, Math.ceil(-Math.log10(step / 1e9) - 1e-9)))) + ' s';
        }

        paintSelection(ctx, h) {
                const { from, to } = app.state,
                        x0 = this.xOf(from),
                        x1 = this.xOf(to);

                if (from > 0 || to < app.profile.time.buckets) {
                        ctx.fillStyle = theme('veil');
                        ctx.fillRect(0, 0, x0, h);
                        ctx.fillRect(x1, 0, this.width - x1, h);
                        ctx.fillStyle = theme('accent');
                        ctx.fillRect(x0 - 1, 0, 2, h);
                        ctx.fillRect(x1 - 1, 0, 2, h);
                        for (const x of [x0, x1]) {
                                ctx.beginPath();
                                ctx.rect(x - 2.5, h / 2 - 10, 5, 20);
                                ctx.fill();
                        }
                } else if (this.hoverX >= 0 && !this.drag) {
                        ctx.fillStyle = theme('accent');
                        ctx.globalAlpha = 0.6;
                        ctx.fillRect(this.hoverX, 0, 1, h);
                        ctx.globalAlpha = 1;
                }
        }

        /* What the program marked, in threads that are shown; those outside the samples' time at its ends. */
        marks() {
                const { marks, time } = app.profile,
                        { thread } = app.state.filter,
                        span = time.buckets * time.length;

                return marks
                        .filter(m => thread < 0 || m.thread < 0 || m.thread === thread)
                        .map(m => ({ ...m, x: Math.max(0, Math.min(1, (m.at - time.first) / span)) * this.width }));
        }

        paintMarks(ctx, h) {
                ctx.fillStyle = theme('mark');
                for (const { x } of this.marks()) {
                        ctx.globalAlpha = 0.5;
                        ctx.fillRect(x - 0.5, 0, 1, h);
                        ctx.globalAlpha = 1;
                        const flag = Math.max(MARK, Math.min(this.width - MARK, x));

                        ctx.beginPath();
                        ctx.moveTo(flag - MARK, 0);
                        ctx.lineTo(flag + MARK, 0);
                        ctx.lineTo(x, MARK * 1.6);
                        ctx.fill();
                }
        }

        /* Lines of the tooltip: the marks near x. */
        marksAt(x) {
                const { time } = app.profile,
                        near = this.marks().filter(m => Math.abs(m.x - x) <= MARK);

                return [
                        ...near.slice(0, 8).map(m =>
                                el(
                                        'div',
                                        { class: 'mix mark' },
                                        el('i'),
                                        el('span', {}, cut(m.name, 200) || '(no name)'),
                                        el('b', {}, this.clock(m.at, time.length)),
                                ),
                        ),
                        near.length > 8 ? el('div', { class: 'dim' }, count(near.length - 8) + ' more marks') : null,
                ].filter(line => line);
        }

        /* What a press at x would move: an edge, the whole, or nothing: a new selection. */
        partAt(x) {
                const { from, to } = app.state,
                        x0 = this.xOf(from),
                        x1 = this.xOf(to);

                if (from === 0 && to === app.profile.time.buckets) return 'new';
                return Math.abs(x - x0) <= EDGE
                        ? 'from'
                        : Math.abs(x - x1) <= EDGE
                          ? 'to'
                          : x > x0 && x < x1
                            ? 'whole'
                            : 'new';
        }

        onDown(e) {
                if (e.button || !app.profile.time.buckets) return;
                const x = e.clientX - this.canvas.getBoundingClientRect().left;

                this.canvas.setPointerCapture(e.pointerId);
                this.drag = { part: this.partAt(x), x, from: app.state.from, to: app.state.to, moved: false };
                tooltip.hide();
        }

        onMove(e) {
                const x = Math.max(0, Math.min(e.clientX - this.canvas.getBoundingClientRect().left, this.width));

                this.hoverX = x;
                if (!this.drag) {
                        this.canvas.style.cursor = {
                                from: 'ew-resize',
                                to: 'ew-resize',
                                whole: 'grab',
                                new: 'crosshair',
                        }[this.partAt(x)];
                        this.showBucket(e, x);
                        this.draw();
                        return;
                }
                if (Math.abs(x - this.drag.x) > 3) this.drag.moved = true;
                if (this.drag.moved) this.dragTo(x);
        }

        dragTo(x) {
                const d = this.drag,
                        n = app.profile.time.buckets,
                        at = this.bucketAt(x),
                        start = this.bucketAt(d.x);

                if (d.part === 'new') app.selectTime(Math.floor(Math.min(at, start)), Math.ceil(Math.max(at, start)));
                else if (d.part === 'from') app.selectTime(Math.min(Math.round(at), d.to - 1), d.to);
                else if (d.part === 'to') app.selectTime(d.from, Math.max(Math.round(at), d.from + 1));
                else {
                        const by = Math.max(-d.from, Math.min(Math.round(at - start), n - d.to));

                        app.selectTime(d.from + by, d.to + by);
                }
        }

        onUp() {
                if (this.drag && !this.drag.moved) app.selectTime(0, app.profile.time.buckets);
                this.drag = null;
        }

        showBucket(e, x) {
                const { time, states, interval } = app.profile,
                        bar = this.bars().list.find(b => b.to > this.bucketAt(x));

                if (!bar) return;
                const start = time.first + bar.from * time.length,
                        sum = bar.cpus.reduce((a, b) => a + b, 0);
                const head = el(
                        'strong',
                        {},
                        this.clock(start, time.length) +
                                ' \u2013 ' +
                                this.clock(time.first + bar.to * time.length, time.length),
                );

                tooltip.show(
                        e.clientX,
                        e.clientY,
                        head,
                        ...this.marksAt(x),
                        ...states
                                .map((s, i) => ({ s, v: bar.cpus[i] }))
                                .filter(r => r.v > 0)
                                .sort((a, b) => b.v - a.v)
                                .map(({ s, v }) =>
                                        el(
                                                'div',
                                                { class: 'mix' },
                                                el('i', { style: { background: strong(STATE_HUES[s.name] || [0, 0]) } }),
                                                el('span', {}, s.label),
                                                el('b', {}, percent(v / sum)),
                                        ),
                                ),
                        el(
                                'div',
                                { class: 'dim' },
                                sum.toFixed(2) +
                                        this.unit() +
                                        ', bars of ' +
                                        duration((bar.to - bar.from) * time.length) +
                                        ', ' +
                                        duration(interval) +
                                        ' a tick',
                        ),
                );
        }

        /* Arrows move the selection, with shift its end. */
        onKey(e) {
                const n = app.profile.time.buckets,
                        step = Math.max(1, Math.round(n / 100)) * (e.key === 'ArrowLeft' ? -1 : 1);
                let { from, to } = app.state;

                if (e.key !== 'ArrowLeft' && e.key !== 'ArrowRight') return;
                e.preventDefault();
                e.stopPropagation();
                if (from === 0 && to === n) to = Math.max(1, Math.round(n / 10));
                else if (e.shiftKey) to = Math.max(from + 1, Math.min(n, to + step));
                else {
                        const by = Math.max(-from, Math.min(step, n - to));

                        from += by;
                        to += by;
                }
                app.selectTime(from, to);
        }

        /* The line over the timeline. */
        text() {
                const { time } = app.profile,
                        { from, to } = app.state,
                        all = from === 0 && to === time.buckets;
                const at = b => this.clock(time.first + b * time.length, time.length);

                if (!time.buckets) return 'no samples';
                return all
                        ? 'drag to select a part, in steps of ' + duration(time.length)
                        : at(from) + ' \u2013 ' + at(to) + ' \u00b7 ' + duration((to - from) * time.length);
        }
}
