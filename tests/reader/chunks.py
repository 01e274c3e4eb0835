"""Chunks and records of a trace, by luasample-trace(5) alone: checksums, varints, columns, the kinds and their columns.
Used by read_trace.py. What breaks a rule of the page raises Damage."""
import collections
import struct

import coded
import xxhash
import zstandard

CHUNK_MAGIC, MAJOR = bytes.fromhex("A74C5343"), 1
CHUNK_HEADER = 32
MAX_RAW, MAX_STORED, MAX_ROWS, MAX_STRING = 4194304, 4227584, 262144, 1048576
CHECK_AT = slice(20, 24)
ZSTD, LAST = 1, 2                               # flags of a chunk
DEFINITIONS, SAMPLES, CHECKPOINT, INDEX_CHUNK, PARITY = 1, 2, 3, 4, 5
CHUNK_TYPES = {1: "definitions", 2: "samples", 3: "checkpoint", 4: "index", 5: "parity"}
BYTES, CODED = 4, 4                             # encoding of columns of bytes; of others
MASK = (1 << 64) - 1
CONTINUES, LEAF_LINE_UNKNOWN = 1, 16            # flags of a sample
VMSTATES, MAX_EVENT = 5, 255
COROUTINE_OF_STACK = 0xffffffff
SAMPLE_LIMITS = [("event", MAX_EVENT), ("vmstate", VMSTATES - 1), ("flags", 255), ("type", 255), ("lived", 0xffffffff)] + [
    (name, 0xffffffff) for name in ("thread", "vm", "coroutine", "zone", "stack", "weight")]


class Damage(Exception):
    """The chunk breaks a rule of the page; the text says which."""


class Kind:
    def __init__(self, name, how, limit, columns):
        self.name, self.how, self.limit = name, how, limit
        self.columns, self.strings, self.reals, self.key = [], set(), set(), None
        for c in columns.split():
            c, _, mark = c.partition(":")
            if "s" in mark:
                self.strings.add(c)
            if "r" in mark:
                self.reals.add(c)
            if "k" in mark:
                self.key = c
            self.columns.append(c)


# The tables of the page: columns in the order of their numbers, from 1; :s a string's id, :k the key, :r a real number.
KINDS = {
    2: Kind("sample", "rows", 0, "event thread vm coroutine zone stack vmstate flags time weight base_ns interval_ns "
            "label value type lived"),
    3: Kind("string", "ids", 8388608, "length bytes"),
    4: Kind("source", "ids", 1048576, "name:s path:s size text_hash"),
    5: Kind("text", "rows", 0, "source offset total length bytes"),
    6: Kind("function", "ids", 4194304, "kind flags source first_line last_line hash mapping offset name:s"),
    7: Kind("name", "key", 0, "function:k rank name:s"),
    8: Kind("location", "ids", 16777216, "function line"),
    9: Kind("stack", "ids", 33554432, "parent location coroutine"),
    10: Kind("zone", "ids", 1048576, "parent name:s"),
    11: Kind("thread", "ids", 1048576, "process tid name:s"),
    12: Kind("vm", "ids", 1048576, "process number runtime:s"),
    13: Kind("coroutine", "ids", 4194304, "vm function generation"),
    14: Kind("mapping", "ids", 1048576, "path:s start end file_offset build_id:s"),
    15: Kind("process", "ids", 1048576, "pid name:s"),
    16: Kind("event", "key", 0, "event:k name:s unit:s sampled period clock:s"),
    17: Kind("info", "key", 0, "key:sk is_str number text:s"),
    18: Kind("clocks", "ids", 1048576, "monotonic_ns realtime_ns boottime_ns"),
    19: Kind("threadcpu", "key", 0, "thread:k monotonic_ns cpu_ns"),
    20: Kind("region", "ids", 4194304, "begin thread time_ns cpu_ns name:s"),
    21: Kind("notice", "ids", 65536, "text:s"),
    22: Kind("index", "key", 0, "number:k offset size type ticks"),
    23: Kind("aggregate", "ids", 16777216, "event value stack thread vm coroutine zone calls wall_ns cpu_ns bytes"),
    24: Kind("span", "ids", 16777216, "event value phase span time_ns thread coroutine stack name:s"),
    25: Kind("linecount", "ids", 16777216, "event value function line"),
    26: Kind("jittrace", "ids", 1048576, "vm number root parent exit start link_kind:s link abort:s address size ir:s "
             "map:s function"),
    27: Kind("label", "ids", 1048576, "parent key:s value:s"),
    29: Kind("irnames", "key", 0, "vm:k names:s"),
    30: Kind("jitmap", "rows", 0, "function length bytes"),
    31: Kind("proctotals", "key", 0, "process:k ticks samples lost_ticks cpu_ns own_ns from_ns to_ns"),
    32: Kind("counter", "ids", 1048576, "process name:s what vm"),
    33: Kind("count", "ids", 67108864, "counter time_ns value:r"),
    36: Kind("attempt", "ids", 16777216, "vm start first_line last_line stop flags reason:s about count ns bytecodes"),
}
SAMPLE = 2
BYTES_KINDS = {3, 5, 30}                        # those whose column "bytes" holds bytes; AGGREGATE's is a number


