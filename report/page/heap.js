/* The heap of the VMs over time below the activity, with the phases of their collectors, and a line of figures. */

const PHASE_HUES = [
        [0, 0],
        [213, 1],
        [347, 1.05],
        [55, 1],
        [28, 1.1],
        [268, 0.95],
];
const PHASE_BAR = 5; /* pixels */

function bytesText(n) {
        const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
        let i = 0;

        for (; n >= 1024 && i + 1 < units.length; i++) n /= 1024;
        return (i && n < 100 ? n.toFixed(1) : n.toFixed(0)) + '\u202f' + units[i];
}

class Heap {
        constructor() {
                const { heap } = app.profile;

                this.canvas = $('heap-canvas');
                this.draw = soon(() => this.paint());
                if (!heap) return;
                $('heap-box').hidden = $('heap-text').hidden = false;
                $('time-panel').classList.add('has-heap');
                $('heap-text').replaceChildren(...this.texts());
                this.canvas.addEventListener('pointermove', e => this.show(e));
                this.canvas.addEventListener('pointerleave', () => tooltip.hide());
                new ResizeObserver(() => this.draw()).observe($('heap-box'));
        }

        /* Each phase's share of the CPU time that the page shows, when it shows CPU time. */
        texts() {
                const { heap, event, header } = app.profile,
                        all = event === 'cpu' ? header.ticks : 0,
                        sum = heap.times.reduce((n, t) => n + t.ticks, 0);
                const more = heap.vms - heap.tracks.length;

                return [
                        el('b', {}, 'Heap'),
                        ' peak ' +
                                bytesText(heap.peak) +
                                (heap.vms > 1 ? ' of the largest of ' + count(heap.vms) + ' VMs' : '') +
                                (more > 0 ? ' (' + heap.tracks.length + ' are drawn)' : '') +
                                ', ' +
                                count(heap.cycles) +
                                (heap.cycles === 1 ? ' cycle' : ' cycles') +
                                ' of the collector seen' +
                                (all ? ', ' + percent(sum / all) + ' of the time in it: ' : ''),
                        ...heap.times
                                .map((t, i) => ({ ...t, i }))
                                .filter(t => all && t.ticks)
                                .map(t =>
                                        el(
                                                'span',
                                                { class: 'heap-phase', title: t.meaning, 'data-ticks': t.ticks },
                                                el('i', { class: 'swatch', style: { background: strong(PHASE_HUES[t.i]) } }),
                                                t.name + ' ' + percent(t.ticks / all),
                                        ),
                                ),
                ];
        }

        paint() {
                const { heap, time } = app.profile,
                        box = $('heap-box');

                if (!heap || !box.clientWidth || !time.buckets) return;
                const width = box.clientWidth,
                        height = box.clientHeight,
                        ctx = fitCanvas(this.canvas, width, height);

                this.width = width;
                ctx.clearRect(0, 0, width, height);
                heap.tracks
                        .map((t, i) => ({ t, i }))
                        .reverse()
                        .forEach(({ t, i }) => this.paintTrack(ctx, t, HUES[i % HUES.length], height - PHASE_BAR - 2));
                if (heap.tracks.length) this.paintPhases(ctx, heap.tracks[0], height - PHASE_BAR);
                this.paintVeil(ctx, height);
                ctx.font = '11px ' + theme('sans');
                app.timeline.label(ctx, bytesText(heap.peak), width - 6, 12, 'right');
        }

        x(bucket) {
                return (bucket / app.profile.time.buckets) * this.width;
        }

        /* A band from the least to the most of each part, on what is below it. */
        paintTrack(ctx, track, hue, h) {
                const { heap, time } = app.profile,
                        y = v => h - (v / Math.max(heap.peak, 1)) * (h - 4);

                track.bytes.forEach(([bucket, least, most], i) => {
                        const next = track.bytes[i + 1] ? track.bytes[i + 1][0] : time.buckets,
                                last = track.bytes[i + 1] ? track.bytes[i + 1][1] : least;
                        const left = this.x(bucket),
                                one = Math.max(this.x(bucket + 1) - left, 0.6);

                        ctx.fillStyle = strong([hue, 1]);
                        ctx.globalAlpha = 0.25;
                        ctx.fillRect(left, y(least), Math.max(this.x(next) - left, 0.6), h - y(least));
                        ctx.globalAlpha = 1;
                        ctx.fillRect(left, y(most), one, Math.max(y(least) - y(most), 1));
                        if (next > bucket + 1) ctx.fillRect(left, y(Math.min(last, most)), this.x(next) - left, 1);
                });
        }

        /* How much of each part of the time the collector of the largest heap was in a cycle, and in what of it. */
        paintPhases(ctx, track, top) {
                const { time } = app.profile;

                for (const [bucket, ...ns] of track.phases) {
                        const left = this.x(bucket),
                                w = Math.max(this.x(bucket + 1) - left, 0.6),
                                i = ns.indexOf(Math.max(...ns));

                        ctx.globalAlpha = 0.3 + 0.7 * Math.min(1, ns.reduce((a, b) => a + b, 0) / time.length);
                        ctx.fillStyle = strong(PHASE_HUES[i + 1]);
                        ctx.fillRect(left, top, w, PHASE_BAR);
                }
                ctx.globalAlpha = 1;
        }

        /* What is not selected, as in the activity. */
        paintVeil(ctx, h) {
                const { from, to } = app.state;

                if (from === 0 && to === app.profile.time.buckets) return;
                ctx.fillStyle = theme('veil');
                ctx.fillRect(0, 0, this.x(from), h);
                ctx.fillRect(this.x(to), 0, this.width - this.x(to), h);
        }

        show(e) {
                const { heap, time } = app.profile,
                        x = e.clientX - this.canvas.getBoundingClientRect().left,
                        bucket = Math.max(0, Math.min(time.buckets - 1, Math.floor((x / this.width) * time.buckets)));
                const phases = heap.tracks[0].phases.find(p => p[0] === bucket);

                tooltip.show(
                        e.clientX,
                        e.clientY,
                        el('strong', {}, app.timeline.clock(time.first + bucket * time.length, time.length)),
                        ...heap.tracks.map((t, i) => {
                                const at = t.bytes.filter(b => b[0] <= bucket).pop();

                                return at
                                        ? el(
                                                  'div',
                                                  { class: 'mix' },
                                                  el('i', { style: { background: strong([HUES[i % HUES.length], 1]) } }),
                                                  el('span', {}, cut(t.name, 100)),
                                                  el('b', {}, bytesText(at[2])),
                                          )
                                        : null;
                        }).filter(line => line),
                        ...(phases || [])
                                .slice(1)
                                .map((ns, i) =>
                                        ns
                                                ? el(
                                                          'div',
                                                          { class: 'mix' },
                                                          el('i', { style: { background: strong(PHASE_HUES[i + 1]) } }),
                                                          el('span', {}, heap.times[i + 1].name + ': ' + heap.times[i + 1].meaning),
                                                          el('b', {}, percent(ns / time.length)),
                                                  )
                                                : null,
                                )
                                .filter(line => line),
                        el('div', { class: 'dim' }, 'the most in ' + duration(time.length) + ', as ticks read it'),
                );
        }
}
