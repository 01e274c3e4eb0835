/* The data of the page into typed arrays. What is here was written by report/page_*.c. */

function bytesOf(base64) {
        const text = atob(base64),
                bytes = new Uint8Array(text.length);

        for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
        return bytes;
}

/* n LEB128 numbers; doubles are exact up to 2^53, which no sum of ticks reaches. */
function varints(base64, n, ret) {
        const bytes = bytesOf(base64);
        let at = 0;

        for (let i = 0; i < n; i++) {
                let byte = bytes[at++],
                        value = byte & 127,
                        unit = 128;

                while (byte > 127) {
                        byte = bytes[at++];
                        value += (byte & 127) * unit;
                        unit *= 128;
                }
                ret[i] = value;
        }
        return ret;
}

/* Differences, their sign in the lowest bit. */
function zigzags(base64, n) {
        const ret = varints(base64, n, new Float64Array(n));
        let last = 0;

        for (let i = 0; i < n; i++) {
                last += ret[i] % 2 ? -(ret[i] + 1) / 2 : ret[i] / 2;
                ret[i] = last;
        }
        return Uint32Array.from(ret);
}

/* Cells by bucket: those of bucket b are start[b] .. start[b + 1] - 1. */
function decodeCells(d, buckets) {
        const start = new Uint32Array(buckets + 1),
                perBucket = varints(d.per_bucket, buckets, new Uint32Array(buckets));
        const stack = varints(d.stack, d.n, new Uint32Array(d.n));

        for (let b = 0; b < buckets; b++) {
                start[b + 1] = start[b] + perBucket[b];
                for (let i = start[b] + 1; i < start[b + 1]; i++) stack[i] += stack[i - 1];
        }
        return {
                start,
                stack,
                context: varints(d.context, d.n, new Uint32Array(d.n)),
                ticks: varints(d.ticks, d.n, new Float64Array(d.n)),
        };
}

/* Stack 0 is the root of all. A parent has a smaller number than what it called. */
function decodeStacks(d) {
        const n = d.n,
                parent = new Uint32Array(n),
                up = varints(d.parent, n - 1, new Uint32Array(n - 1));
        const location = new Uint32Array(n),
                at = zigzags(d.location, n - 1);

        for (let i = 1; i < n; i++) {
                parent[i] = i - up[i - 1];
                location[i] = at[i - 1];
        }
        return { n, parent, location };
}

/* Things of one name in both recordings are one. Changes what refers to them by number. */
function joinNames(names, change) {
        const known = new Map(names.map((text, i) => [text, i]).reverse());

        change(i => known.get(names[i]));
}

/* Labels by key: what values there are, and of each context which. Keys and values come from the program. */
function decodeLabels(d) {
        const none = '(none)',
                sets = d.labels.map(pairs => new Map(pairs.flatMap((text, i) => (i % 2 ? [] : [[text, pairs[i + 1]]]))));

        return [...new Set(sets.flatMap(set => [...set.keys()]))].map(key => {
                const value = set => sets[set].get(key) ?? none,
                        texts = [...new Set(d.contexts.map(c => value(c[3])))].sort(),
                        known = new Map(texts.map((text, i) => [text, i]));

                return { key, column: 'label:' + key, texts, of: d.contexts.map(c => known.get(value(c[3]))) };
        });
}

/* null when the event has no time. */
function decodeJit(d) {
        return (
                d && {
                        recorded: d.recorded,
                        ticks: d.ticks,
                        uncompiled: d.uncompiled,
                        more: d.more_traces,
                        states: d.states.map(([ticks, meaning]) => ({ ticks, meaning })),
                        reasons: d.reasons.map(([reason, text, place, ticks]) => ({ reason, text, place, ticks })),
                        advice: d.advice,
                        meanings: d.meanings.map(([title, meaning]) => ({ title, meaning })),
                        traces: d.traces.map(([name, start, link, ticks, size, listing]) => ({
                                name,
                                start,
                                link,
                                ticks,
                                size,
                                listing,
                        })),
                        lines: d.lines.map(([source, line, mark, compiled, uncompiled, trace, reason]) => ({
                                source,
                                line,
                                mark,
                                compiled,
                                uncompiled,
                                trace,
                                reason,
                        })),
                }
        );
}

/* null when nothing is known of the VMs' heaps. */
function decodeHeap(d) {
        return (
                d && {
                        vms: d.vms,
                        peak: d.peak,
                        cycles: d.cycles,
                        times: d.times.map(([name, meaning, ticks]) => ({ name, meaning, ticks })),
                        tracks: d.tracks,
                }
        );
}

function decode(d) {
        const column = i => Uint32Array.from(d.contexts, c => c[i]),
                labels = decodeLabels(d);

        if (d.base) {
                joinNames(d.zones, of =>
                        d.contexts.forEach(c => {
                                c[1] = of(c[1]);
                        }),
                );
                joinNames(d.modules, of =>
                        d.functions.forEach(f => {
                                f[2] = of(f[2]);
                        }),
                );
        }
        return {
                title: d.title,
                event: d.event,
                besidesCpu: d.besides_cpu,
                header: d.header,
                facts: d.facts,
                interval: d.interval_ns,
                states: d.states.map(s => ({ name: s[0], label: s[1] })),
                zones: d.zones,
                threads: d.threads,
                labels,
                marks: d.marks.map(([at, thread, name]) => ({ at, thread, name })),
                modules: d.modules,
                sources: d.sources,
                functions: d.functions.map(f => ({
                        name: f[0],
                        kind: f[1],
                        module: f[2],
                        source: f[3],
                        first: f[4],
                        last: f[5],
                        inlined: f[6],
                })),
                locations: {
                        n: d.locations.n,
                        func: zigzags(d.locations.function, d.locations.n),
                        line: zigzags(d.locations.line, d.locations.n),
                },
                stacks: decodeStacks(d.stacks),
                contexts: {
                        n: d.contexts.length,
                        state: column(0),
                        zone: column(1),
                        thread: column(2),
                        ...Object.fromEntries(labels.map(l => [l.column, Uint32Array.from(l.of)])),
                },
                time: {
                        first: d.time.first_ns,
                        length: d.time.bucket_ns,
                        buckets: d.time.buckets,
                        samples: varints(d.time.samples, d.time.buckets, new Float64Array(d.time.buckets)),
                        squares: Float64Array.from(d.time.squares),
                },
                jit: decodeJit(d.jit),
                heap: decodeHeap(d.heap),
                cells: decodeCells(d.cells, d.time.buckets),
                base: d.base ? { title: d.base.title, ...decodeCells(d.base, d.base.buckets) } : null,
        };
}
