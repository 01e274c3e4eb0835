"""What the tests of the daemon share: services to record, a daemon with its own store and socket, and what is in the store."""
import datetime
import json
import os
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(os.path.dirname(HERE)))
import support as s
from support import check

suite = s.Suite("daemon")
SERVICE = os.path.join(HERE, "service.lua")
_serial = 0


def until(what, fn, timeout=60):
    """Waits until fn() says something true, and returns that."""
    end = time.monotonic() + timeout
    while True:
        got = fn()
        if got:
            return got
        check(time.monotonic() < end, "%s: not after %d s" % (what, timeout))
        time.sleep(0.05)


class Service:
    """A program that works until it is told to end. name is a word of its command line that no other has."""
    def __init__(self, name, share=0.3, env=None, then=None):
        self.stop = s.tmpfile(".stop")
        self.started = s.Started([s.luajit().program, SERVICE, self.stop, str(share), name],
                                 env=dict(os.environ, **(env or {})), then=then)
        self.pid = self.started.p.pid
        self.started.wait_for("ready")

    def end(self):
        """Its CPU time; it has run to its end, and said nothing else."""
        open(self.stop, "w").close()
        status = self.started.wait()
        out, err = self.started.read(self.started.out), self.started.read(self.started.err)
        check(status == 0 and not err, "the service ended with %d: %s" % (status, err))
        lines = out.splitlines()
        check(len(lines) == 2 and lines[0] == "ready" and lines[1].startswith("whole "), "the service wrote %r" % out)
        return float(lines[1].split()[1])

    def tracer(self):
        with open("/proc/%d/status" % self.pid) as f:
            return [int(l.split()[1]) for l in f if l.startswith("TracerPid")][0]


class Daemon:
    """A daemon of this test: config is what stands in [service ...] sections; base replaces values of the others."""
    def __init__(self, config="", start=True, chunk="1s", discover="100ms", daemon="", store=""):
        self.dir = s.tmpfile("-daemon")
        os.mkdir(self.dir, 0o700)
        self.path, self.store = os.path.join(self.dir, "daemon.conf"), os.path.join(self.dir, "store")
        self.socket = os.path.join(self.dir, "control")
        self.head = ("[daemon]\nstore = %s\nsocket = %s\ndiscover = %s\n%s\n[store]\nchunk = %s\nmin-free = 0\n%s\n" %
                     (self.store, self.socket, discover, daemon, chunk, store))
        self.write(config)
        self.started, self.before, self.env = None, [], {}       # before: words before the command; env: beside ours
        if start:
            self.start()

    def write(self, config):
        with open(self.path, "w") as f:
            f.write(self.head + config)

    def start(self):
        self.started = s.Started([*self.before, s.luasample(), "daemon", "--config", self.path],
                                 env=dict(os.environ, **self.env))
        until("the daemon listens", self.listens)
        return self

    def listens(self):
        check(self.started.p.poll() is None, "the daemon ended: " + self.log())
        return self.ctl("status").status == 0

    def log(self):
        return self.started.read(self.started.err)

    def ctl(self, *words):
        return s.run([s.luasample(), "ctl", "--socket", self.socket, *words])

    def json(self, what):
        return json.loads(self.ctl(what, "--json").ok().out)

    def target(self, pid):
        return next((t for t in self.json("targets") if t["pid"] == pid), None)

    def service(self, name):
        return next(x for x in self.json("status")["services"] if x["name"] == name)

    def until_state(self, pid, state, timeout=60):
        def look():
            t = self.target(pid)
            return t if (t["state"] if t else None) == state else None
        try:
            return until("process %d is %s" % (pid, state), look, timeout)
        except s.Fail as e:
            raise s.Fail("%s: %s\n%s" % (e, self.target(pid), self.log()))

    def recorder(self, pid):
        return self.until_state(pid, "recording")["recorder"]

    def chunks(self, service):
        """Paths of what is committed, in the order of time."""
        base, found = os.path.join(self.store, "services", service), []
        for folder, _, names in os.walk(base):
            found += [os.path.join(folder, n) for n in names]
        return sorted(found)

    def stop(self):
        """Ends it as a service manager does; nothing is left but the store."""
        self.started.signal(signal.SIGTERM)
        status = self.started.wait()
        check(status == 0, "the daemon ended with %d: %s" % (status, self.log()))
        check(os.listdir(os.path.join(self.store, "incoming")) == [], "left in incoming: %s" %
              os.listdir(os.path.join(self.store, "incoming")))
        check(not os.path.exists(self.socket), "the socket is left")

    def kill(self):
        self.started.signal(signal.SIGKILL)
        self.started.wait()


def client_env(d):
    """For commands that ask this daemon."""
    return dict(os.environ, LUASAMPLE_SOCKET=d.socket)


def rule(name, word=None, more=""):
    """A rule for services of that word; the canary waits for half a second. Those of this run alone: another may go on beside it,
    or have been killed and left its daemon, which records all that its rules name."""
    return "[service %s]\ncmd = *%s* %s\ncanary = 500ms\n%s\n" % (name, s.tmpdir(), word or name, more)


def ticks_of(chunk, function="hot"):
    return sum(r["total_ticks"] for r in s.rows(chunk, "--by", "function") if r["function"] == function)


def check_once(chunks):
    """No chunk of a process has time that another one has too, and each can be read. Returns the CPU time of all, in s."""
    spans, total = [], 0.0
    for c in chunks:
        i, pid = s.info(c), os.path.basename(c).split("-")[2]
        # of a recorder that was killed: its totals came last, if at all; its samples are there
        spans.append((pid, i["start_monotonic_ns"], i["start_monotonic_ns"] + i.get("elapsed_ns", 0), c))
        total += sum(r["self_ticks"] for r in s.rows(c, "--by", "function")) * 0.01
    spans.sort()
    for a, b in zip(spans, spans[1:]):
        if a[0] != b[0] or a[2] <= b[1] + 1000000:
            continue
        # a recorder that was told to end writes for a while, when the next one waits for the process already: whose are the samples?
        last, first = sample_times(a[3])[-1:], sample_times(b[3])[:1]
        check(not last or not first or last < first, "%s and %s are of the same time: %s, %s" % (a[3], b[3], last, first))
    return total


def sample_times(chunk):
    """When its samples were taken, CLOCK_MONOTONIC."""
    r = s.run([s.luasample(), "export", "-i", chunk, "--format", "jsonl"])
    check(r.status == 0 or "no samples" in r.err, r.err)
    rows = [s.json.loads(l) for l in r.out.splitlines()]
    return sorted(s.info(chunk)["start_monotonic_ns"] + row["time_ns"] for row in rows if "stack" in row)
