"""What the Python tests share: the built luasample, the LuaJITs to test with, recording and reporting, and a small
runner that names each test and counts passed, failed and skipped. Used by tests/truth, tests/integration/main and
tests/bench. Needs the standard library only."""
import concurrent.futures
import hashlib
import itertools
import json
import math
import os
import re
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import traceback

TESTS = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(TESTS)
LUA = os.path.join(TESTS, "lua")


def build_dir():
    d = os.environ.get("LUASAMPLE_BUILD", os.path.join(ROOT, "build"))
    return os.path.abspath(d)


def luasample():
    return os.path.join(build_dir(), "luasample")


def host(name):
    """A C host of tests/hosts; skips the test when it could not be built."""
    path = os.path.join(build_dir(), "tests", "hosts", "host_" + name)
    if not os.path.exists(path):
        raise Skip("host_%s is not built (libluajit-5.1-dev missing?)" % name)
    return path


class Skip(Exception):
    """The test cannot run here, for a reason that is not luasample's."""


class Fail(Exception):
    """What was promised is not so."""


def check(ok, message):
    if not ok:
        raise Fail(message)


def check_near(what, got, want, tolerance):
    check(abs(got - want) <= tolerance, "%s is %.4g, expected %.4g +- %.4g" % (what, got, want, tolerance))


SIGMAS = 3.5                    # of a share's sampling error: one in 2000 is beyond them by chance alone
SYSTEMATIC = 0.5                # points: what programs do between two readings of their clock and charge to nothing


def margin(percent, samples, systematic=SYSTEMATIC):
    """Points by which a share that was sampled so often may differ from the true one. samples: effective_samples(), since
    one that stands for many ticks says less than as many samples."""
    samples = max(samples, 2)           # fewer say nothing
    p = min(max(percent / 100.0, 1 / samples), 1 - 1 / samples)
    return SIGMAS * 100 * math.sqrt(p * (1 - p) / samples) + systematic


def check_share(what, got, want, samples, systematic=SYSTEMATIC):
    check_near(what, got, want, margin(want, samples, systematic))


def rate(windows):
    """(sum of counts / sum of times, its standard error) of [(count, time)]: by how far the windows are from one another. By
    their median distance: what is lost in one of them alone makes the error no larger."""
    rates = [c / t for c, t in windows]
    middle = statistics.median(rates)
    spread = 1.4826 * statistics.median(abs(r - middle) for r in rates)
    return sum(c for c, _ in windows) / sum(t for _, t in windows), spread / math.sqrt(len(rates))


def check_rates(what, got, want, systematic=0.02):
    """Two rows of windows [(count, time)] have one rate, within what the windows say of its error and a part of the rate. What a
    busy machine takes from a timer it takes from some windows more than from others; where it takes so much that the loss of half
    of them would pass too, the comparison says nothing, and fails."""
    check(len(got) == len(want) > 3, "%s: %d and %d windows" % (what, len(got), len(want)))
    (a, a_error), (b, b_error) = rate(got), rate(want)
    most = SIGMAS * math.hypot(a_error, b_error) + systematic * b
    check_near(what, a, b, most)
    half = a - sum(c for c, _ in got[::2]) / sum(t for _, t in got)
    check(abs(half - b) > most, "%s: %.4g +- %.4g: without half of its windows too: %s, %s" % (what, b, most, got, want))


def windows(text):
    """[(count, time)] of the lines `window COUNT TIME` that a program prints."""
    return [(float(m.group(1)), float(m.group(2))) for m in re.finditer(r"^window (\S+) (\S+)$", text, re.M)]


def need(program):
    path = shutil.which(program)
    if not path:
        raise Skip(program + " is not installed")
    return path


def need_open():
    """For programs that run as another user: they read programs of the tests, and load what was built."""
    for path in (os.path.realpath(ROOT), os.path.realpath(build_dir())):
        while path != "/":
            if not os.stat(path).st_mode & 1:
                raise Skip("other users cannot enter %s" % path)
            path = os.path.dirname(path)


# The LuaJITs. Debian's own, and what scripts/luajit-trees made.

class LuaJIT:
    def __init__(self, name, program, env):
        self.name, self.program, self.env = name, program, env

    def environ(self, extra=None):
        e = dict(os.environ)
        e.update(self.env)
        e.update(extra or {})
        return e


def luajits():
    found = []
    if shutil.which("luajit"):
        found.append(LuaJIT("debian", shutil.which("luajit"), {}))
    cache = os.environ.get("LUASAMPLE_TEST_CACHE", os.path.expanduser("~/.cache/luasample-tests"))
    try:
        with open(os.path.join(cache, "luajits")) as f:
            for line in f:
                name, program, *env = line.rstrip("\n").split("\t")
                found.append(LuaJIT(name, program, dict(v.split("=", 1) for v in env)))
    except FileNotFoundError:
        pass
    return found


