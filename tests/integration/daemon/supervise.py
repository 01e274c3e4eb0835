"""Programs are recorded, left, and recorded again after what may happen to the recorders and the daemon."""
import os
import random
import signal
import subprocess
import sys
import time

from shared import Daemon, Service, check, check_once, rule, s, suite, ticks_of, until


@suite.test("record", "two processes of a service are recorded into chunks; the status says so; all is as it was afterwards",
            quick=True)
def record():
    a = Service("web")
    d = Daemon(rule("web") + rule("nothing", "no-such-word"))
    d.until_state(a.pid, "recording")
    b, off = Service("web"), Service("web", env={"LUASAMPLE": "off"})
    d.until_state(b.pid, "recording")
    d.until_state(off.pid, "off")
    until("two chunks of each", lambda: min(sum("-%d-" % p.pid in c for c in d.chunks("web")) for p in (a, b)) >= 2)
    status = d.json("status")
    web, nothing = d.service("web"), d.service("nothing")
    check(status["pid"] == d.started.p.pid and status["store"] == d.store, status)
    check(web["state"] == "recording" and web["recorded"] == 2 and web["processes"] == 3 and web["chunks"] >= 4, web)
    check(nothing["reason"] == "no program matches its rule" and nothing["processes"] == 0, nothing)
    text = d.ctl("status").ok().out
    check("web " in text and "2 of 3" in text and "no program matches" in text, text)
    check("LUASAMPLE=off" in d.ctl("targets").ok().out, d.ctl("targets").out)
    d.stop()
    for p in a, b, off:
        check(len(os.listdir("/proc/%d/task" % p.pid)) == 1, "threads are left in %d" % p.pid)
    used = a.end() + b.end()
    off.end()
    chunks = d.chunks("web")
    check(not any("-%d-" % off.pid in c for c in chunks), "LUASAMPLE=off was recorded")
    total = check_once(chunks)
    check(0 < total <= used, "%.2f s of ticks, %.2f s of CPU time" % (total, used))
    check(sum(map(ticks_of, chunks)) * 0.01 > 0.8 * total, "not in hot: %s" % [s.rows(c, "--by", "function") for c in chunks[:2]])
    for c in chunks:
        check(os.stat(c).st_mode & 0o777 == 0o600, "mode of %s" % c)


@suite.test("first-second", "a program is left alone in its first second; a service is tried with one process first")
def first_second():
    d = Daemon(rule("few").replace("500ms", "3s"))
    a, b = Service("few"), Service("few")
    t = until("a is seen", lambda: d.target(a.pid))
    check(t["state"] == "waiting" and t["reason"] == "it has just begun", t)
    until("one is recorded", lambda: [t for t in d.json("targets") if t["state"] == "recording"])
    states = sorted((t["state"], t["reason"]) for t in d.json("targets"))
    check(states[1] == ("waiting", "the first process of its service is tried"), states)
    d.until_state(a.pid, "recording")
    d.until_state(b.pid, "recording")
    d.stop()
    a.end()
    b.end()


@suite.test("events", "the kernel says which programs begin, fork and end: they are recorded and forgotten without a look at all", quick=True)
def events():
    d = Daemon(rule("brief"), discover="1h", daemon="max-overhead = 100%\nmax-host-cpu = 100%")
    time.sleep(0.2)
    if d.json("status")["programs_by"] == "scan":
        d.stop()
        raise s.Skip("the kernel does not tell of programs here")
    began = time.monotonic()                    # it is younger than that: what it waits for us to see it is ready is in it
    a = Service("brief")
    d.until_state(a.pid, "recording", 20)
    check(time.monotonic() - began > 0.9, "it was attached to in its first second")
    check("events" in d.ctl("status").ok().out, d.ctl("status").out)
    used = cpu_ns(a.pid)
    until("it has run while it is recorded", lambda: cpu_ns(a.pid) > used + 100e6)
    a.end()
    until("it is forgotten", lambda: d.target(a.pid) is None)
    until("it is in the store", lambda: ticks_of_all(d.chunks("brief")) > 0)
    d.head = d.head.replace("max-overhead", "process-events = no\nmax-overhead")
    d.write(rule("brief"))
    d.ctl("reload").ok()
    check(d.json("status")["programs_by"] == "scan" and "scan" in d.ctl("status").ok().out, d.ctl("status").out)
    b = Service("brief")
    time.sleep(2)
    check(d.target(b.pid) is None, "it was seen without events")
    d.head = d.head.replace("discover = 1h", "discover = 100ms")
    d.write(rule("brief"))
    d.ctl("reload").ok()
    d.until_state(b.pid, "recording")
    d.stop()
    b.end()


def cpu_ns(pid):
    with open("/proc/%d/schedstat" % pid) as f:
        return int(f.read().split()[0])


def ticks_of_all(chunks):
    return sum(map(ticks_of, chunks))


