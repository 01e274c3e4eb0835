"""The configuration: what is refused, where, and what rules name."""
import os
import time

from shared import Daemon, Service, check, rule, s, suite, until

# configuration below its first section, line counted from 1 there: (text, line, what the error says)
WRONG = [
    ("[service a]\ncmd = x\nintervall = 10ms\n", 3, "unknown key 'intervall' in [service]; did you mean 'interval'?"),
    ("[service a]\ncmd = x\nfoobarbaz = 1\n", 3, "unknown key 'foobarbaz' in [service]"),
    ("[servise a]\ncmd = x\n", 1, "unknown section [servise a]"),
    ("[stor]\nchunk = 1m\n", 1, "unknown section [stor]; did you mean [store]?"),
    ("[service]\ncmd = x\n", 1, "[service]: a service needs a name"),
    ("[service ../x]\ncmd = x\n", 1, "[service ../x]: a name has letters"),
    ("[service a]\ncmd = x\ninterval = fast\n", 3, "interval = fast: give a time such as"),
    ("[service a]\ncmd = x\ninterval = 1us\n", 3, "interval = 1us: give from 1ms to 10000ms"),
    ("[service a]\ncmd = x\nnative = maybe\n", 3, "native = maybe: give yes or no"),
    ("[service a]\ncmd = x\nnative = yes\nnative = no\n", 4, "'native' is given twice"),
    ("[service a]\nuser = no-such-user-here\n", 2, "user = no-such-user-here: there is no such user"),
    ("[service a]\ncmd =\n", 2, "cmd = : give PATTERN"),
    ("[service a]\ninterval = 10ms\n", 1, "[service a] names no program"),
    ("[service a]\ncmd = x\nno key here\n", 3, "neither [section] nor key = value"),
    ("[service a]\n  cmd = x\n", 2, "a line cannot begin with a space"),
    ("[service a\ncmd = x\n", 1, "a ] is missing"),
    ("[service a]\ncmd = " + "x" * 5000 + "\ncmd = y\nbad = 1\n", 2, "the line has more than"),
    ("[service a]\ncmd = x\n[store]\nmax-size = many\n", 4, "max-size = many: give a size"),
    ("[service a]\ncmd = x\n[daemon]\nmax-targets = 1000\n", 4, "max-targets = 1000: give from 1 to 256"),
    ("[service a]\ncmd = x\n[daemon]\nstore = here\n", 4, "store = here: give an absolute path"),
    ("[service a]\ncmd = x\nkey\x1b[31m = 1\n", 3, "unknown key 'key\\x1b[31m'"),
]


@suite.test("errors", "each error of a configuration is said with its file and line, and nothing is taken", quick=True)
def errors():
    d = Daemon(start=False)
    d.head = ""
    for text, line, words in WRONG:
        d.write(text)
        r = s.run([s.luasample(), "daemon", "--config", d.path, "--check"])
        want = "luasample: %s:%d: %s" % (d.path, line, words)
        check(r.status == 1 and want in r.err and r.out == "", "%r: status %d, %r, expected %r" % (text[:80], r.status, r.err, want))
        check("\x1b" not in r.err, "a control character is shown: %r" % r.err)
    d.write("bad = 1\n[service a]\nbadd = 1\n[store]\nbaddd = 2\n")
    r = s.run([s.luasample(), "daemon", "--config", d.path])
    check(r.status == 1 and r.err.count("\n") == 4, "all four errors: %r" % r.err)
    check(not os.path.exists(d.store), "there is a store")
    r = s.run([s.luasample(), "daemon", "--config", d.path + ".none", "--check"])
    check(r.status == 1 and r.err.count("\n") == 1 and "No such file" in r.err, r.err)
    os.chmod(d.path, 0o666)
    r = s.run([s.luasample(), "daemon", "--config", d.path, "--check"])
    check(r.status == 1 and "others can write to it" in r.err, r.err)
    for bad in ["--nothing"], ["x"]:
        check(s.run([s.luasample(), "daemon", *bad]).status == 129, "daemon %s" % bad)


