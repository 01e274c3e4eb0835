"""A trace of 10 million samples: memory, and sums. Speed is measured in tests/bench (part export). Imported by run.py."""
import json
import os
import subprocess

import support as s
from support import check

MIB = 500


def most_memory(cmd, out):
    """MiB that a command used at most; its stdout goes to out."""
    with open(out, "wb") as f:
        p = subprocess.Popen(cmd, stdin=subprocess.DEVNULL, stdout=f, stderr=subprocess.PIPE)
        err = p.stderr.read().decode()
        _, p.returncode, usage = os.wait4(p.pid, 0)
    check(p.returncode == 0 and err == "", "%s: status %d: %s" % (" ".join(cmd[1:5]), p.returncode, err[-300:]))
    return usage.ru_maxrss / 1024


def add_to(suite):
    @suite.test("big.memory", "10 million samples: collapsed, pprof, callgrind in less than %d MiB" % MIB)
    def memory():
        trace, out = s.tmpfile(".data"), s.tmpfile(".out")
        gen = os.path.join(s.build_dir(), "tests", "gen", "gen_trace")
        made = json.loads(s.run([gen, "-o", trace, "--threads", "20"], timeout=300).ok().out)
        if most_memory(["true"], os.devnull) > MIB:     # what a child is started from counts as its own
            raise s.Skip("the test itself needs more than %d MiB" % MIB)
        for name in ("pprof", "callgrind", "collapsed"):
            mib = most_memory([s.luasample(), "export", "-i", trace, "--format", name], out)
            check(mib < MIB, "%s: %d MiB" % (name, mib))
        with open(out, "rb") as f:
            got = sum(int(line[line.rindex(b" "):]) for line in f)
        check(got == made["ticks"], "collapsed has %d ticks of %d" % (got, made["ticks"]))
        os.remove(trace)
        os.remove(out)
