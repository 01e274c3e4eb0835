"""A process that the daemon records is lent to whoever looks closer."""
import os
import signal

from shared import Daemon, Service, check, check_once, client_env, rule, s, suite, ticks_of, until


@suite.test("lend", "record -p of what the daemon records: lent at once, taken back at the end, however it ends", quick=True)
def lend():
    a, b = Service("lent"), Service("lent")
    d = Daemon(rule("lent"))
    for p in a, b:
        d.until_state(p.pid, "recording")
    keeps, trace = d.recorder(b.pid), s.tmpfile(".data")
    r = s.run([s.luasample(), "record", "-o", trace, "-d", "1s", "-p", str(a.pid)], env=client_env(d))
    check(r.status == 0 and ticks_of(trace) > 20, "status %d, %s" % (r.status, r.err))
    d.until_state(a.pid, "recording")
    check(d.recorder(b.pid) == keeps and d.service("lent")["failures"] == 0, d.service("lent"))
    started = s.Started([s.luasample(), "record", "-o", trace, "-p", "%d,%d" % (a.pid, b.pid)], env=client_env(d))
    for p in a, b:
        d.until_state(p.pid, "lent")
    until("both are recorded", lambda: started.read(started.err).count("attached to") == 2)
    check(d.json("status")["services"][0]["recorded"] == 0, d.json("status"))
    started.signal(signal.SIGKILL)
    started.wait()
    for p in a, b:
        d.until_state(p.pid, "recording")
    r = s.run([s.luasample(), "stack", str(a.pid)], env=client_env(d))
    check(r.status == 0 and "hot" in r.out or "usleep" in r.out, "stack: %d, %s%s" % (r.status, r.out, r.err))
    check(d.target(a.pid)["state"] == "recording", "stack took it away: %s" % d.target(a.pid))
    d.stop()
    used = a.end() + b.end()
    check(check_once(d.chunks("lent")) <= used, "more ticks than CPU time")


@suite.test("lend-none", "record -p without a daemon, or with one that does not answer, is as before")
def lend_none():
    a, trace = Service("alone"), s.tmpfile(".data")
    for socket in "", "/nowhere/control", __file__:
        r = s.run([s.luasample(), "record", "-o", trace, "-d", "200ms", "-p", str(a.pid)],
                  env=dict(os.environ, LUASAMPLE_SOCKET=socket))
        check(r.status == 0 and "daemon" not in r.err, "%r: %d, %s" % (socket, r.status, r.err))
    a.end()
