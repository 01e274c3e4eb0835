"""The command export itself: formats by name and by suffix, filters, where it writes. Imported by run.py."""
import os
import pty
import subprocess

import shared
import support as s
from support import check


def formats():
    """[(name, suffix, experimental)] of export --list."""
    lines = s.run([s.luasample(), "export", "--list"]).ok().out.splitlines()
    return [(l.split()[0], l.split()[1], "(--experimental)" in l) for l in lines]


def on_terminal(*args):
    """(status, what the terminal and stderr have got) of a command whose stdout is a terminal."""
    ours, theirs = pty.openpty()
    p = subprocess.Popen([s.luasample(), "export", *args], stdin=subprocess.DEVNULL, stdout=theirs, stderr=subprocess.PIPE)
    os.close(theirs)
    shown = b""
    try:
        while True:
            part = os.read(ours, 65536)
            if not part:
                break
            shown += part
    except OSError:                     # the other side was closed
        pass
    os.close(ours)
    err = p.communicate(timeout=60)[1]
    return p.returncode, shown, err.decode()


def add_to(suite):
    t = suite.test

    @t("command.list", "each format has its row; a file named by suffix is what --format writes, and report --format", True)
    def listed():
        rows = formats()
        check(len({n for n, _, _ in rows}) == len(rows) == len({x for _, x, _ in rows}), "--list: %s" % rows)
        for name, suffix, experimental in rows:
            extra = ["--experimental"] if experimental else []
            if experimental:
                r = shared.export(shared.odd("one"), "--format", name)
                check(r.status == 129 and "--experimental" in r.err, "%s without --experimental: %s" % (name, r.err))
            by_suffix = shared.export(shared.odd("mixed"), *extra, to="x" + suffix)
            check(by_suffix.status == 0, "%s: %s" % (suffix, by_suffix.err[-300:]))
            with open(by_suffix.path, "rb") as f:
                want = f.read()
            got = shared.export(shared.odd("mixed"), "--format", name, *extra, binary=True).ok().out
            check(got == want, "%s: --format and the suffix %s write different things" % (name, suffix))
            if not experimental:
                r = s.report(shared.odd("mixed"), "--format", name, binary=True).ok()
                check(r.out == want, "report --format %s is another" % name)

    @t("command.prefix", "callgrind.out.NAME is callgrind; a directory's name says nothing", True)
    def prefix():
        d = s.tmpfile(".csv")
        os.mkdir(d)
        path = os.path.join(d, "callgrind.out.app")
        s.run([s.luasample(), "export", "-i", shared.odd("one"), "-o", path]).ok()
        with open(path) as f:
            check(f.read().startswith("# callgrind format"), "no callgrind")
        for name in ("x", "csv", ".csv"):
            r = s.run([s.luasample(), "export", "-i", shared.odd("one"), "-o", os.path.join(d, name)])
            check(r.status == 129 and "export --list" in r.err, "%s: %d %s" % (name, r.status, r.err))

    @t("command.terminal", "binary formats are refused on a terminal, others are not", True)
    def terminal():
        status, shown, err = on_terminal("-i", shared.odd("one"), "--format", "pprof")
        check(status == 1 and not shown and err.count("\n") == 1 and "-o FILE" in err,
              "pprof: %d %r %s" % (status, shown, err))
        status, shown, err = on_terminal("-i", shared.odd("one"), "--format", "collapsed")
        check(status == 0 and shown == b"one 1\r\n" and not err, "collapsed: %d %r %s" % (status, shown, err))

    @t("command.filters", "every format obeys the filters", True)
    def filters():
        for name, _, experimental in formats():
            args = ["--format", name, *["--experimental"] * experimental]
            whole, part, none = (shared.export(shared.filled(name), *args, *f, binary=True)
                                 for f in ((), ("--vmstate", "gc"), ("--vmstate", "gc", "--zone", "x")))
            check(whole.status == part.status == 0, name)
            check(whole.out != part.out, name + " does not obey --vmstate")
            check(none.status == 1 and "no samples left" in none.err,
                  "%s: nothing left: %d %s" % (name, none.status, none.err))

    @t("command.pipe", "from stdin, to stdout", True)
    def pipe():
        with open(shared.odd("mixed"), "rb") as f:
            r = s.run([s.luasample(), "export", "-i", "-", "-o", "-", "--format", "collapsed"], input=f.read(), binary=True)
        check(r.status == 0 and r.out == shared.export(shared.odd("mixed"), "--format", "collapsed", binary=True).out, r.err)

    @t("command.collapsed", "counts sum to the ticks, with filters", True)
    def collapsed():
        for trace in shared.synthetic():
            for f in ((), ("--by", "line"), ("--by", "thread,function"), ("--vmstate", "interpreted")):
                text = shared.export(trace, "--format", "collapsed", *f).out
                got = sum(int(l.rsplit(" ", 1)[1]) for l in text.splitlines())
                check(got == shared.ticks(trace, *f), "%s %s: %d" % (os.path.basename(trace), f, got))
