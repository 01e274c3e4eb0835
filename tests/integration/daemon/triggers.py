"""[rule NAME]: what is done when a service uses much, or ends with an error."""
import glob
import os
import time

from shared import HERE, Daemon, Service, check, rule, s, suite, until

QUIET = "max-overhead = 100%\nmax-host-cpu = 100%"


def script(text, mode=0o755):
    path = s.tmpfile(".sh")
    with open(path, "w") as f:
        f.write("#!/bin/sh\n" + text)
    os.chmod(path, mode)
    return path


def rule_of(d, name):
    return next(r for r in d.json("status")["rules"] if r["name"] == name)


@suite.test("rule-cpu", "much CPU: the last minute and a stack are kept, it is recorded closely, a command runs; so often as the rule says", quick=True)
def rule_cpu():
    out = s.tmpfile(".out")
    command = script("env | sort > %s.new; mv %s.new %s; read x; exit 3\n" % (out, out, out))
    a = Service("busy", share=1)
    d = Daemon(rule("busy", more="burst-time = 2s") + "[rule hot]\nservice = busy\ncpu = 2\nfor = 2s\nkeep = yes\nburst = yes\nstack = yes\nrun = %s\n"
               "at-most = 1\n[rule huge]\nrss = 100G\nrun = /bin/true\n" % command, daemon=QUIET)
    d.until_state(a.pid, "recording")
    until("the rule acts", lambda: rule_of(d, "hot")["acted"] == 1)
    check("process %d of busy: cpu" % a.pid in rule_of(d, "hot")["last"], rule_of(d, "hot"))
    env = until("the command runs", lambda: os.path.exists(out) and open(out).read())
    names = {line.split("=")[0] for line in env.splitlines()}
    check("LUASAMPLE_PID=%d\n" % a.pid in env and "LUASAMPLE_RULE=hot\n" in env and "LUASAMPLE_WHY=cpu\n" in env, env)
    check(names <= {"PATH", "PWD", "LUASAMPLE_RULE", "LUASAMPLE_SERVICE", "LUASAMPLE_PID", "LUASAMPLE_NAME", "LUASAMPLE_WHY",
                    "_", "SHLVL", "OLDPWD"}, env)
    until("its failure is counted", lambda: rule_of(d, "hot")["failed"] == 1)
    kept = os.path.join(d.store, "kept")
    folder = until("it is kept", lambda: os.path.isdir(kept) and os.listdir(kept))
    check(len(folder) == 1 and folder[0].startswith("hot.") and folder[0].endswith(".%d" % a.pid), folder)
    files = until("the chunks", lambda: [f for f in os.listdir(os.path.join(kept, folder[0])) if f != "stack.txt"])
    stack = os.path.join(kept, folder[0], "stack.txt")
    text = until("the stack", lambda: os.path.exists(stack) and "Thread" in open(stack).read() and open(stack).read())
    check("Thread %d" % a.pid in text and "service.lua" in text, text)
    check(all("-%d-" % a.pid in f for f in files), files)
    s.run([s.luasample(), "report", "-i", os.path.join(kept, folder[0], files[0])]).ok()
    try:
        until("it is recorded closely", lambda: any(s.info(c).get("interval_ns") == 1000000 for c in d.chunks("busy")))
    except s.Fail as e:
        raise s.Fail("%s: %s, %s\n%s" % (e, [(c, s.info(c)["interval_ns"]) for c in d.chunks("busy")], d.json("targets"), d.log()))
    check(rule_of(d, "huge")["acted"] == 0 and "rule hot" in d.ctl("status").ok().out, d.ctl("status").out)
    d.stop()
    a.end()


