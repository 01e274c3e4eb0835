"""Format otlp, decoded by protoc. No package of Debian or npm brings the published messages, so profiles.proto beside this
file lists their fields. Imported by run.py."""
import os
import re

import shared
import support as s
from support import check

HERE = os.path.dirname(os.path.abspath(__file__))
ESCAPES = {"n": 10, "r": 13, "t": 9, '"': 34, "'": 39, "\\": 92}


def unescape(text):
    """A string of protoc's text format."""
    out = bytearray()
    for m in re.finditer(r'\\([0-7]{1,3})|\\x([0-9a-f]{1,2})|\\(.)|([^\\]+)', text, re.S):
        octal, hexa, char, plain = m.groups()
        if plain:
            out += plain.encode()
        else:
            out.append(int(octal, 8) if octal else int(hexa, 16) if hexa else ESCAPES[char])
    return bytes(out)


def parse(text):
    """Messages as {field: [values]}."""
    stack = [{}]
    for line in text.splitlines():
        line = line.strip()
        if line == "}":
            stack.pop()
        elif line.endswith(" {"):
            check(not line[0].isdigit(), "a field that is not known: " + line)
            message = {}
            stack[-1].setdefault(line[:-2], []).append(message)
            stack.append(message)
        else:
            field, value = line.split(": ", 1)
            check(not field.isdigit(), "a field that is not known: " + line[:100])
            value = unescape(value[1:-1]) if value[0] == '"' else int(value)
            stack[-1].setdefault(field, []).append(value)
    check(len(stack) == 1, "not balanced")
    return stack[0]


def one(message, field, default=0):
    values = message.get(field, [default])
    check(len(values) == 1, "%s is there %d times" % (field, len(values)))
    return values[0]


class Decoded:
    def __init__(self, trace, *filters):
        protoc = shared.required(s.need, "protoc")
        path = s.tmpfile(".otlp")
        shared.export(trace, "--experimental", "-o", path, *filters)
        with open(path, "rb") as f:
            r = s.run([protoc, "-I", HERE, "--decode=otlp.ProfilesData", os.path.join(HERE, "profiles.proto")],
                      input=f.read())
        check(r.status == 0 and r.err == "", "protoc: %d %s" % (r.status, r.err[-300:]))
        self.data = parse(r.out)
        self.tables = one(self.data, "dictionary", {})
        self.strings = [x.decode("utf-8") for x in self.tables["string_table"]]
        self.check_tables()

    def check_tables(self):
        for table in ("mapping", "location", "function", "attribute", "stack"):
            first = self.tables[table + "_table"][0]
            check(first == {}, "%s 0 is something: %s" % (table, first))
        link, = self.tables["link_table"]
        check(link == {"trace_id": [bytes(16)], "span_id": [bytes(8)]}, "link 0: %s" % link)
        check(self.strings[0] == "" and len(set(self.strings)) == len(self.strings), "strings are there twice")
        for table, field, other in (("mapping", "filename_strindex", "string"),
                                    ("mapping", "attribute_indices", "attribute"),
                                    ("location", "mapping_index", "mapping"), ("location", "attribute_indices", "attribute"),
                                    ("function", "name_strindex", "string"), ("function", "filename_strindex", "string"),
                                    ("stack", "location_indices", "location"), ("attribute", "key_strindex", "string")):
            used = [i for x in self.tables[table + "_table"] for i in x.get(field, [])]
            check(all(0 < i < len(self.tables[other + "_table"]) for i in used), "%s.%s is out of bounds" % (table, field))

    def attributes(self, message):
        found = {}
        for i in message.get("attribute_indices", []):
            a = self.tables["attribute_table"][i]
            key, value = self.strings[one(a, "key_strindex")], one(a, "value")
            check(i and key not in found and len(value) == 1, "attribute %d: %s" % (i, a))
            kind, (v,) = next(iter(value.items()))
            found[key] = v.decode("utf-8") if kind == "string_value" else v
        return found

    def frames(self, stack):
        """(function, line) of a stack, innermost first."""
        out = []
        for i in self.tables["stack_table"][stack].get("location_indices", []):
            line = one(self.tables["location_table"][i], "lines")
            f = self.tables["function_table"][one(line, "function_index")]
            out.append((self.strings[one(f, "name_strindex")], one(line, "line")))
        return out

    def samples(self):
        """(profile, sample, stack's frames, attributes, ns)"""
        for resource in self.data.get("resource_profiles", []):
            for scope in resource["scope_profiles"]:
                for profile in scope["profiles"]:
                    for x in profile["samples"]:
                        yield profile, self.frames(one(x, "stack_index")), self.attributes(x), one(x, "values")


