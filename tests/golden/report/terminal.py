#!/usr/bin/python3
"""What report does on a terminal: terminal.py LUASAMPLE. The pager as git starts it, colour, columns that fit, and an end
without complaint when the user quits the pager."""
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import tempfile
import termios
import time

HERE = os.path.dirname(os.path.abspath(__file__))
failed = []


def on_terminal(cmd, columns=80, **env):
    """Output on a terminal, stderr, exit status."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    full = {k: v for k, v in os.environ.items() if k not in ("PAGER", "LUASAMPLE_PAGER", "LESS", "LV", "NO_COLOR", "COLUMNS")}
    full.update(TERM="xterm", LC_ALL="C.UTF-8", **env)
    with tempfile.TemporaryFile() as err:
        p = subprocess.Popen(cmd, cwd=HERE, stdin=slave, stdout=slave, stderr=err, env=full, start_new_session=True)
        os.close(slave)
        out, end = b"", time.monotonic() + 60
        while time.monotonic() < end:
            if select.select([master], [], [], 0.2)[0]:
                try:
                    data = os.read(master, 65536)
                except OSError:
                    break
                if not data:
                    break
                out += data
            elif p.poll() is not None:
                break
        status = p.wait(timeout=60)
        os.close(master)
        err.seek(0)
        return out.decode("utf-8", "replace").replace("\r\n", "\n"), err.read().decode("utf-8", "replace"), status


def check(ok, what, *seen):
    if not ok:
        failed.append(what)
        print("FAIL %s: %r" % (what, [str(s)[-300:] for s in seen]))


def columns(line):
    return len(re.sub(r"\033\[[0-9;]*m", "", line))


def main():
    luasample = os.path.abspath(sys.argv[1])
    report = [luasample, "report", "-i", "app.data"]
    say = "sh -c 'echo PAGER %s LESS=$LESS LV=$LV; cat'"

    out, err, status = on_terminal(report, PAGER=say % "one")
    check("PAGER one LESS=FRX LV=-c" in out and "fib" in out and status == 0, "PAGER is started, with LESS and LV", out, err)
    check("\033[" in out, "colour in the pager", out)
    out, _, _ = on_terminal(report, PAGER=say % "one", LUASAMPLE_PAGER=say % "two", LESS="S")
    check("PAGER two LESS=S" in out, "LUASAMPLE_PAGER comes first, LESS of the user stays", out)
    for env in ({"PAGER": "cat"}, {"PAGER": ""}, {"LUASAMPLE_PAGER": "", "PAGER": say % "one"}):
        out, _, status = on_terminal(report, **env)
        check("PAGER" not in out and "fib" in out and status == 0, "no pager with %s" % env, out)
    out, _, _ = on_terminal(report + ["--no-pager"], PAGER=say % "one")
    check("PAGER one" not in out and "fib" in out, "--no-pager", out)
    out, _, _ = on_terminal([luasample, "info", "-i", "app.data"], PAGER=say % "one")
    check("PAGER one" in out, "info has the pager", out)
    out, _, _ = on_terminal(report + ["--json"], PAGER=say % "one")
    check("PAGER" not in out, "no pager for JSON", out)
    p = subprocess.run(report, cwd=HERE, env=dict(os.environ, PAGER=say % "one"), stdout=subprocess.PIPE)
    check(b"PAGER one" not in p.stdout and b"\033" not in p.stdout, "no pager, no colour in a pipe", p.stdout)

    out, err, status = on_terminal(report, NO_COLOR="1", PAGER="cat")
    check("\033[" not in out and "fib" in out, "NO_COLOR", out)
    out, err, status = on_terminal(report + ["--color=always"], NO_COLOR="1", PAGER="cat")
    check("\033[" in out, "--color=always is stronger than NO_COLOR", out)
    out, err, status = on_terminal(report + ["--color=never"], PAGER="cat")
    check("\033[" not in out, "--color=never", out)

    # The user quits at once, while there is more to write than a pipe holds.
    for quitter in ("true", "head -c 1", "sh -c 'exit 3'"):
        out, err, status = on_terminal([luasample, "dump", "-i", "app.data"], PAGER=quitter)
        check(status == 0 and err == "", "quits quietly with PAGER=%s" % quitter, status, err)
    out, err, status = on_terminal(report, PAGER="no-such-pager-x")
    check(status == 0, "a pager that is not there", status)

    for width in (40, 80, 132, 200):
        for args in ([], ["--split"], ["--tree"], ["--annotate"], ["--by", "vmstate,line"], ["--depth", "3", "--min", "0"]):
            out, _, status = on_terminal(report + args, columns=width, PAGER="cat")
            wide = [l for l in out.splitlines() if columns(l) > width and "===" not in l and "more row" not in l]
            check(not wide and status == 0, "%d columns, %s" % (width, args), wide)
    print("%d checks of report on a terminal failed" % len(failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