@suite.test("rule-exit", "a program that ends by a signal: a command runs; others' files are not run; limits hold")
def rule_exit():
    out = s.tmpfile(".out")
    good, bad = script("echo $LUASAMPLE_WHY $LUASAMPLE_NAME >> %s\n" % out), script("echo bad >> %s\n" % out, 0o777)
    d = Daemon(rule("weak") + "[rule gone]\nexit = yes\nrun = %s\n[rule open]\nexit = yes\nrun = %s\n" % (good, bad), daemon=QUIET)
    time.sleep(0.2)
    if d.json("status")["programs_by"] == "scan":
        d.stop()
        raise s.Skip("the kernel does not tell how programs end here")
    a, b = Service("weak"), Service("weak")
    for p in a, b:
        d.until_state(p.pid, "recording")
    b.end()
    a.started.p.kill()
    a.started.wait()
    until("the command ran", lambda: os.path.exists(out) and open(out).read())
    until("the other is refused", lambda: rule_of(d, "open")["failed"] == 1)
    check(rule_of(d, "gone")["acted"] == 1 and rule_of(d, "gone")["failed"] == 0, rule_of(d, "gone"))
    text = open(out).read()
    check(text.startswith("signal 9 ") and "bad" not in text and len(text.splitlines()) == 1, text)
    d.stop()


class Says:
    """A service that is told by files what to do."""
    def __init__(self, name):
        self.base = s.tmpfile("-says")
        self.started = s.Started([s.luajit().program, os.path.join(HERE, "says.lua"), self.base, os.path.join(s.ROOT, "libsample", "api"),
                                  "service.lua", name])
        self.pid = self.started.p.pid
        self.started.wait_for("ready")

    def tell(self, word):
        open("%s.%s" % (self.base, word), "w").close()

    def end(self):
        self.tell("stop")
        status = self.started.wait()
        err = self.started.read(self.started.err)
        check(status == 0 and not err, "the service ended with %d: %s" % (status, err))


def acted(d, **want):
    return until("rules act: %s" % want, lambda: all(rule_of(d, name)["acted"] == n for name, n in want.items())
                 and {name: rule_of(d, name) for name in want})


@suite.test("rule-said", "a mark and a counter: said by a Lua program that was not started by us; by reload, and beside a close look, too", quick=True)
def rule_said():
    out = s.tmpfile(".out")
    command = script("echo $LUASAMPLE_RULE $LUASAMPLE_WHY >> %s\n" % out)
    a, other = Says("talks"), Says("else")
    rules = ("[rule slow]\nservice = talks\nmark = timeout*\nmark = slow*\nburst = yes\nkeep = yes\nrun = %s\n"
             "[rule queue]\ncounter = queue>1000\nfor = 1s\nrun = %s\n[rule none]\nmark = never\ncounter = queue>1e9\nstall = 1h\nrun = /bin/true\n"
             % (command, command))
    d = Daemon(rule("talks", more="burst-time = 2s") + rule("else") + rules, daemon=QUIET)
    for p in a, other:
        d.until_state(p.pid, "recording")
    time.sleep(2)               # the module looks once a second whether somebody records
    a.tell("mark")
    got = acted(d, slow=1, queue=0)
    check(got["slow"]["last"] == "process %d of talks: mark slow*" % a.pid, got)
    until("it is recorded closely", lambda: any(s.info(c).get("interval_ns") == 1000000 for c in d.chunks("talks")))
    until("it is kept", lambda: glob.glob(d.store + "/kept/slow.*"))
    until("it is as before", lambda: d.target(a.pid)["burst"] == 0 and d.target(a.pid)["state"] == "recording")
    other.tell("mark")          # the rule is not for it
    other.tell("over")
    got = acted(d, queue=1)
    check(got["queue"]["last"] == "process %d of else: counter queue>1000" % other.pid, got)
    d.ctl("burst", "else").ok()         # another recorder, which hears the value anew: the rule is true already
    until("it is recorded closely", lambda: d.target(other.pid)["burst"] == 1 and d.target(other.pid)["state"] == "recording")
    a.tell("over")
    acted(d, queue=2)
    other.tell("under")
    time.sleep(3)
    other.tell("over")
    acted(d, queue=3, slow=1, none=0)
    d.write(rule("talks") + rule("else") + rules.replace("slow*", "quick"))
    d.ctl("reload").ok()
    until("the new mark acts", lambda: rule_of(d, "slow")["acted"] >= 2)
    text = until("the commands ran", lambda: os.path.exists(out) and open(out).read().count("slow") >= 2 and open(out).read())
    check("slow mark slow*\n" in text and "queue counter queue>1000\n" in text and "slow mark quick\n" in text, text)
    d.stop()
    a.end()
    other.end()