def luajit(name="debian"):
    for l in luajits():
        if l.name == name:
            return l
    raise Skip("no LuaJIT named %s (scripts/luajit-trees makes them)" % name)


# Tools of npm.

def npm_dir():
    """Where scripts/install-deps npm has put the packages of tests/npm."""
    with open(os.path.join(TESTS, "npm", "package-lock.json"), "rb") as f:
        name = "npm-" + hashlib.sha256(f.read()).hexdigest()[:16]
    cache = os.environ.get("LUASAMPLE_TEST_CACHE", os.path.expanduser("~/.cache/luasample-tests"))
    path = os.path.join(cache, name)
    if not os.path.exists(os.path.join(path, ".whole")):
        raise Skip("the packages of tests/npm are not installed (scripts/install-deps npm)")
    return path


def node(script, *args, timeout=120, **kw):
    """Runs a script of tests/npm (.mjs); it may import the packages by name. Returns its Run."""
    program, packages = need("node"), os.path.join(npm_dir(), "node_modules")
    home = os.path.join(tmpdir(), "npm")
    if not os.path.exists(home):
        os.mkdir(home)
        os.symlink(packages, os.path.join(home, "node_modules"))
    shutil.copy(os.path.join(TESTS, "npm", script), home)       # imports are looked up beside the script
    return run([program, os.path.join(home, script), *args], timeout=timeout, **kw)


# Recording and reporting.

class Run:
    """A finished command: status (negative signal as 128 + n), out, err (text); trace is the file it recorded."""
    def __init__(self, status, out, err, trace=None, seconds=0.0):
        self.status, self.out, self.err, self.trace, self.seconds = status, out, err, trace, seconds

    def info(self):
        return info(self.trace)

    def rows(self, *args):
        j = json_of(["report", "-i", self.trace, "--min", "0", *args, "--json"])
        check(j["header"]["damaged_chunks"] == 0, "the trace has %d damaged chunks" % j["header"]["damaged_chunks"])
        return j["rows"]

    def text(self, *args):
        return report(self.trace, *args).out

    def ok(self, status=0):
        check(self.status == status, "status %d, expected %d; stderr: %s" % (self.status, status, self.err[-600:]))
        return self


def plain_signals(then=None):
    """For a child: dispositions as a terminal's shell gives them, however this test itself was started."""
    def setup():
        for sig in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
            signal.signal(sig, signal.SIG_DFL)
        if then:
            then()
    return setup


def run(cmd, env=None, input=None, timeout=120, cwd=None, preexec=None, binary=False):
    start = time.monotonic()
    p = subprocess.Popen(cmd, env=env, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                         stdin=subprocess.DEVNULL if input is None else subprocess.PIPE, preexec_fn=plain_signals(preexec),
                         start_new_session=True)
    try:
        out, err = p.communicate(input, timeout)
    except subprocess.TimeoutExpired:
        os.killpg(p.pid, signal.SIGKILL)        # the recorded program too
        out, err = p.communicate()
        raise Fail("no end after %d s: %s; stderr: %s" % (timeout, " ".join(cmd)[:200], err[-300:]))
    err = err.decode("utf-8", "replace")
    if not binary:
        out = out.decode("utf-8", "replace")
    status = p.returncode if p.returncode >= 0 else 128 - p.returncode
    return Run(status, out, err, seconds=time.monotonic() - start)


_tmp = None


def tmpdir():
    """A directory for this run's files, removed at its end (kept with LUASAMPLE_TEST_KEEP)."""
    global _tmp
    if not _tmp:
        _tmp = tempfile.mkdtemp(prefix="luasample-test-")
    return _tmp


_serial = itertools.count(1)     # threads may share it


def tmpfile(suffix=""):
    return os.path.join(tmpdir(), "%03d%s" % (next(_serial), suffix))


def record_cmd(cmd, *opts, interval="1ms", trace=None):
    return [luasample(), "record", "-i", interval, "-o", trace, *opts, "--", *cmd]


def record(cmd, *opts, interval="1ms", trace=None, **kw):
    """Records cmd (a list) and returns its Run."""
    trace = trace or tmpfile(".data")
    r = run(record_cmd(cmd, *opts, interval=interval, trace=trace), **kw)
    r.trace = trace
    return r


def record_lua(script, *opts, lj=None, args=(), lua_opts=(), env=None, **kw):
    """Records a program of tests/lua (or a path) under a LuaJIT."""
    lj = lj or luajit()
    path = script if os.path.isabs(script) else os.path.join(LUA, script)
    return record([lj.program, *lua_opts, path, *args], *opts, env=lj.environ(env), **kw)


def report(trace, *args, timeout=120, binary=False, env=None):
    return run([luasample(), "report", "-i", trace, *args], timeout=timeout, binary=binary, env=env)


