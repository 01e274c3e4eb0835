"""Programs that lie about their memory to who reads it from outside (tests/lua/hostile.lua): luasample stack, record -e
wall,suspended and top end as told, cost little, and go on with the rest."""
import os
import pty
import select
import subprocess
import time

import support
from refusals import as_nobody, open_copy
from support import Skip, Started, check, luajit, run, tmpfile

SCRIPT = os.path.join(support.LUA, "hostile.lua")
MEMORY_MB = 256
SECONDS = 1.0

WAYS = {
    "string": "a name whose length wraps sums",
    "cframe": "a C frame that is its own predecessor",
    "frames": "a stack of sixteen million frames",
    "sizes": "prototypes without an end",
    "names": "chunk names of 4 GiB",
    "list": "a ring for a list of objects",
    "resumer": "a coroutine that has resumed itself",
    "shaken": "coroutines that change all the time",
    "agent": "tables of the agent's that lead to themselves",
}
DIES = {"agent"}                        # of its own tables, which its own agent reads


def spend(cmd, env=None, terminal=False):
    """Runs luasample to its end; on a terminal it is quit. Returns status, what it printed, CPU seconds, MB; of all its processes."""
    out, shown = tmpfile(".out"), b""
    if terminal:
        pid, fd = pty.fork()
        if not pid:
            try:
                os.environ["TERM"] = "xterm"
                os.execvpe(cmd[0], cmd, os.environ)
            finally:
                os._exit(127)
    else:
        with open(out, "wb") as f:
            p = subprocess.Popen(cmd, stdin=subprocess.DEVNULL, stdout=f, stderr=f, env=env)    # it is reaped without p
            pid, fd = p.pid, None
    begun = time.monotonic()
    end, typed = begun + 60, 0
    while True:
        done, status, used = os.wait4(pid, os.WNOHANG)
        if done:
            break
        if fd is not None:
            if select.select([fd], [], [], 0)[0]:
                try:
                    shown += os.read(fd, 65536)
                except OSError:
                    pass
            if time.monotonic() - begun > 1.5 + 0.5 * typed:       # quit, and the answer to whether it is meant
                os.write(fd, b"qy"[typed % 2:typed % 2 + 1])
                typed += 1
        if time.monotonic() > end:
            os.kill(pid, 9)
            os.waitpid(pid, 0)
            check(False, "%s does not end" % cmd)
        time.sleep(0.02)
    if fd is not None:
        os.close(fd)
    code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)
    said = shown.decode("utf-8", "replace") if terminal else Started.read(out)
    return code, said, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def met(luasample, wrap, what, args, cpu, statuses=(0,), terminal=False):
    code, said, used, size = spend([*wrap, luasample, *args], terminal=terminal)
    told = "%s: status %d, %.2f s of CPU, %d MB, %r" % (what, code, used, size, said[-300:])
    check(code in statuses, told)
    check(used < cpu and size < MEMORY_MB, told)
    return said


def meet(way, wrap, luasample):
    """One program that lies, and all that look at it."""
    cmd = [*wrap, luajit().program, SCRIPT, way]
    target = Started(cmd)
    target.wait_for("begin")
    pid = str(target.p.pid)
    try:
        if way not in DIES:
            said = met(luasample, wrap, "stack", ["stack", pid], 2.0, (0, 1))
            check("Thread" in said or len(said.splitlines()) == 1, "stack: %r" % said[-300:])
        d = os.path.join(os.path.dirname(luasample), "data.%s.%d" % (way, len(wrap))) if wrap else tmpfile(".data")
        said = met(luasample, wrap, "record", ["record", "-e", "cpu,wall,suspended", "-d", "%gs" % SECONDS, "-p", pid, "-o", d],
                   0.5 * SECONDS, (0, 1) if way in DIES else (0,))
        if way not in DIES:
            r = run([support.luasample(), "report", "-i", d, "-e", "wall", "--json"]).ok()
            check('"ticks"' in r.out, "report: %r" % r.out[-300:])
            check(target.p.poll() is None, "the program has ended: %s" % target.read(target.err)[-300:])
            met(luasample, wrap, "top", ["top", "-p", pid, "--record", "-e wall,suspended"], 3.0, terminal=True)
            check(target.p.poll() is None, "the program has ended: %s" % target.read(target.err)[-300:])
    finally:
        target.p.kill()
        target.p.wait()


def meet_both(way):
    """As root, and as nobody."""
    meet(way, [], support.luasample())
    if os.geteuid() == 0:
        support.need_open()
        meet(way, as_nobody(), os.path.join(open_copy(), "luasample"))


def add_to(suite):
    ahead = support.Ahead(suite, 4)         # recordings of a second, and a terminal that is typed to
    for way, what in WAYS.items():
        ahead.add("hostile-" + way, meet_both, way)

        @suite.test("hostile-" + way, what)
        def _(way=way):
            ahead.result("hostile-" + way)
            if os.geteuid():
                raise Skip("as another user it needs root")
