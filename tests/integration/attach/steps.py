"""What happens to a program while it is attached to: host_stepper stops the recorder before one of its system calls, and there the
program is stopped, runs another in its place, ends, gets a signal, meets a debugger, or the recorder is killed. Afterwards
the program is what it was. A run takes each step once, with another disturbance each time: LUASAMPLE_STEPS=all takes all of
them, LUASAMPLE_STEPS=SEED one choice again."""
import ctypes
import os
import random
import re
import resource
import time

import process
import support
from basic import attach, end, until_threads
from support import Fail, Skip, Started, check, host, luajit, need, run, tmpfile

ACTIONS = ("stop", "exec", "exit", "signal", "debugger", "kill")
AT_ONCE = 4
SETTLE_S = 60                                   # for the agent of a killed recorder to leave, on a busy machine
PTRACE, GAP = 101, 8
ENDLESS = "print('begin') io.stdout:flush() while true do end"
REGION = 1138688                                # bytes that an attachment maps, until the agent is there
CALLS = {0: "read", 1: "write", 3: "close", 8: "lseek", 9: "mmap", 11: "munmap", 14: "sigprocmask", 17: "pread", 18: "pwrite",
         32: "dup", 61: "wait4", 62: "kill", 72: "fcntl", 77: "ftruncate", 89: "readlink", 101: "ptrace", 144: "sched_setscheduler",
         203: "sched_setaffinity", 217: "getdents", 257: "openat", 262: "fstat", 298: "perf_event_open"}


def mappings(pid):
    """Anonymous memory in bytes, and code that comes from no file."""
    size, code = 0, []
    for line in process.read(pid, "maps").splitlines():
        m = re.match(r"([0-9a-f]+)-([0-9a-f]+) (\S+) \S+ \S+ +(\d+) *(.*)", line)
        if m.group(4) == "0" and not m.group(5):
            size += int(m.group(2), 16) - int(m.group(1), 16)
            if "x" in m.group(3):
                code.append(line)
    return size, code


def pending(pid):
    """Signals of the program that wait for long; one that is blocked may."""
    found = []
    for tid in os.listdir("/proc/%d/task" % pid):
        status = process.read(pid, "task/%s/status" % tid)
        found += [line for line in status.splitlines() if re.match("(SigPnd|ShdPnd)", line) and int(line.split()[1], 16)]
    return found


def at_an_end(before, after):
    """1 when the code differs in one page, the last one of an object's: who is killed leaves some bytes behind the last of the code."""
    changed = [page for page in before.items() if after.get(page[0]) != page[1]]
    return len(changed) == 1 and (changed[0][0][0] + 4096, changed[0][0][1]) not in before


class Subject:
    """A host_steady that was attached to once: what that leaves is there."""
    def __init__(self, kind):
        self.p = Started([host("steady"), kind])
        self.p.wait_for("begin")
        until_threads(self.p, 2 if kind == "two" else 1)
        self.pid, self.told, self.used = self.p.p.pid, 0, False
        attach(self.pid, "--quiet", "-i", "1s", duration="10ms")          # no tick comes
        check(self.p.p.poll() is None, "undisturbed it ended with %s: %r" % (self.p.p.poll(), self.p.read(self.p.out)[-80:]))
        self.state, self.mappings = process.state(self.pid), mappings(self.pid)

    def wrong(self, killed):
        """What is not as it was; [] when all is."""
        if self.p.p.poll() is not None:
            return ["it ended with %d: %s" % (self.p.p.returncode, self.p.read(self.p.out)[-80:])]
        try:
            state, now = process.state(self.pid), mappings(self.pid)
            self.used = killed and at_an_end(self.state["code"], state["code"])
            if self.used:
                state["code"] = self.state["code"]
            bad = process.differences(self.state, state)
            if now[1] != self.mappings[1]:
                bad.append("code in memory: %r, was %r" % (now[1], self.mappings[1]))
            if now[0] >= self.mappings[0] + REGION:
                bad.append("%d bytes are mapped more" % (now[0] - self.mappings[0]))
            bad += process.writable_and_executable(self.pid) + pending(self.pid)
            if "told %d\n" % self.told not in "told 0\n" + self.p.read(self.p.out):
                bad.append("it was not told of SIGUSR1")
            return bad
        except (FileNotFoundError, ProcessLookupError):
            return ["it vanishes"]

    def settle(self, what, killed=False):
        """The agent of a recorder that is gone leaves in some seconds."""
        deadline = time.monotonic() + SETTLE_S
        while True:
            bad = self.wrong(killed)
            if not bad:
                return
            check(self.p.p.poll() is None and time.monotonic() < deadline, "%s: %s" % (what, "; ".join(bad)[:1500]))
            time.sleep(0.02)

    def ended(self, what, action):
        said = {"exec": "new image\n", "exit": "ended\n"}[action]
        status = self.p.wait(20)
        check(status == 0 and self.p.read(self.p.out).endswith(said), "%s: status %d, it said %r" % (
            what, status, self.p.read(self.p.out)[-80:]))


def stepper(subject, step, action, *opts):
    return [host("stepper"), str(step), action, str(subject.pid), support.luasample(), "record", "-p", str(subject.pid), "-d", "10ms",
            "-i", "1s", "-o", tmpfile(".data"), *opts]          # no tick comes


def disturbed(subject, step, action):
    return Started(stepper(subject, step, action, "--quiet"))