def json_of(cmd_args):
    r = run([luasample(), *cmd_args])
    check(r.status == 0, "%s: status %d: %s" % (" ".join(cmd_args), r.status, r.err[-400:]))
    try:
        return json.loads(r.out)
    except ValueError as e:
        raise Fail("%s: not JSON (%s): %.200s" % (" ".join(cmd_args), e, r.out))


def info(trace):
    return json_of(["info", "-i", trace, "--json"])


def rows(trace, *args):
    """The rows of a flat view: dicts with function, source, line_defined, line, self, total, self_ticks, ..."""
    j = json_of(["report", "-i", trace, "--min", "0", *args, "--json"])
    return j["rows"]


def effective_samples(trace):
    """How many samples of one weight would say as much as the trace's."""
    return json_of(["report", "-i", trace, "--min", "0", "--json"])["header"]["effective_samples"]


def share(rs, field="self", **want):
    """Sum of a share (in percent) over the rows whose fields have the wanted values (or satisfy a function)."""
    return 100.0 * sum(r.get(field) or 0 for r in rs if matches(r, want))


def matches(row, want):
    return all(v(row.get(k)) if callable(v) else row.get(k) == v for k, v in want.items())


def basename(path):
    return os.path.basename((path or "").lstrip("@"))


def record_seventy(*opts, seconds="1", **kw):
    """Records seventy.lua; its Run, and {function: percent} as the program measured them."""
    out = tmpfile(".truth")
    r = record_lua("seventy.lua", *opts, args=[seconds, out], **kw).ok()
    with open(out) as f:
        said = {k: float(v) for k, v in (line.split() for line in f)}
    return r, {k: 100 * v / said["all"] for k, v in said.items() if k != "all"}


def cpu_seconds(i):
    return i["cpu_ns"] / 1e9


def cpu_of(pid):
    """CPU seconds of a process, with its threads that have ended, by the kernel."""
    with open("/proc/%d/stat" % pid) as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Late:
    """How late the machine wakes who sleeps, while the block runs: what a recorder that sleeps cannot be blamed for. ms: in all,
    without what is usual."""
    STEP_S, USUAL_S = 0.005, 0.005

    def __enter__(self):
        self.ms, self.over = 0.0, threading.Event()
        self.thread = threading.Thread(target=self._look, daemon=True)
        self.thread.start()
        return self

    def _look(self):
        while not self.over.is_set():
            began = time.monotonic()
            time.sleep(self.STEP_S)
            self.ms += 1000 * max(0, time.monotonic() - began - self.STEP_S - self.USUAL_S)

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()


# The runner.

def is_named(pattern, test):
    """Whether a regular expression is that of a test's name or tag."""
    return any(re.fullmatch(pattern, x) for x in (test[0], test[4]) if x)


def cpu_used():
    """CPU seconds of this process and of those that it has waited for."""
    return sum(r.ru_utime + r.ru_stime for r in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))


class Suite:
    """Collects tests by decorator, runs those that the command line names, prints a line for each."""
    def __init__(self, name):
        self.name, self.tests, self.chosen = name, [], []

    def test(self, name, title="", quick=False, tag=None):
        """tag: a second name, as of a line of a checklist; the command line takes either."""
        def add(fn):
            self.tests.append((name, "[%s] %s" % (tag, title) if tag else title, quick, fn, tag))
            return fn
        return add

    def main(self, argv=None):
        import argparse
        p = argparse.ArgumentParser(prog=self.name)
        p.add_argument("--quick", action="store_true", help="only the tests marked quick")
        p.add_argument("--list", action="store_true", help="their names, without a run")
        p.add_argument("--but", metavar="NAME", help="not these: a regular expression")
        p.add_argument("names", nargs="*", help="regular expressions of names or tags of tests to run (default: all)")
        a = p.parse_args(argv)
        chosen = [t for t in self.tests if (not a.quick or t[2]) and
                  (not a.names or any(is_named(n, t) for n in a.names)) and
                  not (a.but and is_named(a.but, t))]
        if a.list:
            for name, title, *_ in chosen:
                print("%-24s %s" % (name, title))
            return 0
        if not os.access(luasample(), os.X_OK):
            sys.exit("%s: no %s: build first, or name the build directory in LUASAMPLE_BUILD" % (self.name, luasample()))
        return self.run(chosen, none_is_fine=a.quick and not a.names)

    def run(self, chosen, none_is_fine=False):
        self.chosen = chosen
        counts = {"ok": 0, "FAIL": 0, "skip": 0}
        for name, title, _, fn, _ in chosen:
            start, cpu = time.monotonic(), cpu_used()
            why = ""
            try:
                fn()
                result = "ok"
            except Skip as e:
                result, why = "skip", str(e)
            except Fail as e:
                result, why = "FAIL", str(e)
            except Exception:
                result, why = "FAIL", traceback.format_exc(limit=-3)
            stop_started()
            counts[result] += 1
            print("%-4s %s %s (%.1f s, %.1f of CPU)%s" % (result, name, title, time.monotonic() - start, cpu_used() - cpu,
                                                          ": " + why.replace("\n", "\n     ") if why else ""), flush=True)
        finish_tmp()
        print("%s: %d passed, %d failed, %d skipped" % (self.name, counts["ok"], counts["FAIL"], counts["skip"]))
        return 1 if counts["FAIL"] or not (counts["ok"] or none_is_fine) else 0


