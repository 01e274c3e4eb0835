"""merge: what every command says of the merged trace is the sum of what it says of the inputs."""
import collections
import os
import re
import sys

import support as s
from made import MS, Program, rows, trace
from support import check

sys.path.append(os.path.join(s.TESTS, "reader"))

PLAIN = Program([("main", 0, 1), ("parse", 10, 2), ("hash", 30, 3)])
KEYS = ("function", "module-function", "line", "module", "vmstate", "zone", "zone-path", "thread", "vm", "coroutine",
        "jit-trace")
BOOT = (5000 * MS, 1700000000 * 1000 * MS, 6000 * MS)


def merge(*args, status=0):
    out = s.tmpfile(".data")
    r = s.run([s.luasample(), "merge", *args, "-o", out]).ok(status)
    return r, out


def flat(trace_, key):
    """Self and total ticks by what a row is, whatever the row is called in this trace."""
    sums = collections.Counter()
    for r in s.rows(trace_, "--by", key, "--full-path"):
        name = re.sub(r" of (VM \d+|process \d+)", "", r["name"])
        if key == "jit-trace":
            name = (r["trace"], re.sub(r"@[^ ]*|(:\d+)+$|trace \d+", "", name))
        elif key in ("thread", "vm"):
            name = r[key]
        elif key in ("function", "module-function") and r.get("source"):
            name = (r["source"], r["line_defined"], re.sub("@.*", "", name))
        else:
            name = re.sub("@.*|#.*", "", name).strip()
        sums[name, "self"] += r["self_ticks"]
        if key == "line" and not r.get("source"):
            continue                # what has no line is a row where it has ticks of its own, and its total is shown there alone
        sums[name, "total"] += r.get("total_ticks", 0)
    return +sums


def check_sum(inputs, merged, scales=None):
    for key in KEYS:
        want = collections.Counter()
        for i, t in enumerate(inputs):
            for k, v in flat(t, key).items():
                want[k] += v * (scales[i] if scales else 1)
        got = flat(merged, key)
        if got != want:
            wrong = {k: (got[k], want[k]) for k in got.keys() | want.keys() if got[k] != want[k]}
            raise s.Fail("--by %s: %s" % (key, dict(list(wrong.items())[:6])))


def check_info(inputs, merged):
    infos, m = [s.info(t) for t in inputs], s.info(merged)
    for key in ("samples", "ticks", "cpu_ns", "lost_ticks", "readable_samples", "readable_ticks", "jit_ticks",
                "jit_approximate_ticks", "jit_unknown_ticks", "signals", "threads", "vms", "own_handler_ns"):
        want = sum(i.get(key, 0) for i in infos)
        check(m.get(key, 0) == want, "%s is %s, not %s" % (key, m.get(key), want))
    own = [sorted((p["pid"], p["samples"], p["ticks"], p["lost_ticks"], p["cpu_ns"], p["own_ns"], p["from_ns"], p["to_ns"])
                  for p in ps) for ps in (m["processes"], [p for i in infos for p in i["processes"]])]
    check(own[0] == own[1] and own[0], "processes have %s, not %s" % tuple(own))
    for reason in m["lost"]:
        want = sum(i["lost"][reason] for i in infos)
        check(m["lost"][reason] == want, "lost %s is %d, not %d" % (reason, m["lost"][reason], want))
    for i in infos:
        check(set(i["notices"]) <= set(m["notices"]), "notices are lost: %s" % m["notices"])
    check(m["complete"], "not complete")
    return m


def table(path, pattern):
    """Key and rule of each row of a table of the source."""
    with open(os.path.join(os.path.dirname(s.TESTS), path), encoding="utf-8") as f:
        return dict(re.findall(pattern, f.read(), re.M))


def times(trace_):
    """[(time, thread)] of the samples, as dump has them."""
    j = s.json_of(["dump", "-i", trace_, "--json"])
    return [r["time_ns"] for r in j if r["record"] == "sample"]