@suite.test("crash", "a recorder that is killed costs one process some seconds; the second time the service is put aside")
def crash():
    a, b, other = Service("frail"), Service("frail"), Service("other")
    d = Daemon(rule("frail") + rule("other"))
    for p in a, b, other:
        d.until_state(p.pid, "recording")
    keeps = d.recorder(b.pid), d.recorder(other.pid)
    until("a chunk", lambda: any("-%d-" % a.pid in c for c in d.chunks("frail")))
    os.kill(d.recorder(a.pid), signal.SIGKILL)
    until("the failure is seen", lambda: d.service("frail")["failures"] == 1)
    check("ended by signal 9" in d.service("frail")["reason"], d.service("frail"))
    d.until_state(a.pid, "recording")
    check((d.recorder(b.pid), d.recorder(other.pid)) == keeps, "others were recorded anew")
    os.kill(d.recorder(a.pid), signal.SIGKILL)
    until("the service is put aside", lambda: d.service("frail")["state"] == "aside")
    until("b is left", lambda: d.target(b.pid)["recorder"] == 0)
    x = d.service("frail")
    check(3500 < x["aside_s"] <= 3600 and "ended by signal 9" in x["reason"], x)
    check(d.target(other.pid)["recorder"] == keeps[1], "the other service was put aside too")
    d.ctl("attach", "frail").ok()
    d.until_state(a.pid, "recording")
    d.until_state(b.pid, "recording")
    d.stop()
    used = a.end() + b.end()
    other.end()
    check(check_once(d.chunks("frail")) <= used, "more ticks than CPU time")


KILLS = 20
# a question that reads the store while that happens
ASK = """import socket
c = socket.socket(socket.AF_UNIX)
c.settimeout(20)
c.connect(%r)
c.sendall(b"GET /flame?last=1h HTTP/1.0\\r\\n\\r\\n")
while c.recv(65536):
    pass"""


def children_of(pid):
    try:
        with open("/proc/%d/task/%d/children" % (pid, pid)) as f:
            return [int(w) for w in f.read().split()]
    except OSError:
        return []


def kill_if_there(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


@suite.test("kills", "the daemon, or what it has started, is killed at random, 20 times: what was committed is there exactly once, services unharmed")
def kills():
    seed = int.from_bytes(os.urandom(4), "big")
    rand = random.Random(seed)
    services = [Service("tough") for _ in range(3)]
    d = Daemon(rule("tough"), start=False, store="merge = 1d\nmerge-old = 1d")        # what is merged has another name
    seen = {}
    for _ in range(KILLS):
        d.start()
        ask = subprocess.Popen([sys.executable, "-c", ASK % os.path.join(d.dir, "http")], stderr=subprocess.DEVNULL)
        time.sleep(rand.uniform(0.1, 1))
        if rand.random() < 0.3:         # one of its children first
            children = children_of(d.started.p.pid)
            if children:
                kill_if_there(rand.choice(children))
                time.sleep(rand.uniform(0, 0.3))
        d.kill()
        ask.wait()
        for c in d.chunks("tough"):
            seen.setdefault(c, os.stat(c).st_ino)
        check(all(os.path.exists(c) for c in seen), "seed %d: committed chunks are gone" % seed)
    d.start()
    for p in services:
        d.until_state(p.pid, "recording")
    until("all is committed that was left", lambda: len(os.listdir(d.store + "/incoming")) == len(services))
    d.stop()
    used = sum(p.end() for p in services)
    chunks = d.chunks("tough")
    check(all(c in chunks and os.stat(c).st_ino == ino for c, ino in seen.items()), "seed %d: committed chunks are gone" % seed)
    check(len(set(os.stat(c).st_ino for c in chunks)) == len(chunks), "seed %d: a chunk has two names" % seed)
    total = check_once(chunks)
    check(0 < total <= used, "seed %d: %.2f s of ticks, %.2f s of CPU time" % (seed, total, used))


@suite.test("names", "names of programs are shown with escapes, in text, JSON and messages; own recorders are no targets")
def names():
    evil = "x\x1b[31m\n{\"y\\"
    a = Service(evil, then=None)
    sleeper = s.Started(["python3", "-c", "import ctypes, time; ctypes.CDLL(None).prctl(15, %r.encode()); time.sleep(1000)" % evil,
                         "service.lua evil"])
    until("it has its name", lambda: open("/proc/%d/comm" % sleeper.p.pid, "rb").read().startswith(b"x\x1b"))
    d = Daemon("[service evil]\ncmd = *service.lua*\ncmd = *luasample*record*\ncanary = 100ms\n")
    try:
        d.until_state(a.pid, "recording")
        t = d.until_state(sleeper.p.pid, "refused")
        check("\x1b" not in t["name"] and "\n" not in t["name"] and "x\\x1b[31m\\n" in t["name"], t)
        for r in d.ctl("targets"), d.ctl("status"), s.run([s.luasample(), "daemon", "--config", d.path, "--check"]):
            check(r.status == 0 and "\x1b" not in r.out + r.err, "%r" % (r.out + r.err))
        check("\x1b" not in d.log(), d.log())
        mine = [x for x in d.json("targets") if x["pid"] == d.recorder(a.pid)]
        check(not mine, "the recorder is a target: %s" % mine)
    finally:
        sleeper.p.kill()
    d.stop()
    a.end()


@suite.test("no-luajit", "a program without LuaJIT is refused with the reason, tried later and later, and does not harm its service")
def no_luajit():
    a = Service("mixed")
    sleeper = s.Started(["sleep", "1000"])
    d = Daemon("[service mixed]\ncmd = *service.lua* mixed\ncmd = sleep 1000\ncanary = 100ms\n")
    try:
        d.until_state(a.pid, "recording")
        t = d.until_state(sleeper.p.pid, "refused")
        check("LuaJIT" in t["reason"] and t["retry_s"] > 0, t)
        check(d.service("mixed")["failures"] == 0, d.service("mixed"))
    finally:
        sleeper.p.kill()
    until("it is forgotten", lambda: d.target(sleeper.p.pid) is None)
    a.end()
    until("the service, too", lambda: d.target(a.pid) is None)
    check(d.service("mixed")["failures"] == 0, "the end of a program is no failure: %s" % d.service("mixed"))
    d.stop()