def finish_tmp():
    global _tmp
    if _tmp and not os.environ.get("LUASAMPLE_TEST_KEEP"):
        shutil.rmtree(_tmp, ignore_errors=True)
    elif _tmp:
        print("kept " + _tmp)
    _tmp = None


class Ahead:
    """What several tests of a suite do is begun with the first of them, so many at once, since it waits most of the time or has
    nothing to measure: add() in their order, result() in the test."""
    def __init__(self, suite, at_once):
        self.suite, self.work, self.begun = suite, {}, {}
        self.pool = concurrent.futures.ThreadPoolExecutor(at_once)

    def add(self, name, fn, *args):
        self.work[name] = fn, *args

    def result(self, name):
        if not self.begun:
            self.begun.update((t[0], self.pool.submit(*self.work[t[0]])) for t in self.suite.chosen if t[0] in self.work)
        return self.begun[name].result()


# Processes that a test stops itself, unless it fails before.

_of_thread = threading.local()


def started():
    """Those of this thread."""
    return _of_thread.__dict__.setdefault("started", [])


def stop_started():
    """Ends what a test has left running, and its group."""
    while started():
        p = started().pop()
        if p.poll() is None:
            try:
                os.killpg(p.pid, signal.SIGKILL)
            except ProcessLookupError:          # a group of another number: none of its own
                p.kill()
            p.wait()


class Started:
    """A command started and not waited for; kill and wait are by its pid alone. It is a process group of its own in our
    session, as a shell's job is: in an orphaned group the kernel drops stop signals."""
    def __init__(self, cmd, then=None, **kw):
        def setup():
            os.setpgid(0, 0)
            if then:
                then()
        self.out, self.err = tmpfile(".out"), tmpfile(".err")
        self.p = subprocess.Popen(cmd, stdin=subprocess.DEVNULL, stdout=open(self.out, "wb"),
                                  stderr=open(self.err, "wb"), preexec_fn=plain_signals(setup), **kw)
        started().append(self.p)

    def wait(self, timeout=300):
        try:
            code = self.p.wait(timeout)
        except subprocess.TimeoutExpired:
            self.p.kill()
            raise Fail("no end after %d s; stderr: %s" % (timeout, self.read(self.err)[-300:]))
        return code if code >= 0 else 128 - code

    @staticmethod
    def read(path):
        with open(path, encoding="utf-8", errors="replace") as f:
            return f.read()

    def wait_for(self, text, timeout=60):
        """Waits until the program has printed text on stdout."""
        end = time.monotonic() + timeout
        while text not in self.read(self.out):
            check(time.monotonic() < end, "no %r on stdout after %d s" % (text, timeout))
            check(self.p.poll() is None, "ended (%s) before %r; stderr: %s" % (self.p.poll(), text, self.read(self.err)[-300:]))
            time.sleep(0.02)

    def child(self, timeout=10):
        """The pid of the first child process that is none of luasample's own."""
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            for kid in children_of(self.p.pid):
                if not is_own(kid, self.p.pid):
                    return kid
            time.sleep(0.01)
        raise Fail("no child process after %d s" % timeout)

    def signal(self, sig):
        os.kill(self.p.pid, sig)


def children_of(pid):
    kids = []
    try:
        for t in os.listdir("/proc/%d/task" % pid):
            with open("/proc/%d/task/%s/children" % (pid, t)) as f:
                kids += [int(k) for k in f.read().split()]
    except (FileNotFoundError, ProcessLookupError):
        pass
    return kids


def command_of(pid):
    try:
        with open("/proc/%d/cmdline" % pid, "rb") as f:
            return f.read().split(b"\0")
    except OSError:
        return []


def writer_of(pid):
    """The process that writes what this recorder records."""
    writers = [kid for kid in children_of(pid) if command_of(kid)[:2] == [b"luasample-worker", b"write"]]
    check(len(writers) == 1, "writers: %s" % writers)
    return writers[0]


def is_own(pid, parent):
    """Whether luasample has started this child of its for itself, or is about to."""
    return command_of(pid)[:1] in ([], [b""], [b"luasample-worker"]) or command_of(pid) == command_of(parent)


SIGNALS = signal
if sys.version_info < (3, 8):
    sys.exit("the tests need Python 3.8")
