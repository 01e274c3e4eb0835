"""The interval holds: at 10 ms, 1 ms and 250 us, with each timer, on four kinds of work, the sum of the weights is
within 2 % of CPU time / interval. Imported by run.py."""
import support as s
from support import check
from threads import rest

TIMERS = ["perf", "helper", "cputime"]
KINDS = ["arithmetic", "allocation", "files", "osclock"]
INTERVALS = [("10ms", 1e7, 2.6), ("1ms", 1e6, 1.2), ("250us", 2.5e5, 1.0)]     # name, ns, CPU seconds


def holds(timer, kind, interval, ns, seconds):
    r = s.record_lua("kinds.lua", "--timer", timer, args=[kind, str(seconds)], interval=interval)
    if r.status == s_refused(r):
        raise s.Skip("--timer %s is not permitted here: %s" % (timer, r.err.strip()[-150:]))
    r.ok()
    i = r.info()
    check(i["timer"] == timer, "asked for --timer %s, got %s" % (timer, i["timer"]))
    # By the program's own clock: what was before its VM is not sampled, of what was before its first line we do not know.
    cpu, begin = (float(x) for x in r.out.split()[1::2])
    weights = sum(x["self_ticks"] for x in r.rows("--by", "function"))
    want = cpu * 1e9 / ns
    # With cputime ticks come with the kernel's own, or what a busy machine leaves of them: what follows the last is in none.
    after = rest(r.trace, 1) if timer == "cputime" else 0
    slack = want * 0.02 + 1.5 + after
    check(want - begin * 1e9 / ns - slack <= weights <= want + slack, "weights sum to %d, CPU time %.3f s (%.3f at its begin) / interval is %.0f; ticks %s lost %s" % (
        weights, cpu, begin, want, i.get("ticks"), i.get("lost")))
    # And by the kernel's: ticks are in samples, or lost for a reason.
    got = i["sample_ticks"] + sum(i["lost"][k] for k in ("ring-full", "no-stack", "bad-stack", "no-safe-point"))
    asked = i["cpu_ns"] / ns
    check(abs(got - asked) <= max(0.02 * asked, 2) + after, "%d ticks, %.0f expected: %s" % (got, asked, i["lost"]))
    check(i["sample_ticks"] >= 0.95 * asked - after, "only %d of %.0f ticks are in samples: %s" % (i["sample_ticks"], asked, i["lost"]))
    check(abs(i["achieved_rate_hz"]) > 0 and i["asked_interval_ns"] == ns, "info lacks the rates: %s" % i)


def s_refused(r):
    return 1 if r.status == 1 and "timer" in r.err else -1


def add_to(suite):
    for interval, ns, seconds in INTERVALS:
        for timer in TIMERS:
            for kind in KINDS:
                def test(a=(timer, kind, interval, ns, seconds)):
                    holds(*a)
                suite.test("interval.%s.%s.%s" % (interval, timer, kind), "",
                           interval == "1ms" and timer == "perf" and kind == "arithmetic")(test)

    @suite.test("interval.default-timer", "the default is the best that doctor finds")
    def default_timer():
        r = s.record_lua("seventy.lua", args=["0.3"]).ok()
        doctor = s.run([s.luasample(), "doctor"]).ok().out
        check(r.info()["timer"] in doctor, "%s is not in: %s" % (r.info()["timer"], doctor))
        check("samples" in r.err and "asked" in r.err, "the summary lacks the rates: " + r.err)