def sums(decoded, key):
    out = {}
    for _, frames, attributes, ns in decoded.samples():
        k = key(frames, attributes)
        out[k] = out.get(k, 0) + ns // 1000000
    return out


def add_to(suite):
    t = suite.test

    @t("otlp.totals", "protoc decodes it; ticks of functions, VM states and threads are report's", True)
    def totals():
        for what, trace, filters in [(k, shared.odd(k), []) for k in ("one", "mixed", "names", "deep", "heavy")] + \
                [(k, shared.golden(k), []) for k in ("app", "threads", "recursion")] + \
                [("filtered", shared.odd("mixed"), ["--vmstate", "gc"])]:
            d = Decoded(trace, *filters)
            for key, get in (("function", lambda f, a: f[0][0] if f else "[no function]"),
                             ("vmstate", lambda f, a: a["luasample.vmstate"])):
                want = {r["name"]: r["self_ticks"] for r in s.rows(trace, "--by", key, *filters) if r["self_ticks"]}
                off = shared.differ(sums(d, get), want)
                check(not off, "%s by %s: %s" % (what, key, off))
            want = sorted(r["self_ticks"] for r in s.rows(trace, "--by", "thread", *filters))
            got = sorted(sums(d, lambda f, a: (a.get("thread.id"), a.get("thread.name"))).values())
            check(got == want, "%s by thread: %s, not %s" % (what, got, want))

    @t("otlp.shape", "resources are processes; types, times, build ids, lines; an empty trace has no samples", True)
    def shape():
        d = Decoded(shared.odd("mixed"))
        pids = [one(a["value"][0], "int_value") for r in d.data["resource_profiles"] for a in r["resource"][0]["attributes"]
                if a["key"] == [b"process.pid"]]
        check(sorted(pids) == [4242, 4300], "pids: %s" % pids)
        for profile, _, _, _ in d.samples():
            for field in ("sample_type", "period_type"):
                v = one(profile, field)
                check((d.strings[one(v, "type_strindex")], d.strings[one(v, "unit_strindex")]) == ("cpu", "nanoseconds"),
                      "%s: %s" % (field, v))
            check(one(profile, "period") == 1000000 and one(profile, "time_unix_nano") == 1700000000 * 10**9,
                  "period or start: %s" % {k: v for k, v in profile.items() if k != "samples"})
        maps = {d.strings[one(m, "filename_strindex")]: d.attributes(m) for m in d.tables["mapping_table"][1:]}
        check(maps == {"/usr/lib/lpeg.so": {"process.executable.build_id.gnu": "deadbeef0001"}, "/usr/lib/libc.so.6": {}},
              "mappings: %s" % maps)
        lines = {f for _, frames, _, _ in d.samples() for f in frames}
        check({("work", 0), ("work", 12), ("work", 13)} <= lines, "lines: %s" % lines)
        zones = {a.get("luasample.zone") for _, _, a, _ in d.samples()}
        check(None in zones and len(zones) == 3, "zones: %s" % zones)
        check(not list(Decoded(shared.odd("empty")).samples()), "an empty trace has samples")

    @t("otlp.labels", "the program's labels and coroutines are attributes, with the ticks of report")
    def labels():
        trace = s.record_lua("labels.lua", "-q").ok().trace
        d = Decoded(trace)
        for key, by in (("route", "label:route"), ("luasample.coroutine", "coroutine")):
            want = {r["name"]: r["self_ticks"] for r in s.rows(trace, "--by", by) if r["self_ticks"] and r["name"] != "(none)"}
            got = sums(d, lambda f, a: a.get(key))
            for none in (None, "main"):         # ticks outside every VM are in no coroutine, and report says main
                got.pop(none, None)
                want.pop(none, None)
            off = shared.differ(got, want)
            check(got and not off, "by %s: %s, %s" % (by, got, off))