@suite.test("rule-stall", "a main thread that neither waits for events nor sleeps, busy or in a call; one that does either is no stall")
def rule_stall():
    a, idle = Says("stalls"), Service("idle", share=0.9)
    d = Daemon(rule("stalls") + rule("idle") + "[rule stall]\nstall = 2s\nstack = yes\n[rule long]\nstall = 1m\nstack = yes\n", daemon=QUIET)
    for p in a, idle:
        d.until_state(p.pid, "recording")
    kept = os.path.join(d.store, "kept")
    before = rule_of(d, "stall")["acted"]
    for n, (word, frame) in enumerate((("stall", "hot"), ("read", "blocked")), 1):
        a.tell(word)
        got = acted(d, stall=before + n)["stall"]
        check(got["last"] == "process %d of stalls: stall" % a.pid, got)
        folder = sorted(os.listdir(kept))[-1]
        path = os.path.join(kept, folder, "stack.txt")
        text = until("the stack", lambda: os.path.exists(path) and "Thread" in open(path).read() and open(path).read())
        check(frame in text, "%s: %s" % (word, text))
        until("it goes on", lambda: stalls(a.pid) is False)
    with s.Late() as late:
        had = rule_of(d, "stall")["acted"]
        time.sleep(3)
        got = rule_of(d, "stall")["acted"]
    # One that gets no processor for two seconds stalls, too.
    check((got == had or late.ms > 1000) and rule_of(d, "long")["acted"] == 0, "%d, %d before, %d ms late" % (got, had, late.ms))
    d.stop()
    a.end()
    idle.end()


def stalls(pid):
    """Whether the voluntary switches of a process stand still for half a second."""
    def switches():
        with open("/proc/%d/status" % pid) as f:
            return [l for l in f if l.startswith("voluntary")]
    before = switches()
    time.sleep(0.5)
    return switches() == before


@suite.test("rule-errors", "errors of rules are said with file and line", quick=True)
def rule_errors():
    for text, why in (("[rule a]\nrun = /bin/true\n", "says not when"), ("[rule a]\ncpu = 90\n", "says not what to do"),
                      ("[rule a]\ncpu = 90\nkeep = yes\nservice = no\n", "there is no [service no]"),
                      ("[rule a]\ncup = 90\n", "did you mean 'cpu'"), ("[rule]\n", "a rule needs a name"),
                      ("[rule a/b]\n", "a name has letters"), ("[rule a]\ncpu = 0\nkeep = yes\n", "give from 1"),
                      ("[rule a]\nrss = 1\nkeep = yes\n", "rss"), ("[rule a]\ncpu = 5\nrun = true\n", "absolute path"),
                      ("[rule a]\nmark =\nkeep = yes\n", "mark"), ("[rule a]\ncounter = queue\nkeep = yes\n", "counter = queue: give PATTERN>N"),
                      ("[rule a]\ncounter = queue>many\nkeep = yes\n", "give PATTERN>N"), ("[rule a]\nstall = 10ms\nkeep = yes\n", "give from 1s"),
                      ("[rule a]\nkeep = yes\n" + "".join("mark = m%d\n" % i for i in range(20)) +
                       "[rule b]\nkeep = yes\n" + "counter = n>1\n" * 13, "33 marks and counters: at most 32")):
        d = Daemon(rule("any") + text, start=False)
        got = s.run([s.luasample(), "daemon", "--config", d.path, "--check"])
        check(got.status == 1 and why in got.err and d.path + ":" in got.err, "%r: %d %r" % (text, got.status, got.err))
