"""The program must not notice that it is recorded. Imported by run.py."""
import os
import re
import resource

import support as s
from support import check, check_near

LJ = None


def same(cmd, *opts, strip=None, input=None, env=None, preexec=None, **kw):
    """Runs cmd alone and recorded: status, stdout and stderr (with -q) must be the same. Returns the recording."""
    plain = s.run(cmd, input=input, env=env, preexec=preexec)
    r = s.record(cmd, "-q", *opts, input=input, env=env, preexec=preexec, **kw)
    fix = strip or (lambda x: x)
    check(r.status == plain.status, "status %d, without us %d; %s" % (r.status, plain.status, r.err[-300:]))
    check(fix(r.out) == fix(plain.out), "stdout differs:\n%s\nwithout us:\n%s" % (r.out[-1500:], plain.out[-1500:]))
    check(fix(r.err) == fix(plain.err), "stderr differs: %r, without us %r" % (r.err[-500:], plain.err[-500:]))
    return r


def addresses(text):
    return re.sub(r"0x[0-9a-f]+", "0x", text)


def add_to(suite):
    t = suite.test

    @t("unseen.seen", "arguments, environment, stdin, children's environment, registry, status", True)
    def seen():
        env = dict(os.environ, LS_TEST="x y")
        def events(text):       # LuaJIT's own table of jit.attach, which the map of compiled code needs
            return text.replace(" _VMEVENTS", "")
        for engine, strip in (("hook", None), ("walk", events)):
            r = same([s.luajit().program, os.path.join(s.LUA, "seen.lua"), "a", "b c", ""], "--engine", engine, strip=strip,
                     input=b"line 1\nline 2\n", env=env)
            check(r.status == 42 and "stdin\tline 1" in r.out, "status %d, %r" % (r.status, r.out[-200:]))

    def odd_each(lj, timer):
        @t("unseen.odd.%s.%s" % (lj, timer), "deep recursion, dead coroutines, finalizers, callbacks, no package",
           lj == "debian" and timer == "perf")
        def odd():
            r = same([s.luajit(lj).program, os.path.join(s.LUA, "odd.lua")], "--timer", timer, interval="50us",
                     env=s.luajit(lj).environ(), strip=addresses)
            check(r.status == 7, "status %d, %r" % (r.status, r.out[-300:]))
    for lj in ("debian", "shared", "luajit2", "luajit2so"):
        for timer in ("perf", "helper", "cputime"):
            odd_each(lj, timer)

    @t("unseen.profile-vms", "other VMs, of this thread and of others, that use LuaJIT's profiler")
    def profile_vms():
        r = same([s.host("profile_vms")], interval="250us")
        check(r.out == "profile_vms done 1\n", "stdout %r" % r.out)
        got = sum(x["total_ticks"] for x in r.rows("--by", "function") if x["function"].startswith("after_close"))
        check(got > 800, "%d ticks after the second VM was closed, expected 1200" % got)

    @t("unseen.dispatch", "ticks that meet the VM at work on its dispatch table", True)
    def dispatch():
        for _ in range(3):
            r = same([s.luajit().program, os.path.join(s.LUA, "dispatch.lua"), "1"], interval="73us")
            i = r.info()
            check(sum(v for k, v in i["lost"].items() if k == "no-safe-point") < i["ticks"] / 100, "lost %s" % i["lost"])

    @t("unseen.preload", "LD_PRELOAD and LUA_INIT that the program has already stay as they are")
    def preload():
        lib = "/usr/lib/x86_64-linux-gnu/libc_malloc_debug.so.0"
        if not os.path.exists(lib):
            raise s.Skip("no library to preload")
        env = dict(os.environ, LD_PRELOAD=lib, LUA_INIT="init_ran = 1")
        same([s.luajit().program, "-e", "print(os.getenv 'LD_PRELOAD', os.getenv 'LUA_INIT', init_ran) os.execute 'echo $LD_PRELOAD'"],
             env=env)

    @t("unseen.process", "descriptors, signal dispositions and mask, environment, next open", True)
    def look():
        same([s.host("process"), "look"])

    for action in ("none", "fork", "fork-exit", "vfork", "clone", "daemon", "close_range", "sigdfl", "errno", "exec",
                   "failed-exec", "abort", "segv"):
        @t("unseen." + action, "a host that does it to itself", action in ("fork", "close_range"))
        def act(action=action):
            r = same([s.host("process"), action])
            work = sum(x["total_ticks"] for x in r.rows("--by", "function") if re.fullmatch("burn", x["function"]))
            least = {"abort": 290, "segv": 290, "fork": 780, "clone": 780}.get(action, 580)
            check(work >= least, "%d ticks of burn, expected %d" % (work, least))
            child = sum(x["total_ticks"] for x in r.rows("--by", "function") if x["function"] == "burn2")
            least = {"fork": 160, "fork-exit": 80, "daemon": 160}.get(action, 0)
            check(child >= least, "%d ticks of the child, expected %d" % (child, least))
            check(action != "clone" or child == 0, "%d ticks of a child that libc does not know of" % child)

    @t("unseen.block", "all signals blocked for a second at 100 us")
    def block():
        r = same([s.host("process"), "block"], interval="100us")
        i = r.info()
        check_near("ticks", i["ticks"], i["cpu_ns"] / 1e5, i["cpu_ns"] / 1e5 * 0.02 + 2)

    @t("unseen.ulimit-i", "no pending signals allowed (ulimit -i 0)")
    def no_pending():
        def limit():
            resource.setrlimit(resource.RLIMIT_SIGPENDING, (0, 0))
        for timer in ("perf", "helper"):
            r = same([s.luajit().program, os.path.join(s.LUA, "seventy.lua"), "0.6"], "--timer", timer, preexec=limit)
            i = r.info()
            check(i["ticks"] > 500, "--timer %s: %s ticks" % (timer, i["ticks"]))

    ahead = s.Ahead(suite, 3)           # 40,000 waits each

    def eintr(timer):
        r = s.record([s.host("eintr"), "10000"], "-q", "--timer", timer, interval="250us")
        if r.status == 1 and "timer" in r.err:
            raise s.Skip(r.err[-150:])
        r.ok()
        m = re.match(r"calls (\d+) eintr (\d+)", r.out)
        check(int(m.group(2)) <= 1, "%s interrupted of %s calls (without us 0): %s" % (m.group(2), m.group(1), r.out))

    for timer in ("perf", "helper", "cputime"):
        ahead.add("unseen.eintr." + timer, eintr, timer)

        @t("unseen.eintr." + timer, "poll, epoll_wait, nanosleep, slow read: at most 1 in 10,000 more EINTR")
        def eintr_with(timer=timer):
            ahead.result("unseen.eintr." + timer)

    @t("unseen.itimer", "the program's own ITIMER_PROF and SIGPROF handler", True)
    def itimer():
        exe = s.host("itimer")
        plain, x = s.run([exe]).ok(), s.record([exe], "-q").ok()
        for run in (plain, x):
            check(re.search("^handler mine interval 10000$", run.out, re.M), "stdout %r" % run.out)
        s.check_rates("its ticks a ms", s.windows(x.out), s.windows(plain.out))

    def jp_counts(path):
        """{function: samples} of a result of -jp."""
        with open(path) as f:
            return {m.group(2): int(m.group(1)) for m in re.finditer(r"^\s*(\d+)\s+(\w+)", f.read(), re.M)}

    def app_jp_windows(run, path):
        """Of each of the program's profiles its samples and CPU time, and the samples of mul and of mul and add."""
        profiles = [jp_counts(path + str(i)) for i in range(1, 9)]
        cpu = [float(x) for x in re.findall(r"^cpu (\S+)$", run.out, re.M)]
        return list(zip((sum(p.values()) for p in profiles), cpu)), [
            (p.get("mul", 0), p.get("mul", 0) + p.get("add", 0)) for p in profiles]

    @t("unseen.app-jp", "a program that runs -jp gets its result, and ours is whole", True)
    def app_jp():
        app_jp_with("walk")

    @t("unseen.app-jp.hook", "with engine hook it gets its result, and record says what it missed", True)
    def app_jp_hook():
        app_jp_with("hook")

    def app_jp_with(engine):
        a, b = s.tmpfile(".jp"), s.tmpfile(".jp")
        script = os.path.join(s.LUA, "appjp.lua")
        plain = s.run([s.luajit().program, script, a]).ok()
        r = s.record([s.luajit().program, script, b], "--engine", engine).ok()
        (total, shares), (its_total, its_shares) = app_jp_windows(plain, a), app_jp_windows(r, b)
        s.check_rates("its samples a second", its_total, total)
        s.check_rates("its share of mul", its_shares, shares)
        ticks = sum(x["self_ticks"] for x in r.rows())
        if engine == "walk":
            return check_near("our ticks", ticks, r.info()["cpu_ns"] / 1e6, 0.01 * r.info()["cpu_ns"] / 1e6)
        check_near("our ticks before and after it", ticks, 800, 60)
        check(re.search("profiler", r.err), "record does not say what it missed: " + r.err)
        check((r.info().get("app_profiler_ns") or 0) > 2.8e9, "info: app_profiler_ns %s" % r.info().get("app_profiler_ns"))

    @t("unseen.-jp", "luajit -jp under record gives what it gives alone")
    def dash_jp():
        script, totals = os.path.join(s.LUA, "seventy.lua"), ([], [])
        for _ in range(6):
            for record, total in enumerate(totals):
                out, truth = s.tmpfile(".jp"), s.tmpfile(".truth")
                cmd = [s.luajit().program, "-jp=li10rm0," + out, script, "0.7", truth]
                (s.record(cmd, "-q") if record else s.run(cmd)).ok()
                with open(out) as f:
                    samples = sum(int(m.group(1)) for m in re.finditer(r"^\s*(\d+)\s+\S+", f.read(), re.M))
                with open(truth) as f:
                    total.append((samples, dict(line.split() for line in f)["all"]))
        s.check_rates("samples", *([(n, float(ns)) for n, ns in total] for total in reversed(totals)))

    @t("unseen.private", "mode 0600, --no-args, --no-source, and info lists what is held")
    def private():
        secret = "s3cret"
        r = s.record_lua("mixedsource.lua", args=["0.4", secret]).ok()
        check(os.stat(r.trace).st_mode & 0o777 == 0o600, "mode %o" % (os.stat(r.trace).st_mode & 0o777))
        check(secret in s.run([s.luasample(), "dump", "-i", r.trace]).ok().out, "the arguments are not in the trace")
        i = r.info()
        check(i["private_args"] == 1 and i["private_source"] > 0, "info: %s %s" % (i.get("private_args"), i.get("private_source")))
        x = s.record_lua("mixedsource.lua", "--no-args", "--no-source", args=["0.4", secret]).ok()
        dump = s.run([s.luasample(), "dump", "-i", x.trace]).ok().out
        check(secret not in dump, "--no-args leaves the arguments in the trace")
        check("x = x + i % 7" not in dump, "--no-source leaves text in the trace")
        check(not x.info().get("private_source"), "info: private_source %s" % x.info().get("private_source"))

    @t("unseen.memory", "at most 4 MiB more memory in the program", True)
    def memory():
        def most_kib(run):
            m = re.search(r"^VmHWM:\s+(\d+) kB$", run.ok().out, re.M)
            check(m, "stdout %r" % run.out)
            return int(m.group(1))
        script = os.path.join(s.LUA, "memory.lua")
        plain = most_kib(s.run([s.luajit().program, script, "2"]))
        for interval in ("1ms", "100us"):
            r = s.record([s.luajit().program, script, "2"], "-q", interval=interval)
            more = most_kib(r) - plain
            check(r.info()["tables"]["stacks"] > 500, "too few stacks to say anything: %s" % r.info()["tables"])
            check(more <= 4096, "%d KiB more than %d at %s" % (more, plain, interval))
