"""The control socket: requests, refusals, hostile clients; stores and sockets that cannot be used."""
import os
import socket
import stat
import time

from shared import Daemon, Service, check, check_once, rule, s, suite, until


@suite.test("ctl", "attach, detach, flush, stop; one line for what is wrong", quick=True)
def ctl():
    a, loose = Service("unit"), Service("loose")
    d = Daemon(rule("unit"), chunk="1m")
    d.until_state(a.pid, "recording")
    d.ctl("attach", str(loose.pid)).ok()
    d.until_state(loose.pid, "recording")
    d.ctl("flush").ok()
    check(len(d.chunks("unit")) == 1 and len(d.chunks("attached")) == 1, "chunks: %s" % d.chunks("unit"))
    d.ctl("detach", str(a.pid)).ok()
    d.until_state(a.pid, "off")
    d.ctl("attach", str(a.pid)).ok()
    d.until_state(a.pid, "recording")
    d.ctl("detach", "unit").ok()
    until("the service is left", lambda: d.target(a.pid)["recorder"] == 0)
    check(d.service("unit")["state"] == "detached", d.service("unit"))
    d.ctl("attach", "unit").ok()
    d.until_state(a.pid, "recording")
    off = Service("off", env={"LUASAMPLE": "off"})
    for words, status, says in [(["attach", "unti"], 1, "there is no service unti; did you mean unit?"),
                                (["attach", "999999999"], 1, "there is no such process"),
                                (["attach", str(off.pid)], 1, "LUASAMPLE=off"),
                                (["detach", str(os.getpid())], 1, "no rule names this process"),
                                (["stauts"], 129, "request 'stauts' is not known; did you mean 'status'?"),
                                ([], 129, "what is asked?"), (["attach"], 129, "give one PID or SERVICE"),
                                (["status", "x"], 129, "status takes no argument"), (["--nothing"], 129, "unknown option")]:
        r = d.ctl(*words)
        check(r.status == status and says in r.err and r.err.count("\n") == 1, "%s: %d, %r" % (words, r.status, r.err))
    d.ctl("stop").ok()
    check(d.started.wait() == 0, d.log())
    check(os.listdir(d.store + "/incoming") == [], "the answer came before the end")
    r = d.ctl("status")
    check(r.status == 1 and "no daemon listens at" in r.err and r.err.count("\n") == 1, r.err)
    used = a.end()
    check(0 < check_once(d.chunks("unit")) <= used, "ticks and CPU time")
    loose.end()
    off.end()


def client(d):
    c = socket.socket(socket.AF_UNIX)
    c.settimeout(30)
    for _ in range(400):
        try:
            c.connect(d.socket)
            break
        except BlockingIOError:         # too many wait to be taken
            time.sleep(0.05)
    return c


@suite.test("burst", "a process is recorded closely for a while; the views have both")
def burst():
    a = Service("near", share=0.5)
    d = Daemon(rule("near", more="burst-time = 3s"), daemon="max-overhead = 100%\nmax-host-cpu = 100%")
    check("none is being recorded" in d.ctl("burst", "near").err, "a burst of nothing")
    d.until_state(a.pid, "recording")
    until("a chunk", lambda: d.chunks("near"))
    d.ctl("burst", "near").ok()
    def close():
        t = d.target(a.pid)
        return t["state"] == "recording" and t["burst"] == 1 and t["interval_ns"] == 1000000
    until("it is recorded closely", close)
    check("1 ms, closely" in d.ctl("targets").ok().out, d.ctl("targets").out)
    check(d.ctl("burst", str(a.pid)).status == 1 and d.ctl("burst", "neat").err.count("did you mean near"), "twice")
    close_chunks = until("chunks of it", lambda: [c for c in d.chunks("near") if s.info(c).get("interval_ns") == 1000000])
    check(s.run([s.luasample(), "report", "--event", "wall", "-i", close_chunks[0]]).ok().out, "no wall time")
    until("it is over", lambda: d.target(a.pid)["burst"] == 0)
    until("it is as before", lambda: d.target(a.pid)["state"] == "recording" and d.target(a.pid)["interval_ns"] == 10000000)
    d.stop()
    a.end()
    out = s.run([s.luasample(), "report", "--store", d.store, "--service", "near", "--by", "function"]).ok().out
    check("hot" in out, out)


