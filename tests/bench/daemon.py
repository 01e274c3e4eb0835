"""Part of the bench for the daemon: what it costs with no target and with ten, what they cost it and it costs them, bytes a day, and
the time of a question over a day and a week. Used by bench.py."""
import os
import resource
import shutil
import sys
import time

import measure as m
import support as s

sys.path.insert(0, os.path.join(os.path.dirname(m.HERE), "integration", "daemon"))
import shared

TICK = os.sysconf("SC_CLK_TCK")
DAY_TICKS = 86400 * 100                 # of a busy core, at 100 Hz
SHARE = 0.1                             # of a processor, that each target uses
CHUNKS = 12                             # of a day, when they are merged


def used(pids):
    """CPU seconds of these processes, and of their children that have ended; resident KiB of the first."""
    total, kib = 0, 0
    for k, pid in enumerate(pids):
        try:
            with open("/proc/%d/stat" % pid) as f, open("/proc/%d/statm" % pid) as g:
                total += sum(int(n) for n in f.read().rsplit(")", 1)[1].split()[11:15])
                kib = kib if k else int(g.read().split()[1]) * 4
        except OSError:
            pass
    return total / TICK, kib


def children(pid):
    with open("/proc/%d/task/%d/children" % (pid, pid)) as f:
        return [int(w) for w in f.read().split()]


def below(pid):
    """All processes that it has started, and those that they have."""
    found = []
    for child in children(pid):
        try:
            found += [child] + below(child)
        except OSError:
            pass
    return found


def store_of(d):
    return sum(os.path.getsize(c) for c in d.chunks("bench")), sum(
        sum(r["self_ticks"] for r in s.rows(c, "--by", "function")) for c in d.chunks("bench"))


def with_targets(n, seconds):
    targets = [shared.Service("bench", share=SHARE) for _ in range(n)]
    d = shared.Daemon(shared.rule("bench"), chunk="5s", discover="5s")
    for t in targets:
        d.until_state(t.pid, "recording", timeout=300)
    own, rest = [d.started.p.pid], below(d.started.p.pid)
    before, others = used(own), used(rest)[0]
    time.sleep(seconds)
    after, others = used(own), used(rest)[0] - others
    costs = [t["cost_ppm"] / 1e4 for t in d.json("targets")]
    d.stop()
    for t in targets:
        t.end()
    print("  %3d targets: the daemon %.2f %% of a processor, %d KiB resident; recorders and HTTP %.2f %%; the agent of a target's CPU "
          "time: %s" % (n, (after[0] - before[0]) * 100 / seconds, after[1], others * 100 / seconds,
                        "%.2f %% at most" % max(costs) if costs else "-"), flush=True)


def busy(seconds):
    """Chunks of one target that is always busy."""
    target = shared.Service("bench", share=1)
    d = shared.Daemon(shared.rule("bench"), chunk="%ds" % max(1, seconds))
    d.until_state(target.pid, "recording", timeout=300)
    shared.until("two chunks", lambda: len(d.chunks("bench")) >= 2, timeout=20 * seconds)
    d.stop()
    target.end()
    return d


def day(d):
    """A store of a week of one busy core: what was recorded, merged as the daemon does it, again and again."""
    at, minute, window = s.tmpfile("-day"), s.tmpfile(".data"), s.tmpfile(".data")
    days = [os.path.join(at, "services", "bench", "2026-01-%02d" % n) for n in range(2, 9)]
    for folder in days:
        os.makedirs(folder, mode=0o700)
    with open(os.path.join(at, "version"), "w") as f:
        f.write("luasample store 1\n")
    m.quiet([s.luasample(), "merge", "-o", minute, *d.chunks("bench")])
    ticks = sum(r["self_ticks"] for r in s.rows(minute, "--by", "function"))
    times = max(1, round(DAY_TICKS / CHUNKS / ticks))
    copies = []
    for i in range(min(times, 200)):
        copies.append(s.tmpfile(".data"))
        shutil.copy(minute, copies[-1])
    m.quiet([s.luasample(), "merge", "-o", window, *copies])
    for folder in days:
        for i in range(CHUNKS):
            shutil.copy(window, os.path.join(folder, "%02d0000.000-7200000-0-2.luasample" % (i * 2)))
    os.chmod(at, 0o700)
    return at, os.path.getsize(window), ticks * len(copies)


def cpu_since(before):
    now = resource.getrusage(resource.RUSAGE_CHILDREN)
    return now.ru_utime + now.ru_stime - before.ru_utime - before.ru_stime


def part_daemon(luajit, a):
    """the daemon: its cost with 0 and 10 targets at 100 Hz, bytes a day, questions over a day and a week"""
    seconds = a.long * 2
    print("The daemon, %g s each; targets use %g %% of a processor" % (seconds, SHARE * 100))
    with_targets(0, seconds)
    with_targets(10, seconds)
    d = busy(seconds)
    size, ticks = store_of(d)
    at, merged, merged_ticks = day(d)
    print("  bytes a day of a busy core at 100 Hz: %.1f MB in chunks of %g s, %.1f MB merged" %
          (size * DAY_TICKS / max(ticks, 1) / 1e6, seconds, merged * DAY_TICKS / merged_ticks / 1e6), flush=True)
    shutil.copytree(at, at + "1")
    for n in range(3, 9):
        shutil.rmtree(os.path.join(at + "1", "services", "bench", "2026-01-%02d" % n))
    for name, store, days in ("a day", at + "1", 1), ("a week", at, 7):
        for words in (["report", "--by", "function"], ["export", "--format", "pprof"], ["report", "--html"]):
            start, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
            m.quiet([s.luasample(), words[0], "--store", store, *words[1:], "-o", s.tmpfile(".out")])
            print("  %s over %s (%d chunks, %.1f M ticks): %.2f s of CPU time, %.2f s" %
                  (" ".join(words), name, CHUNKS * days, merged_ticks * CHUNKS * days / 1e6, cpu_since(before), time.monotonic() - start), flush=True)
    print("load %.2f\n" % os.getloadavg()[0])
