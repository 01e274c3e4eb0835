"""What recordings cost is kept within bounds: budgets of processor time, and a disk that is full."""
import os

from shared import Daemon, Service, check, rule, s, suite, until

MEASURE = "overhead-window = 1s\noverhead-calm = 1s\n"


def cpu_of(chunks):
    """CPU time of the samples; each chunk has an interval of its own."""
    total, intervals = 0.0, set()
    for c in chunks:
        ns = s.info(c)["interval_ns"]
        intervals.add(ns)
        total += sum(r["self_ticks"] for r in s.rows(c, "--by", "function")) * ns / 1e9
    return total, intervals


@suite.test("overhead", "an agent that takes too much doubles its interval, and halves it again; sums stay right", quick=True)
def overhead():
    a = Service("dear", share=0.8)
    d = Daemon(rule("dear"), daemon=MEASURE + "max-overhead = 0.0001%\nmax-host-cpu = 100%")
    d.until_state(a.pid, "recording")
    check(d.target(a.pid)["interval_ns"] == 10000000, d.target(a.pid))
    until("the interval is doubled twice", lambda: d.target(a.pid)["slowed"] >= 2)
    until("it is recorded so", lambda: d.target(a.pid)["state"] == "recording" and d.target(a.pid)["interval_ns"] >= 40000000)
    check(d.json("status")["slowed"] >= 2 and "times an interval was doubled" in d.ctl("status").ok().out, d.ctl("status").out)
    check(" ms" in d.ctl("targets").ok().out, d.ctl("targets").out)
    d.head = d.head.replace("0.0001%", "100%")
    d.write(rule("dear"))
    d.ctl("reload").ok()
    until("the interval returns", lambda: d.target(a.pid)["interval_ns"] == 10000000)
    d.until_state(a.pid, "recording")
    check(d.json("status")["quickened"] >= 2, d.json("status"))
    until("chunks of it", lambda: len(d.chunks("dear")) >= 3)
    d.stop()
    used = a.end()
    total, intervals = cpu_of(d.chunks("dear"))
    check({10000000, 20000000, 40000000} <= intervals, intervals)
    check(0 < total <= used + 0.1, "%.2f s of samples, %.2f s of CPU time" % (total, used))


@suite.test("host-budget", "when all recordings take too much of the host, the most expensive one is slowed")
def host_budget():
    a, b = Service("wide", share=0.9), Service("wide", share=0.1)
    d = Daemon(rule("wide"), daemon=MEASURE + "max-overhead = 100%\nmax-host-cpu = 0.0001%")
    for p in a, b:
        d.until_state(p.pid, "recording")
    until("the one that works is slowed", lambda: d.target(a.pid)["slowed"] >= 1)
    until("the cost is known", lambda: d.json("status")["host_cost_ppm"] > 0)
    d.stop()
    a.end()
    b.end()


@suite.test("small-disk", "the recorder's disk is full: ticks are dropped and counted, it goes on, and records again")
def small_disk():
    if os.geteuid():
        raise s.Skip("only root can mount a small disk")
    a = Service("crowded", share=0.8)
    d = Daemon(rule("crowded"), start=False, daemon=MEASURE + "max-overhead = 100%\nmax-host-cpu = 100%")
    os.mkdir(d.store, 0o700)
    s.run(["mount", "-t", "tmpfs", "-o", "size=1m,mode=0700", "tmpfs", d.store]).ok()
    try:
        d.start()
        d.until_state(a.pid, "recording")
        recorder = d.recorder(a.pid)
        until("a chunk", lambda: d.chunks("crowded"))
        fill = os.path.join(d.store, "fill")
        with open(fill, "wb", buffering=0) as f:
            try:
                while True:
                    f.write(bytes(4096))
            except OSError:
                pass
        until("ticks are dropped", lambda: d.json("status")["dropped_ticks"] > 0)
        check("ticks were dropped" in d.ctl("status").ok().out, d.ctl("status").out)
        os.unlink(fill)
        before = len(d.chunks("crowded"))
        until("it records again", lambda: len(d.chunks("crowded")) >= before + 3)
        check(d.recorder(a.pid) == recorder, "it was another recorder")
        check(d.service("crowded")["failures"] == 0, d.service("crowded"))
        d.stop()
        wrong = s.run([s.luasample(), "store", "--store", d.store, "verify"]).err.splitlines()
        check(all("missing" in l for l in wrong), "more is damaged than what was dropped: %s" % wrong)
        used = a.end()
        total, _ = cpu_of(d.chunks("crowded"))
        check(0 < total <= used + 0.1, "%.2f s of samples, %.2f s of CPU time" % (total, used))
    finally:
        if d.started.p.poll() is None:
            d.kill()
        s.run(["umount", d.store])