@suite.test("kept", "what is kept for good has bounds: its size, and half of the times for each rule or service; others are kept on", quick=True)
def kept():
    a, b = Service("wants"), Service("else")
    d = Daemon(rule("wants") + rule("else"))
    for p in a, b:
        d.until_state(p.pid, "recording")
    until("chunks", lambda: d.chunks("wants") and d.chunks("else"))
    for i in range(50):
        os.makedirs(d.store + "/kept/wants.%d.%d" % (i, i))
    r = d.ctl("snapshot", "wants")
    check(r.status == 1 and r.err == "luasample: ctl: snapshot: 50 times of wants are kept already: remove some of kept/\n", r.err)
    said = d.ctl("snapshot", "else").ok().out.strip()
    files = until("it is kept", lambda: os.path.isdir(d.store + "/" + said) and os.listdir(d.store + "/" + said))
    for i in range(49):
        os.makedirs(d.store + "/kept/other.%d.%d" % (i, i))
    r = d.ctl("snapshot", "else")
    check(r.status == 1 and "100 times are kept already" in r.err, r.err)
    for i in range(49):
        os.rmdir(d.store + "/kept/other.%d.%d" % (i, i))
    with open(d.store + "/kept/wants.0.0/large", "wb") as f:
        f.truncate(3 << 20)
    os.link(d.store + "/kept/wants.0.0/large", d.store + "/kept/wants.1.1/large")      # a second name, and no more bytes
    d.head += "max-kept = 3M\n"
    d.write(rule("wants") + rule("else"))
    d.ctl("reload").ok()
    size = (3 << 20) + sum(os.stat("%s/%s/%s" % (d.store, said, f)).st_size for f in files)
    until("it is counted", lambda: d.json("status")["kept_bytes"] == size and d.json("status")["kept"] == 51)
    r = d.ctl("snapshot", "else")
    check(r.status == 1 and "more than max-kept; remove some of kept/" in r.err and r.err.count("\n") == 1, r.err)
    os.unlink(d.store + "/kept/wants.0.0/large")
    os.unlink(d.store + "/kept/wants.1.1/large")
    until("it is kept again", lambda: d.ctl("snapshot", "else").status == 0)
    check("51 times are kept for good" in d.ctl("status").ok().out or "52 times" in d.ctl("status").out, d.ctl("status").out)
    d.stop()
    a.end()
    b.end()


@suite.test("hostile", "floods, endless lines, zero bytes, slow readers and idle clients: the daemon answers others meanwhile")
def hostile():
    d = Daemon()
    mode = os.stat(d.socket).st_mode
    check(stat.S_IMODE(mode) == 0o600, "mode %o" % mode)
    for text, want in [(b"x" * 100000 + b"\n", b"error: the line has more than"), (b"sta\0tus\n", b"error: there is a zero byte"),
                       (b"nonsense\n", b"error: no such request"), (b"\n", b"error: no such request"),
                       (b"attach\n", b"error: attach: a process"), (b"lend 1,x\n", b"error: lend: give process ids"),
                       (b"lend 99999999999999999999\n", b"error: lend: give process ids"),
                       (b"attach \x1b[31m\xff\n", b"error: there is no service \\x1b[31m")]:
        c = client(d)
        try:
            c.sendall(text)
        except (BrokenPipeError, ConnectionResetError):
            pass
        try:
            got = c.recv(4096)
        except ConnectionResetError:
            got = want              # it hung up with our bytes unread
        check(got.startswith(want), "%r: %r" % (text[:20], got))
        c.close()
    idle = [client(d) for _ in range(20)]
    deaf = [client(d) for _ in range(8)]
    for c in deaf:
        c.sendall(b"status\n")
    begin = time.monotonic()
    d.ctl("status").ok()
    check(time.monotonic() - begin < 8, "others wait for those that say nothing")
    for c in idle:
        check(c.recv(10) == b"", "an idle client was answered")
    before = len(os.listdir("/proc/%d/fd" % d.started.p.pid))
    for _ in range(300):
        c = client(d)
        c.send(b"stat")
        c.close()
    d.ctl("status").ok()
    for c in idle + deaf:
        c.close()
    until("their descriptors are closed", lambda: len(os.listdir("/proc/%d/fd" % d.started.p.pid)) <= before)
    d.stop()


