// Decodes a pprof file with the package pprof-format and prints it as JSON, strings in place of their numbers, so that
// tests/integration/export/pprof.py can compare it: pprof.mjs FILE
import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import { Profile } from "pprof-format";

const p = Profile.decode(gunzipSync(readFileSync(process.argv[2])));
const strings = p.stringTable.strings;
const text = (i) => {
    if (!(Number(i) in strings)) throw new Error(`string ${i} of ${strings.length}`);
    return strings[Number(i)];
};
const type = (t) => [text(t.type), text(t.unit)];
console.log(JSON.stringify({
    first: strings[0],
    types: p.sampleType.map(type),
    period: [...type(p.periodType), Number(p.period)],
    default: text(p.defaultSampleType),
    time: String(p.timeNanos),
    duration: Number(p.durationNanos),
    comments: p.comment.map(text),
    mappings: p.mapping.map((m) => ({
        id: Number(m.id), start: Number(m.memoryStart), limit: Number(m.memoryLimit), offset: Number(m.fileOffset),
        file: text(m.filename), build_id: text(m.buildId), named: m.hasFunctions,
    })),
    functions: p.function.map((f) => ({
        id: Number(f.id), name: text(f.name), system: text(f.systemName), file: text(f.filename), line: Number(f.startLine),
    })),
    locations: p.location.map((l) => ({
        id: Number(l.id), mapping: Number(l.mappingId), address: Number(l.address),
        lines: l.line.map((x) => [Number(x.functionId), Number(x.line)]),
    })),
    samples: p.sample.map((s) => ({
        locations: s.locationId.map(Number), values: s.value.map(Number),
        labels: s.label.map((l) => [text(l.key), text(l.str)]),
    })),
}));