def looked_at(subject, r, step, action):
    """Returns 1 when there was such a step."""
    status = r.wait(90)
    out = r.read(r.out)
    m = re.match(r"step (\d+) (\d+)", out)
    what = "%s before step %d (%s)" % (action, step, CALLS.get(int(m.group(2)), m.group(2)) if m else "none")
    check(status in (0, 1) or (status == 137 and action == "kill"), "%s: the recorder ended with %d: %s" % (what, status, r.read(r.err)))
    if not m:                                   # it was through sooner than the time before
        subject.settle(what)
        return 0
    if action in ("exec", "exit"):
        subject.ended(what, action)
        return 1
    subject.told += action == "signal"
    subject.settle(what, action == "kill")
    return 1


def steps_of(kind):
    """The system calls of an undisturbed attachment."""
    s = Subject(kind)
    r = run(stepper(s, -1, "none"), timeout=60).ok()
    end(s.p)
    calls = [int(nr) for nr in re.findall(r"step \d+ (\d+)", r.out)]
    check(len(calls) > 40 and calls.count(PTRACE) > 8, "steps: %r" % calls)
    return calls


def chosen(kind):
    """Pairs of a step and what is done there: all before the first, when the program was looked at and is not traced yet, one at
    each until the thread of ours waits by itself, and at a third of those that follow."""
    wanted, calls = os.environ.get("LUASAMPLE_STEPS", ""), steps_of(kind)
    if wanted == "all":
        return "all", [(step, action) for step in range(len(calls)) for action in ACTIONS]
    seed = int(wanted) if wanted else random.randrange(1000)
    traced = [i for i, nr in enumerate(calls) if nr == PTRACE]
    last = next(a for a, b in zip(traced, traced[1:] + [len(calls) + GAP]) if b - a > GAP)     # later ones are for closed entries
    alone = last + 12
    steps = list(range(1, alone)) + list(range(alone + seed % 3, len(calls), 3))
    pairs = [(step, ACTIONS[(i + seed) % len(ACTIONS)]) for i, step in enumerate(steps)]
    return "LUASAMPLE_STEPS=%d" % seed, [(0, action) for action in ACTIONS] + pairs


def next_subject(kind, free):
    """One that lives and is at rest, else a new one."""
    return free.pop() if free else Subject(kind)


def add_to(suite):
    for kind, threads in (("one", "one thread"), ("two", "two threads")):
        @suite.test("steps-" + kind, "a program of %s is disturbed at each step of an attachment, and is as before" % threads)
        def _(kind=kind):
            how, left = chosen(kind)
            done, free, bad = 0, [], []
            for i in range(0, len(left), AT_ONCE):
                running = []
                for step, action in left[i:i + AT_ONCE]:
                    s = next_subject(kind, free)
                    running.append((s, disturbed(s, step, action), step, action))
                for s, r, step, action in running:
                    try:
                        done += looked_at(s, r, step, action)
                        if s.p.p.poll() is None and not s.used:
                            free.append(s)
                        elif s.p.p.poll() is None:
                            end(s.p)
                    except Fail as e:
                        bad.append(str(e))
            check(not bad, "%s: %d of %d: %s" % (how, len(bad), len(left), "\n".join(bad)[:3000]))
            check(done > 0.8 * len(left) > 40, "%d of %d steps came about" % (done, len(left)))
            print("     %d disturbances, %s" % (done, how))

    @suite.test("no-more-threads", "a program at its limit of processes: said once, after one stop, and nothing is left")
    def _():
        own = [] if os.geteuid() else [need("setpriv"), "--reuid=54322", "--regid=54322", "--clear-groups"]
        p = Started([*own, luajit().program, "-e", ENDLESS], then=lambda: resource.setrlimit(resource.RLIMIT_NPROC, (1, 1)))
        p.wait_for("begin")
        before, maps = process.state(p.p.pid), mappings(p.p.pid)
        r = run([support.luasample(), "record", "--force", "-p", str(p.p.pid), "-d", "50ms", "-o", tmpfile(".data")], timeout=60)
        bad = process.differences(before, process.state(p.p.pid))
        now = mappings(p.p.pid)
        end(p)
        check(r.status == 1 and "may have no more threads" in r.err and "RLIMIT_NPROC" in r.err, r.err)
        check(not bad and now == maps, "%r; memory %r, was %r" % (bad, now, maps))

    @suite.test("no-new-code", "a program that may not make memory executable: said, and nothing is left")
    def _():
        def deny():
            if ctypes.CDLL(None).prctl(65, 1, 0, 0, 0):         # PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN
                os._exit(77)
        p = Started([luajit().program, "-joff", "-e", ENDLESS], then=deny)
        try:
            p.wait_for("begin")
        except Fail:
            if p.p.poll() == 77:
                raise Skip("this kernel cannot refuse it (PR_SET_MDWE)")
            raise
        before, maps = process.state(p.p.pid), mappings(p.p.pid)
        r = run([support.luasample(), "record", "-p", str(p.p.pid), "-d", "50ms", "-o", tmpfile(".data")], timeout=60)
        bad = process.differences(before, process.state(p.p.pid))
        now = mappings(p.p.pid)
        end(p)
        check(r.status == 1 and "memory may not be made executable" in r.err, r.err)
        check(not bad and now == maps, "%r; memory %r, was %r" % (bad, now, maps))
