"""The daemon under a service manager: socket activation, notices, the example units."""
import os
import shutil
import signal
import socket

from shared import Daemon, check, s, suite, until

UNITS = os.path.join(s.ROOT, "examples", "systemd")


@suite.test("notify", "READY=1 is sent when the socket listens, STOPPING=1 at the end")
def notify():
    d = Daemon(start=False)
    path = s.tmpfile(".notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as n:
        n.bind(path)
        n.settimeout(30)
        d.started = s.Started([s.luasample(), "daemon", "--config", d.path], env=dict(os.environ, NOTIFY_SOCKET=path))
        check(n.recv(100) == b"READY=1", "not ready")
        check(d.ctl("status").status == 0, "it said READY=1 and does not listen")
        d.started.signal(signal.SIGTERM)
        check(n.recv(100) == b"STOPPING=1", "not stopping")
    check(d.started.wait() == 0, d.log())


@suite.test("activate", "the socket of systemd is taken, and stays at the end")
def activate():
    program = s.need("systemd-socket-activate")
    d = Daemon(start=False)
    d.started = s.Started([program, "-l", d.socket, s.luasample(), "daemon", "--config", d.path])
    until("systemd listens", lambda: os.path.exists(d.socket))
    check(d.json("status")["pid"] == d.started.p.pid, "another process answers")
    d.ctl("stop").ok()
    check(d.started.wait() == 0 and os.path.exists(d.socket), "the socket of systemd was removed")


@suite.test("activate-http", "systemd's socket of HTTP is known by its name, whichever comes first")
def activate_http():
    program = s.need("systemd-socket-activate")
    for order in (("ctl", "http"), ("http", "ctl")):
        d = Daemon(start=False)
        at = {"ctl": d.socket, "http": os.path.join(d.dir, "web")}
        d.started = s.Started([program, "-l", at[order[0]], "-l", at[order[1]], "--fdname=%s:%s" % order, s.luasample(), "daemon",
                               "--config", d.path])
        until("systemd listens", lambda: os.path.exists(at["ctl"]) and os.path.exists(at["http"]))
        check(d.json("status")["pid"] == d.started.p.pid, "another process answers")
        with socket.socket(socket.AF_UNIX) as c:
            c.connect(at["http"])
            c.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
            check(b" 200 " in c.recv(4096), "HTTP does not answer")
        d.ctl("stop").ok()
        check(d.started.wait() == 0 and os.path.exists(at["http"]), "the socket of systemd was removed")


@suite.test("units", "systemd-analyze finds nothing wrong with the example units")
def units():
    program, at = s.need("systemd-analyze"), s.tmpfile("-units")
    os.mkdir(at)
    for name in "luasample.service", "luasample.socket", "luasample-http.socket":
        with open(os.path.join(UNITS, name)) as f, open(os.path.join(at, name), "w") as to:
            to.write(f.read().replace("/usr/local/bin/luasample", s.luasample()))
    r = s.run([program, "verify", "--man=no", *[os.path.join(at, n) for n in sorted(os.listdir(at))]])
    check(r.status == 0 and "luasample" not in r.err, "status %d: %s" % (r.status, r.err))
    with open(os.path.join(at, "luasample.service"), "a") as f:
        f.write("[Service]\nExecStop=/no/such/program\n")
    r = s.run([program, "verify", "--man=no", os.path.join(at, "luasample.service")])
    check(r.status != 0 or "no/such" in r.err, "systemd-analyze finds nothing wrong with anything")
    shutil.rmtree(at)
