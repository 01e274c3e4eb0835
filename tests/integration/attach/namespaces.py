"""Processes in namespaces of their own, as in containers: recorded from outside, by the number that they have there."""
import json
import os
import shutil
import signal
import subprocess
import time

import process
import support
from basic import LOOP, attach, attach_until, clean, end, same, shares
from ends import started
from refusals import refused
from support import Skip, Started, check, info, json_of, luajit, need, run, tmpdir, tmpfile

# its own /proc, and a root in which there is LuaJIT and nothing of luasample's; its shell is process 1 there
INSIDE = "mount -t proc proc \"$0/proc\" && { chroot \"$0\" /luajit /loop.lua 60; exit; }"
NO_PROC = "chroot \"$0\" /luajit /loop.lua 60; exit"


def tree():
    """A directory that can be another root: LuaJIT, its libraries, the program."""
    root = tmpfile(".root")
    os.chmod(tmpdir(), 0o755)
    os.makedirs(os.path.join(root, "proc"))
    libraries = subprocess.run(["ldd", luajit().program], stdout=subprocess.PIPE, universal_newlines=True, timeout=20).stdout
    for word in libraries.split():
        if word.startswith("/"):
            os.makedirs(root + os.path.dirname(word), exist_ok=True)
            shutil.copy(word, root + word)
    shutil.copy(luajit().program, root + "/luajit")
    shutil.copy(LOOP, root + "/loop.lua")
    return root


def descendant(pid, comm):
    for kid in support.children_of(pid):
        found = kid if process.read(kid, "comm") == comm + "\n" else descendant(kid, comm)
        if found:
            return found
    return None


class Inside(Started):
    """The loop in namespaces of its own; pid is its number out here."""
    def __init__(self, *opts, user=None, script=INSIDE):
        unshare = [need("unshare"), "--mount", "--pid", "--fork", "--kill-child", *opts]
        if user:
            unshare[:0] = [need("setpriv"), "--reuid=%d" % user, "--regid=%d" % user, "--clear-groups"]
        r = run([*unshare, "true"])
        if r.status:
            raise Skip("no namespaces here: " + r.err.strip()[-200:])
        super().__init__([*unshare, "sh", "-c", script, tree()])
        try:
            self.wait_for("begin")
        except support.Fail:
            if "mount:" in self.read(self.err):
                raise Skip("no /proc can be mounted here: " + self.read(self.err).strip()[-200:])
            raise
        self.pid = descendant(self.p.pid, "luajit")
        check(self.pid, "no luajit below %d" % self.p.pid)


def add_to(suite):
    test = suite.test

    for name, title, opts, user in (
            ("namespaces", "mounts, processes and a root of its own", (), None),
            ("rootless", "users and a network of its own too, and another user's: a container without root",
             ("--user", "--map-root-user", "--net"), 65534)):
        @test(name, title)
        def _(opts=opts, user=user):
            if os.geteuid():
                raise Skip("needs root")
            p = Inside(*opts, user=user)
            inner = process.read(p.pid, "status").split("NSpid:", 1)[1].split("\n", 1)[0].split()
            check(inner[0] == str(p.pid) and inner[-1] != inner[0], "its numbers are %r" % inner)
            attach(p.pid, duration="50ms")
            before = process.state(p.pid)
            r = attach_until(p.pid, 200, "-e", "cpu,wall")
            same(before, p.pid)
            check("attached to %d (luajit)" % p.pid in r.err, r.err)
            shares(r)
            clean(r)
            check(info(r.trace)["pid"] == p.pid, "pid %s in the trace, not %d" % (info(r.trace)["pid"], p.pid))
            by = json_of(["report", "-i", r.trace, "--min", "0", "--json", "--by", "process,thread"])["rows"]
            check(len(by) == 1 and str(p.pid) in by[0]["name"], "processes: %r" % by)
            check([x["name"] for x in by[0]["children"] if str(p.pid) in x["name"]], "threads: %r" % by[0]["children"])
            s = run([support.luasample(), "stack", "--json", str(p.pid)])
            if user:
                found = json.loads(s.ok().out)["stacks"]
                check([x["tid"] for x in found if x["state"] != "suspended"] == [p.pid], "stacks of %r" % found)
                check([f for x in found for f in x["frames"] if f["function"].startswith("main chunk@")], "frames: %r" % found)
            else:                               # it would have to run that LuaJIT as root
                check(s.status == 1 and len(s.err.splitlines()) == 1 and "process %d (luajit) is root's in another container" % p.pid
                      in s.err, "stack: %d %r" % (s.status, s.err))
            same(before, p.pid)
            end(p)

    @test("namespaces-killed", "its recorder is killed, which has no number there: the agent leaves, and another may come")
    def _():
        if os.geteuid():
            raise Skip("needs root")
        p = Inside()
        attach(p.pid, duration="50ms")
        before = process.state(p.pid)
        r = started(p.pid)
        time.sleep(1.2)
        r.p.kill()
        r.p.wait()
        s = started(p.pid)                      # waits for the agent to leave
        s.signal(signal.SIGTERM)
        check(s.wait() == 0, "status of the second recorder: " + s.read(s.err))
        same(before, p.pid)
        end(p)
        check(info(r.trace)["samples"] > 0, "the first recording has no samples")

    @test("no-proc", "a root without /proc: said in a line, and nothing is touched")
    def _():
        if os.geteuid():
            raise Skip("needs root")
        p = Inside(script=NO_PROC)
        before = process.state(p.pid)
        refused(p.pid, "no /proc is mounted", "(luajit)")
        same(before, p.pid)
        end(p)