@suite.test("drop-ins", "daemon.conf.d/*.conf are read in order; errors name them")
def drop_ins():
    d = Daemon(rule("one"), start=False)
    os.mkdir(d.path + ".d")
    with open(d.path + ".d/20-b.conf", "w") as f:
        f.write("[service one]\ncmd = *second-pattern*\n[service two]\ncmd = two*\n")
    with open(d.path + ".d/10-a.conf", "w") as f:
        f.write("[store]\nchunk = 2s\n")
    with open(d.path + ".d/ignored", "w") as f:
        f.write("nonsense\n")
    r = s.run([s.luasample(), "daemon", "--config", d.path, "--check"]).ok()
    check("two " in r.out and "20-b.conf:3" in r.out, r.out)
    with open(d.path + ".d/10-a.conf", "a") as f:
        f.write("chunkk = 2s\n")
    r = s.run([s.luasample(), "daemon", "--config", d.path, "--check"])
    check(r.status == 1 and "10-a.conf:3: unknown key 'chunkk' in [store]; did you mean 'chunk'?" in r.err, r.err)


@suite.test("rules", "--check prints what each key names now, and what is left alone", quick=True)
def rules():
    word = "rules%d" % os.getpid()
    a, b = Service(word + "a", env={"FLAVOUR": "sweet"}), Service(word + "b", env={"LUASAMPLE": "off"})
    exe = os.readlink("/proc/%d/exe" % a.pid)
    only = "cmd = *service.lua* %s?\n" % word
    with open("/proc/%d/cgroup" % a.pid) as f:
        cgroup = f.read().splitlines()[-1].split(":", 2)[2]
    cases = [("exe = %s" % exe, [a, b]), ("exe = %s" % os.path.basename(exe), [a, b]), ("exe = lua", []),
             ("user = %d" % os.getuid(), [a, b]), ("user = %d" % (os.getuid() + 1), []),
             ("env = FLAVOUR", [a]), ("env = FLAVOUR=sw*", [a]), ("env = FLAVOUR=sour", []),
             ("cgroup = *%s" % cgroup[-40:], [a, b]), ("cgroup = /nowhere", []),
             ("unit = no.service", []), ("container = 0123*", []), ("cmd = nothing\ncmd = *lua*", [a, b])]
    for keys, want in cases:
        d = Daemon("[service x]\n%s%s\n" % ("" if "cmd" in keys else only, keys if "cmd" not in keys else only + keys), start=False)
        r = s.run([s.luasample(), "daemon", "--config", d.path, "--check"]).ok()
        for p in a, b:
            check((" %d " % p.pid in r.out) == (p in want), "%s: process %d: %s" % (keys, p.pid, r.out))
        if not want:
            check("no program matches its rule (%s:" % d.path in r.out, r.out)
        if b in want:
            line = next(l for l in r.out.splitlines() if " %d " % b.pid in l)
            check("left alone: LUASAMPLE=off" in line, line)
    a.end()
    b.end()


@suite.test("reload", "SIGHUP and ctl reload: all is taken, or nothing; services come and go")
def reload():
    a, b = Service("alpha"), Service("beta")
    d = Daemon(rule("alpha"))
    d.until_state(a.pid, "recording")
    check(d.target(b.pid) is None, "beta is watched without a rule")
    d.write(rule("beta") + "[service bad]\nexee = 1\n")
    r = d.ctl("reload")
    check(r.status == 1 and "unknown key 'exee'" in r.err and "stays as it was" in r.err and r.err.count("\n") == 1, r.err)
    time.sleep(0.5)
    check(d.target(a.pid)["state"] == "recording" and d.target(b.pid) is None, "something of it was taken")
    d.write(rule("beta"))
    d.ctl("reload").ok()
    d.until_state(b.pid, "recording")
    until("alpha is left", lambda: d.target(a.pid) is None, 15)
    until("nobody traces alpha", lambda: "libsample" not in str(os.listdir("/proc/%d/task" % a.pid)) and
          len(os.listdir("/proc/%d/task" % a.pid)) == 1)
    d.write(rule("alpha") + rule("beta", more="interval = 20ms"))
    recorder = d.recorder(b.pid)
    os.kill(d.started.p.pid, 1)
    d.until_state(a.pid, "recording")
    until("beta has a new recorder", lambda: d.target(b.pid) and d.target(b.pid)["recorder"] not in (0, recorder))
    d.recorder(b.pid)
    d.head = d.head.replace(d.store, "/elsewhere")
    d.write(rule("alpha"))
    r = d.ctl("reload")
    check(r.status == 1 and "cannot be changed by a reload" in r.err, r.err)
    d.stop()
    a.end()
    b.end()