def add_to(suite):
    @suite.test("merge-real", "real recordings: threads, VMs, JIT traces, zones, coroutines, native stacks")
    def real():
        inputs = [s.record_lua("zones.lua").ok().trace, s.record_lua("coros.lua").ok().trace,
                  s.record_lua("builtins.lua", "--native", args=["0.4"]).ok().trace,
                  s.record_lua("builtins.lua", "--native", args=["0.4"]).ok().trace]
        _, out = merge(*inputs)
        check_sum(inputs, out)
        m = check_info(inputs, out)
        check(m["command"].count("; ") == 2, m["command"])
        again, twice = merge(out, inputs[0])
        check_sum([out, inputs[0]], twice)
        check_info([out, inputs[0]], twice)
        sums = collections.Counter()
        for t in inputs:
            for line in s.report(t, "--format", "collapsed").ok().out.splitlines():
                sums["ticks"] += int(line.rsplit(" ", 1)[1])
        got = sum(int(l.rsplit(" ", 1)[1]) for l in s.report(out, "--format", "collapsed").ok().out.splitlines())
        check(got == sums["ticks"], "collapsed has %d ticks, not %d" % (got, sums["ticks"]))
        for args in (["--annotate"], ["--tree"], ["--split"], ["--format", "callgrind"]):
            s.report(out, *args).ok()
        size, parts = os.path.getsize(out), sum(map(os.path.getsize, inputs))
        check(size < 1.2 * parts + 2000, "%d bytes of %d" % (size, parts))
        # the same functions of both runs of one program are one, though the files were mapped at other addresses
        # (a name that two functions of a recording have is numbered, in the order of their time)
        alone, both = ([collections.Counter(r["name"].split("#")[0] for r in s.rows(t, "--min", "0") if r["source"] == "[C]")
                        for t in ts] for ts in (inputs[2:4], [merge(inputs[2], inputs[3])[1]]))
        common = alone[0] & alone[1]
        check(len(common) > 10, "functions of both runs: %s" % common)
        wrong = {n: (alone[0][n], alone[1][n], both[0][n]) for n in common if both[0][n] != max(alone[0][n], alone[1][n])}
        # by chance a run has the one function of a name alone, and the other run the other
        check(len(wrong) <= 1, "how often in one, in the other, in both: %s" % wrong)
        same = rows(inputs[2], merge(inputs[2], inputs[2])[1])
        check(all(abs(v["difference"]) < 1e-6 for v in same.values()), "shares of a recording merged with itself differ")

    @suite.test("merge-figures", "each row of info.def and losses.def is merged as it says, also with two intervals", quick=True)
    def figures():
        rules = table("formats/info.def", r'^LS_INFO\(\w+,\s*"(\w+)",\s*u64,\s*(\w+),')
        rules.update(("lost." + k, {"ticks": "TICKS", "things": "SUM"}[how]) for k, how in
                     table("formats/wire/losses.def", r'^LS_LOSS\(\w+,\s*"([\w-]+)",\s*\w+,\s*(\w+),').items())
        check(len(rules) > 50 and {"SUM", "TICKS", "MOST", "NO_LIMIT", "SAME", "OWN"} == set(rules.values()), "%s" % rules)
        keys = [k for k, how in rules.items() if how != "OWN"]
        values = [{k: 1000 + 2 * i for i, k in enumerate(keys)}, {k: 5001 + 3 * i for i, k in enumerate(keys)}]
        inputs = [trace(PLAIN, [(["main", "parse"], 100)], interval=interval,
                        extra=["info complete 1", "info ticks 9999999", *("info %s %d" % kv for kv in v.items())])
                  for v, interval in zip(values, (MS, 3 * MS))]
        *had, m = [s.info(t) for t in (*inputs, merge(*inputs)[1])]
        for i in (*had, m):
            i.update(("lost." + k, v) for k, v in i["lost"].items())
        for k in keys:
            a, b = (i[k] for i in had)
            check(a != b, "%s of the inputs does not tell" % k)
            want = {"SUM": a + b, "TICKS": a + 3 * b, "MOST": max(a, b), "NO_LIMIT": max(a, b), "SAME": None}[rules[k]]
            check(m.get(k) == want, "%s (%s) is %s, not %s" % (k, rules[k], m.get(k), want))
        same = s.info(merge(inputs[0], inputs[0])[1])
        check(all(same[k] == had[0][k] for k in keys if rules[k] == "SAME"), "what all have is not kept")

    @suite.test("merge-figures-real", "figures of wall time and coroutines that were recorded are in the merged trace")
    def figures_real():
        inputs = [s.record_lua("coros.lua", "-e", "cpu,wall,suspended", args=a).ok().trace for a in ((), ())]
        infos, m = [s.info(t) for t in inputs], s.info(merge(*inputs)[1])
        for key in ("off_cpu_ticks", "suspended_ticks", "ready_ticks", "suspended_looks", "watcher_cpu_ns", "recorder_cpu_ns"):
            check(m[key] == sum(i[key] for i in infos), "%s is %s of %s" % (key, m[key], [i[key] for i in infos]))
        check(m["suspended_looks"] and m["watcher_cpu_ns"], "nothing was counted: %s" % m)

    @suite.test("merge-times", "times of one boot stay; those of another boot or machine come behind", quick=True)
    def placed():
        def of(mono, boot, host):
            text = ["text host %s" % host.encode().hex(), "text kernel %s" % b"Linux".hex()]
            start = (mono, boot + mono + 1000 * MS, mono + 1000 * MS)
            return trace(PLAIN, [(["main", "parse"], 100)], start=start, extra=text)
        day = 86400 * 1000 * MS
        a, later = of(5000 * MS, 1700 * day, "one"), of(9000 * MS, 1700 * day + 100 * MS, "one")
        other_boot, other_host = of(2000 * MS, 1701 * day, "one"), of(5000 * MS, 1700 * day, "two")
        r, out = merge(later, a)
        check("another boot" not in r.err, r.err)
        check(sorted(times(out)) == sorted(times(a) + times(later)), "times of one boot were moved")
        r, out = merge(a, later, other_boot, other_host)
        check(len(re.findall("another boot or machine", r.err)) == 2, r.err)
        t = times(out)
        check(t[:200] == times(a) + times(later), "the first clock's times were moved")
        steps = [y - x for x, y in zip(t[200:300], t[201:300])]
        check(steps == [MS] * 99, "times within a recording changed: %s" % steps[:5])
        check(t[200] > t[199] and t[300] > t[299], "recordings overlap")
        notices = s.info(out)["notices"]
        check(sum("of another boot or machine" in n for n in notices) == 2, notices)
        whole = s.info(out)
        check(whole["start_monotonic_ns"] == 5000 * MS and whole["elapsed_ns"] >= t[-1] - 5000 * MS, whole)
        first_half = sum(r["self_ticks"] for r in s.rows(out, "--time", "0,2"))
        check(0 < first_half <= 100, "--time: %d ticks in the first two seconds" % first_half)

    @suite.test("merge-boots", "a boot is what the kernel calls it, whatever its clocks say; of an older trace, what they say", quick=True)
    def boots():
        def of(mono, boot, boot_id):
            text = ["text host %s" % b"one".hex(), "text kernel %s" % b"Linux".hex()]
            text += ["text boot %s" % boot_id.encode().hex()] if boot_id else []
            return trace(PLAIN, [(["main", "parse"], 100)], start=(mono, boot + mono + 1000 * MS, mono + 1000 * MS), extra=text)

        def moved(*inputs):
            r, out = merge(*inputs)
            return len(re.findall("another boot or machine", r.err)), times(out), [times(i) for i in inputs]
        day, a, b = 86400 * 1000 * MS, "0f3c1b9e-6d52-4a76-9a80-3f1f1d3e8a01", "7a9f26d4-11c8-4b5e-8a35-90c2b7d51e02"
        one = of(5000 * MS, 1700 * day, a)
        n, got, want = moved(one, of(9000 * MS, 1701 * day, a))             # the clock was set by a day
        check(n == 0 and sorted(got) == sorted(want[0] + want[1]), "%d of one boot were moved" % n)
        n, got, want = moved(one, of(5000 * MS, 1700 * day, b))             # a machine whose clock begins anew at each boot
        check(n == 1 and got[:100] == want[0] and got[100] > got[99], "two boots lie on each other: %d moved" % n)
        check(moved(one, of(9000 * MS, 1700 * day, ""))[0] == 0 and moved(one, of(9000 * MS, 1701 * day, ""))[0] == 1,
              "older traces are told apart otherwise than they were")
        with open("/proc/sys/kernel/random/boot_id") as f:
            boot = f.read().strip()
        recorded = s.record_lua("coros.lua").ok().trace
        check(s.info(recorded)["boot"] == boot and s.info(merge(recorded, recorded)[1])["boot"] == boot, "the boot is not in the trace")

    @suite.test("merge-intervals", "a multiple of the interval is scaled exactly; others are refused", quick=True)
    def intervals():
        a = trace(PLAIN, [(["main", "parse"], 100), (["main", "hash"], 40)],
                  extra=["info lost.ring-full 7", "info lost.middle-cut 3"])
        b = trace(PLAIN, [(["main", "parse"], 400)], interval=250000, extra=["info lost.ring-full 5"])
        r, out = merge(a, b)
        check("each counts as 4" in r.err, r.err)
        check_sum([a, b], out, [4, 1])
        i = s.info(out)
        check(i["asked_interval_ns"] == 250000 and i["lost"]["ring-full"] == 33 and i["lost"]["middle-cut"] == 3, i)
        same = rows("--normalize", "time", a, merge(a, trace(PLAIN, [(["main", "parse"], 1)], interval=250000))[1])
        check(same["hash"]["before"] == same["hash"]["after"], same["hash"])
        odd = trace(PLAIN, [(["main", "parse"], 400)], interval=300000)
        r, out = merge(a, odd, status=1)
        check(re.search(r"1 ms, which is no multiple of the 300 us of", r.err), r.err)
        check(not os.path.exists(out), "something was written")

    @suite.test("merge-golden", "kinds that nothing records yet, traces of the JIT compiler, damage", quick=True)
    def golden():
        gen = os.path.join(s.build_dir(), "tests", "gen", "gen_golden")
        inputs = []
        for option in ([], ["--jit"], ["--coded"]):
            inputs.append(s.tmpfile(".data"))
            s.run([gen, *option, inputs[-1]]).ok()
        _, out = merge(*inputs)
        check_sum(inputs, out)
        events = collections.Counter()
        for t in inputs:
            for e in s.info(t)["events"]:
                events[e["id"]] += e["sum"]
        got = {e["id"]: e["sum"] for e in s.info(out)["events"]}
        check(got == dict(events), "events %s, not %s" % (got, dict(events)))
        kinds = collections.Counter(r["record"] for r in s.json_of(["dump", "-i", out, "--json"]))
        for kind in ("aggregate", "span", "linecount", "label", "counter", "count", "jittrace", "irnames", "text"):
            check(kinds[kind], "no record %s in the merged trace" % kind)
        import compare
        compare.compare(out)                    # the second reader says the same of it
        broken = s.tmpfile(".data")
        with open(inputs[2], "rb") as f:
            data = bytearray(f.read())
        data[len(data) // 2] ^= 255
        with open(broken, "wb") as f:
            f.write(data)
        r = s.run([s.luasample(), "merge", broken, inputs[0], "-o", out]).ok()
        check("damaged" in r.err and any("damaged" in n for n in s.info(out)["notices"]), r.err)
        check_sum([inputs[0], inputs[0]], merge(inputs[0], inputs[0])[1])

    @suite.test("merge-bad", "missing, wrong and same files, wrong usage, output that cannot be written", quick=True)
    def bad():
        a = trace(PLAIN, [(["main", "parse"], 100)])
        empty = trace(PLAIN, [])
        for args, status, said in (([a, "/nowhere"], 1, "no such file"), ([a], 129, "two recordings or more"),
                                   ([], 129, "two")):
            r, out = merge(*args, status=status)
            check(said in r.err and len(r.err.splitlines()) == 1 and not os.path.exists(out), r.err)
        r = s.run([s.luasample(), "merge", a, a]).ok(129)
        check("-o FILE" in r.err, r.err)
        r = s.run([s.luasample(), "merge", a, a, "-o", "/nowhere/x"]).ok(1)
        check("cannot write /nowhere/x" in r.err, r.err)
        check_sum([a, empty], merge(a, empty)[1])
        r = s.run([s.luasample(), "merge", a, a, "-q", "-o", a]).ok()
        check(not r.err and s.info(a)["readable_ticks"] == 200, "over an input: %s" % r.err)
        r = s.run(["sh", "-c", '"$1" merge "$2" "$2" -o - | "$1" info -i - --json', "sh", s.luasample(), a]).ok()
        check('"readable_ticks": 400' in r.out, r.out[:300])
        if os.path.exists("/dev/full"):
            r = s.run(["sh", "-c", '"$1" merge "$2" "$2" -o - > /dev/full', "sh", s.luasample(), a]).ok(1)
            check("No space" in r.err, r.err)
        check(os.stat(a).st_mode & 0o77 == 0, "others may read the merged trace")
