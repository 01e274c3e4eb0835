"""A day in small: LUASAMPLE_DAEMON_MINUTES=30 lets a daemon do all that it does at once for so long, much faster than it is meant to, and
looks at memory, descriptors and threads of it, its HTTP process, and the programs that it records."""
import os
import random
import shutil
import signal
import statistics
import sys
import threading
import time

import support as s
from shared import Daemon, Service, check, rule, suite
from http_ import ask, http_process

sys.path.append(os.path.join(s.TESTS, "integration", "push"))
from fake import Store

MINUTES = float(os.environ.get("LUASAMPLE_DAEMON_MINUTES", 0))
LONG = 50 if MINUTES >= 10 else 8
CONFIG = """
[rule busy]
service = brief
cpu = 10
for = 1s
keep = yes
stack = yes
burst = yes
at-most = 1000
per = 1h
[http]
enable = yes
"""


def figures(pid):
    """Resident KiB, descriptors, threads."""
    with open("/proc/%d/status" % pid) as f:
        status = dict(l.split(":", 1) for l in f.read().splitlines() if ":" in l)
    return int(status["RssAnon"].split()[0]), len(os.listdir("/proc/%d/fd" % pid)), int(status["Threads"])


def growth(series, slack):
    """How much the median of the last third is above that of the second, beyond slack."""
    third = len(series) // 3
    middle, last = statistics.median(series[third:2 * third]), statistics.median(series[-third:])
    return max(0, last - middle - slack - 0.02 * middle)


class Noise(threading.Thread):
    """What users, scrapers and operators do, until it is told to stop."""
    def __init__(self, d, long):
        super().__init__()
        self.d, self.long, self.stop, self.rand, self.done, self.error = d, long, threading.Event(), random.Random(14), 0, None

    def once(self):
        d, pid = self.d, self.rand.choice(self.long).pid
        what = self.rand.randrange(9)
        if what < 4:
            url = ("/metrics", "/flame?service=steady&last=10s", "/debug/pprof/profile?service=brief&last=30s", "/stack?pid=%d" % pid)[what]
            ask(d, url)
        elif what == 4:
            s.run([s.luasample(), "record", "-q", "-d", "1s", "-o", s.tmpfile(".data"), "-p", str(pid)], env=dict(os.environ, LUASAMPLE_SOCKET=d.socket))
        elif what == 5:
            d.ctl("burst", str(pid))
        elif what == 6:
            kept = d.ctl("snapshot", "steady", "--last", "5s").out.strip()
            time.sleep(4)
            for folder in os.listdir(d.store + "/kept") if kept else []:
                shutil.rmtree(os.path.join(d.store, "kept", folder))
        elif what == 7:
            d.ctl(self.rand.choice(("reload", "flush", "targets")))
        else:
            self.kill_one()

    def kill_one(self):
        """A recorder of the service that may be put aside, and is taken back."""
        got = [t for t in self.d.json("targets") if t["service"] == "brief" and t["recorder"]]
        if got:
            try:
                os.kill(self.rand.choice(got)["recorder"], signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.d.ctl("attach", "brief")

    def run(self):
        while not self.stop.wait(0.5):
            try:
                self.once()
                self.done += 1
            except Exception as e:
                self.error = self.error or e


def brief_ones(stop):
    """Programs that live for a moment, one after the other."""
    n = 0
    while not stop.wait(0.3):
        p = Service("brief", share=0.5)
        stop.wait((0.2, 1.5, 4)[n % 3])
        p.end()
        n += 1
    return n


class Brief(threading.Thread):
    def __init__(self):
        super().__init__()
        self.stop, self.n = threading.Event(), 0

    def run(self):
        self.n = brief_ones(self.stop)


def judge(seen):
    for who, rows in sorted(seen.items()):
        memory, fds, threads = zip(*rows)
        print("   %-9s %6d to %6d KiB, %d to %d descriptors, %d to %d threads, %d looks" %
              (who, min(memory), max(memory), min(fds), max(fds), min(threads), max(threads), len(rows)))
        print("             over time: " + ", ".join("%d KiB %d/%d" % rows[i * (len(rows) - 1) // 6] for i in range(7)))
    for who, rows in seen.items():
        memory, fds, threads = zip(*rows)
        check(not growth(memory, 256), "%s: its memory grows: %s KiB" % (who, memory[::max(1, len(memory) // 30)]))
        check(not growth(fds, 2), "%s: its descriptors grow: %s" % (who, fds[::max(1, len(fds) // 30)]))
        check(not growth(threads, 0.5), "%s: its threads grow: %s" % (who, threads[::max(1, len(threads) // 30)]))
    check(max(r[0] for r in seen["daemon"]) < 20 << 10, "the daemon has more than 20 MB")


def size_of(at):
    size = 0
    for folder, _, names in os.walk(at):
        for name in names:
            try:
                size += os.lstat(os.path.join(folder, name)).st_size
            except FileNotFoundError:
                pass                            # it was merged, or is too old
    return size


if MINUTES:
    @suite.test("steady", "%g minutes of all that the daemon does: memory, descriptors, threads and the store do not grow" % MINUTES)
    def steady():
        # what grows is found, and what swings is not
        check(growth(list(range(0, 6000, 10)), 256) and not growth([5000 + i % 100 for i in range(600)], 256) and growth([9] * 40 + [12] * 20, 2),
              "the judge")
        with Store() as st:
            long = [Service("steady", share=0.02) for _ in range(LONG)]
            d = Daemon(rule("steady", more="burst-time = 2s") + rule("brief", more="burst-time = 1s") + CONFIG +
                       "[sink out]\ntype = pyroscope\nurl = %s\nevery = 2s\n" % st.url,
                       daemon="overhead-window = 5s\nmax-overhead = 50%\nmax-host-cpu = 100%",
                       store="merge = 10s\nmerge-old = 1m\nmax-age = %ds\nmax-size = 64M" % max(30, 6 * MINUTES))
            noise, brief, seen = Noise(d, long), Brief(), {}
            for p in long:
                d.until_state(p.pid, "recording", 300)
            for _ in range(30):         # two configurations, of half a MB each, are held for a moment: the heap has room for them from now on
                d.ctl("reload").ok()
            noise.start()
            brief.start()
            end = time.monotonic() + 60 * MINUTES
            while time.monotonic() < end:
                time.sleep(2)
                del st.requests[:-1]
                check(d.started.p.poll() is None, "the daemon has ended: " + d.log()[-2000:])
                for who, pid in ("daemon", d.started.p.pid), ("HTTP", (http_process(d) or (0,))[0]), ("program", long[0].pid):
                    if pid:
                        seen.setdefault(who, []).append(figures(pid))
                check(size_of(d.store + "/services") < 80 << 20, "the store has more than max-size")
            for t in noise, brief:
                t.stop.set()
                t.join()
            print("   %d programs came and went beside %d; %d things were asked for" % (brief.n, LONG, noise.done))
            judge(seen)
            check(not noise.error and noise.done > 10 * MINUTES, "%d things were done: %r" % (noise.done, noise.error))
            end = time.monotonic() + 60
            while [t for t in d.json("targets") if t["service"] == "brief"]:
                check(time.monotonic() < end, "those that ended are not forgotten: %s" % d.ctl("targets").out)
                time.sleep(0.5)
            d.stop()
            for p in long:
                p.end()