def xxh64(data):
    return xxhash.xxh64(data, seed=0).intdigest()


# Varints and columns.

def varint(b, p, end):
    v = shift = 0
    while True:
        if p >= end:
            raise Damage("a varint is cut")
        c = b[p]
        p += 1
        v |= (c & 127) << shift
        if c < 128:
            break
        shift += 7
        if shift > 63:
            raise Damage("a varint is too long")
    if v > MASK:
        raise Damage("a varint has more than 64 bits")
    return v, p


def varints(b, p, end, count):
    """Exactly count varints; they must end at end."""
    out = []
    if count > end - p:
        raise Damage("a column is shorter than its rows need")
    for _ in range(count):
        if p < end and b[p] < 128:              # the usual case, without the call
            out.append(b[p])
            p += 1
        else:
            v, p = varint(b, p, end)
            out.append(v)
    if p != end:
        raise Damage("a column is longer than its rows need")
    return out


def delta(b, p, end, first, count):
    out, v = [], 0
    for z in varints(b, p, end, count):
        v = (v + ((z >> 1) ^ -(z & 1))) & MASK
        out.append(v)
    return out


def fixed(b, p, end, first, count):
    if end - p != 8 * count:
        raise Damage("a column of fixed numbers has another size")
    return list(struct.unpack_from("<%dQ" % count, b, p))


def runs(b, p, end, first, count):
    out = []
    while len(out) < count:
        v, p = varint(b, p, end)
        more, p = varint(b, p, end)
        if more >= count - len(out):
            raise Damage("a run is longer than the rows")
        out += [v] * (more + 1)
    if p != end:
        raise Damage("bytes after the last run")
    return out


def planes(b, p, end, first, count):
    if p >= end or not 1 <= b[p] <= 8 or end - p - 1 != b[p] * count:
        raise Damage("a column of planes has another size")
    out = [0] * count
    for plane in range(b[p]):
        at = p + 1 + plane * count
        for i, byte in enumerate(b[at:at + count]):
            if byte:
                out[i] |= byte << (8 * plane)
    return out


def back(b, p, end, first, count):
    return [(first + i - v) & MASK for i, v in enumerate(varints(b, p, end, count))]


ENCODINGS = {1: lambda b, p, end, first, count: varints(b, p, end, count), 2: delta, 3: fixed, 5: runs, 6: planes, 7: back}


class Record:
    """One record: kind number, first id, and its columns as lists; a column that is absent has no list."""
    def __init__(self, kind_number, first, count, columns, size):
        self.kind_number, self.first, self.count, self.columns, self.size = kind_number, first, count, columns, size
        self.kind = KINDS.get(kind_number)
        self.not_constant = set()               # columns with another encoding than constant

    def column(self, name):
        return self.columns.get(name) or [0] * self.count


def read_record(number, b, p, end, rows_left):
    kind, size = KINDS[number], end - p
    first, p = varint(b, p, end)
    count, p = varint(b, p, end)
    if count > rows_left:
        raise Damage("more rows than a chunk may have")
    if kind.how == "ids" and (first == 0 or first + count - 1 > kind.limit):
        raise Damage("ids out of range")
    columns, seen, raw, in_code = {}, {}, None, {}
    while p < end:
        tag, p = varint(b, p, end)
        column, encoding = tag >> 3, tag & 7
        if column == 0:
            raise Damage("a column has number 0")
        if encoding == 0:
            value, p = varint(b, p, end)
            start = stop = p
        else:
            size_of, start = varint(b, p, end)
            if size_of > end - start:
                raise Damage("a column reaches beyond its record")
            p = stop = start + size_of
        if column > len(kind.columns):
            continue
        if column in seen:
            raise Damage("a column comes twice")
        seen[column] = encoding
        name = kind.columns[column - 1]
        bytes_here = name == "bytes" and number in BYTES_KINDS
        if bytes_here and encoding != BYTES:
            raise Damage("a column has an encoding of another type")
        if bytes_here:
            raw = b[start:stop]
        elif encoding == CODED:
            in_code[name] = b[start:stop]
        else:
            columns[name] = [value] * count if encoding == 0 else ENCODINGS[encoding](b, start, stop, first, count)
    if number in BYTES_KINDS:
        columns["bytes"] = split(raw or b"", columns.get("length") or [0] * count, number)
    if in_code:
        try:
            coded.decode(number, in_code, columns, first, count)
        except coded.Bad as e:
            raise Damage(str(e))
    record = Record(number, first, count, columns, size)
    record.not_constant = {kind.columns[c - 1] for c, encoding in seen.items() if encoding != 0}
    return record


