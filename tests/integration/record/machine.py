"""luasample doctor."""
import json

from support import check, luasample, run

CHECKS = {"system", "agent", "memfd", "proc", "perf", "helper", "cputime", "wall", "ptrace", "limits", "clock"}


def add_to(suite):
    test = suite.test

    @test("doctor", "a table, the timer that follows, status 0", quick=True)
    def _():
        r = run([luasample(), "doctor"]).ok()
        check("Recording is possible; timer: " in r.out, r.out)
        check(r.err == "", r.err)

    @test("doctor-json", "the same as JSON", quick=True)
    def _():
        j = json.loads(run([luasample(), "doctor", "--json"]).ok().out)
        check(j["can_record"] is True and j["timer"] in ("perf", "helper", "cputime"), repr(j))
        check({c["name"] for c in j["checks"]} == CHECKS, repr([c["name"] for c in j["checks"]]))
        check(all(c["status"] in ("ok", "note", "fail") and c["text"] for c in j["checks"]), repr(j["checks"]))
        clock = next(c for c in j["checks"] if c["name"] == "clock")
        check(not (clock["text"].startswith("tsc;") and "clocksource=tsc" in clock["hint"]), "a hint to what is: %r" % clock)

    @test("doctor-programs", "says of each program whether it can be recorded", quick=True)
    def _():
        j = json.loads(run([luasample(), "doctor", "--json", "luajit", "true", "no-such-program"]).ok().out)
        check([p["status"] for p in j["programs"]] == ["ok", "note", "note"], repr(j["programs"]))

    @test("doctor-usage", "129", quick=True)
    def _():
        check(run([luasample(), "doctor", "--nonsense"]).status == 129, "status")

    @test("doctor-full", "stdout that cannot be written: status 1", quick=True)
    def _():
        r = run(["sh", "-c", luasample() + " doctor > /dev/full"])
        check(r.status == 1 and "No space" in r.err and r.err.count("\n") == 1, "status %d, %r" % (r.status, r.err))