@suite.test("refused", "stores that are not ours, newer, in use; sockets with a long path, taken, in an open directory", quick=True)
def refused():
    def said(d, want):
        r = s.run([s.luasample(), "daemon", "--config", d.path])
        check(r.status == 1 and want in r.err and r.err.count("\n") == 1, "%r: status %d, %r" % (want, r.status, r.err))

    d = Daemon(start=False)
    os.mkdir(d.store)
    open(d.store + "/something", "w").close()
    said(d, "not a store of luasample")
    with open(d.store + "/version", "w") as f:
        f.write("luasample store 2\n")
    said(d, "a store of version 2; this luasample reads version 1")
    with open(d.store + "/version", "w") as f:
        f.write("something else\n")
    said(d, "not a store of luasample")
    os.unlink(d.store + "/version")
    os.symlink("/etc/passwd", d.store + "/version")
    said(d, "/version: Too many levels of symbolic links")
    if os.geteuid() == 0:
        os.mkdir(d.dir + "/ro")
        for at, want in ("ro/new", "ro/new: the store cannot be made: Read-only file system"), ("ro", "ro/lock: Read-only file system"):
            ro = Daemon(start=False)
            ro.head = ro.head.replace(ro.store, d.dir + "/" + at)
            ro.write("")
            r = s.run(["unshare", "-m", "sh", "-c", "mount -t tmpfs -o ro,mode=700 tmpfs %s/ro && exec %s daemon --config %s" %
                       (d.dir, s.luasample(), ro.path)])
            check(r.status == 1 and want in r.err and r.err.count("\n") == 1, r.err)
    first = Daemon()
    second = Daemon(start=False)
    second.head = second.head.replace(second.store, first.store)
    second.write("")
    said(second, "another daemon uses this store")
    second = Daemon(start=False)
    second.head = second.head.replace(second.socket, first.socket)
    second.write("")
    said(second, "another daemon listens there")
    second.head = second.head.replace(first.socket, second.dir + "/" + "x" * 60 + "/" + "y" * 60)
    second.write("")
    said(second, "the path of the socket is too long")
    second.head = second.head.replace(second.dir + "/" + "x" * 60 + "/" + "y" * 60, second.dir + "/open/control")
    second.write("")
    os.mkdir(second.dir + "/open")
    os.chmod(second.dir + "/open", 0o777)
    said(second, "the directory of the socket must be yours, and not writable by others")
    first.kill()
    first.start()                   # a socket and a lock that were left behind
    first.stop()


@suite.test("user", "--user: configuration, store and socket are the user's own; clients find them by themselves")
def user():
    home, run, a = s.tmpfile("-home"), s.tmpfile("-run"), Service("mine")
    os.makedirs(home + "/.config/luasample")
    os.mkdir(run, 0o700)
    with open(home + "/.config/luasample/daemon.conf", "w") as f:
        f.write("[daemon]\ndiscover = 100ms\n[store]\nchunk = 1s\nmin-free = 0\n" + rule("mine"))
    env = dict(os.environ, HOME=home, XDG_RUNTIME_DIR=run)
    for name in "XDG_CONFIG_HOME", "XDG_STATE_HOME", "LUASAMPLE_SOCKET", "LUASAMPLE_STORE":
        env.pop(name, None)
    started = s.Started([s.luasample(), "daemon", "--user"], env=env)
    until("it listens", lambda: os.path.exists(run + "/luasample/control"))
    check(stat.S_IMODE(os.stat(run + "/luasample").st_mode) == 0o700, "the directory of the socket is open")
    base = home + "/.local/state/luasample"
    until("a chunk", lambda: os.path.exists(base + "/services/mine"))
    check(stat.S_IMODE(os.stat(base).st_mode) == 0o700, "the store is open")
    env["LUASAMPLE_SOCKET"] = run + "/luasample/control"
    s.run([s.luasample(), "ctl", "stop"], env=env).ok()
    check(started.wait() == 0, started.read(started.err))
    r = s.run([s.luasample(), "report", "--raw"], env=dict(env, LUASAMPLE_STORE=base))
    check(r.status == 1 and "luasample.data" in r.err, "without --service and the like a file is read: %s" % r.err)
    r = s.run([s.luasample(), "report", "--since", "1h"], env=dict(env, LUASAMPLE_STORE=base)).ok()
    check("hot" in r.out, r.out)
    a.end()
    del env["XDG_RUNTIME_DIR"]
    r = s.run([s.luasample(), "daemon", "--user"], env=env)
    check(r.status == 1 and "set XDG_RUNTIME_DIR" in r.err and r.err.count("\n") == 1, r.err)
