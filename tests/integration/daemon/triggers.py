"""[rule NAME]: what is done when a service uses much, or ends with an error."""
import os
import time

from shared import Daemon, Service, check, rule, s, suite, until

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
    until("it is recorded closely", lambda: any(s.info(c)["interval_ns"] == 1000000 for c in d.chunks("busy")))
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


@suite.test("rule-errors", "errors of rules are said with file and line", quick=True)
def rule_errors():
    for text, why in (("[rule a]\nrun = /bin/true\n", "says not when"), ("[rule a]\ncpu = 90\n", "says not what to do"),
                      ("[rule a]\ncpu = 90\nkeep = yes\nservice = no\n", "there is no [service no]"),
                      ("[rule a]\ncup = 90\n", "did you mean 'cpu'"), ("[rule]\n", "a rule needs a name"),
                      ("[rule a/b]\n", "a name has letters"), ("[rule a]\ncpu = 0\nkeep = yes\n", "give from 1"),
                      ("[rule a]\nrss = 1\nkeep = yes\n", "rss"), ("[rule a]\ncpu = 5\nrun = true\n", "absolute path")):
        d = Daemon(rule("any") + text, start=False)
        got = s.run([s.luasample(), "daemon", "--config", d.path, "--check"])
        check(got.status == 1 and why in got.err and d.path + ":" in got.err, "%r: %d %r" % (text, got.status, got.err))