def split(raw, lengths, number):
    if sum(lengths) != len(raw):
        raise Damage("the lengths are not those of the bytes")
    if number == 3 and any(n > MAX_STRING for n in lengths):
        raise Damage("a string is too long")
    out, p = [], 0
    for n in lengths:
        out.append(raw[p:p + n])
        p += n
    return out


def read_records(payload):
    out, p, rows, end = [], 0, 0, len(payload)
    while p < end:
        number, p = varint(payload, p, end)
        size, p = varint(payload, p, end)
        if size > end - p:
            raise Damage("a record reaches beyond its chunk")
        if number not in KINDS:
            out.append(Record(number, 0, 0, {}, size))
        else:
            out.append(read_record(number, payload, p, p + size, MAX_ROWS - rows))
            rows += out[-1].count
        p += size
    return out


# Chunks.

class Chunk:
    """A chunk's header, checked; then its payload, checked and decoded by load()."""
    def __init__(self, data, offset):
        self.data, self.offset, self.records = data, offset, []
        self.sums_known = False            # samples whose checksums and extra are right
        (self.major, self.type, self.flags, extra_len, self.number, stored, self.raw_size, self.check,
         self.sum) = struct.unpack_from("<4x4B4IQ", data, offset)
        self.stored_size, at = stored, offset + CHUNK_HEADER
        self.extra = data[at:at + extra_len]
        self.payload_at = at + extra_len
        self.end = self.payload_at + stored
        self.size = self.end - offset

    def header_ok(self):
        if self.data[self.offset:self.offset + 4] != CHUNK_MAGIC or self.payload_at > len(self.data):
            return False
        head = bytearray(self.data[self.offset:self.payload_at])
        head[CHECK_AT] = bytes(4)
        return xxh64(bytes(head)) & 0xffffffff == self.check

    def load(self):
        if self.major > MAJOR:
            raise Damage("of a newer version")
        if self.raw_size > MAX_RAW or self.stored_size > MAX_STORED or (
                not self.flags & ZSTD and self.stored_size != self.raw_size):
            raise Damage("its size is not possible")
        if self.end > len(self.data):
            raise Damage("cut short, or still being written")
        stored = self.data[self.payload_at:self.end]
        if xxh64(stored) != self.sum:
            raise Damage("checksum does not match")
        if self.type not in CHUNK_TYPES:
            return
        if self.type == SAMPLES:
            contents = self.contents()
            if len(contents) % 4 or any(event > MAX_EVENT for event in contents[::4]):
                raise Damage("its list of contents makes no sense")
            self.sums_known = True
        payload = decompress(stored, self.raw_size) if self.flags & ZSTD else stored
        if self.type == PARITY:                 # of an older writer
            return
        records = read_records(payload)
        if self.type == SAMPLES:
            check_samples(records, contents)
        self.records = records

    def contents(self):
        """The varints of the extra."""
        out, p = [], 0
        while p < len(self.extra):
            v, p = varint(self.extra, p, len(self.extra))
            out.append(v)
        return out


def decompress(stored, raw_size):
    d, out, size, p = zstandard.ZstdDecompressor().decompressobj(), [], 0, 0
    try:
        while p < len(stored) and not d.eof:
            out.append(d.decompress(stored[p:p + 1024]))
            p += 1024
            size += len(out[-1])
            if size > raw_size:
                break
    except zstandard.ZstdError:
        raise Damage("cannot be decompressed")
    if size != raw_size or not d.eof or d.unused_data or p < len(stored):
        raise Damage("cannot be decompressed")
    return b"".join(out)


def check_samples(records, extra):
    """The rows' values are in their limits, and their totals are those of the extra."""
    totals = collections.defaultdict(lambda: [0, 0, 0])
    for r in records:
        if r.kind_number != SAMPLE:
            continue
        for name, greatest in SAMPLE_LIMITS:
            if max(r.column(name), default=0) > greatest:
                raise Damage("a value of a sample is out of range: " + name)
        if r.not_constant & {"base_ns", "interval_ns"}:
            raise Damage("the unit of the times is not constant")
        for event, flags, weight in zip(r.column("event"), r.column("flags"), r.column("weight")):
            t = totals[event]
            t[0] += 1
            t[1] += not flags & CONTINUES
            t[2] += weight
    if {extra[i]: extra[i + 1:i + 4] for i in range(0, len(extra), 4)} != totals or (
            len(extra) // 4 != len(totals)):
        raise Damage("its totals are not those of its rows")
