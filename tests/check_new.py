#!/usr/bin/python3
"""Checks that what scripts/new makes builds and works: check_new.py [ROOT]

In a copy of the tree, of which nothing but luasample and what it consists of is built. Needs meson, ninja, and some two minutes
of CPU time, with ccache seconds. Without --build: only that each kind finds its places, and refuses names that are taken."""
import os
import shutil
import subprocess
import sys
import tempfile

MADE = [("view", "some-view"), ("exporter", "some-format"), ("event", "some-event"), ("figure", "some-figure")]
TAKEN = [("view", "tree"), ("exporter", "pprof"), ("event", "ready"), ("figure", "ticks"), ("view", "Bad"), ("nosuch", "x")]
LEFT_OUT = shutil.ignore_patterns(".git", "build*", "__pycache__", "fuzz", "golden", "subprojects")


def run(cmd, **kw):
    return subprocess.run(cmd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", check=False, **kw)


def build(tree):
    """What does not work of what was made."""
    out = os.path.join(tree, "build")
    for cmd in (["meson", "setup", "--werror", "-Dtests=disabled", out, tree], ["ninja", "-C", out, "-j2"]):
        p = run(cmd)
        if p.returncode:
            return ["%s: %s" % (" ".join(cmd), p.stdout[-1500:])]
    luasample, trace = os.path.join(out, "luasample"), os.path.join(out, "a.data")
    wrong = []
    for cmd, want in ((["record", "-q", "-o", trace, "--", "luajit", "-e", "for i = 1, 1e8 do end"], ""),
                      (["report", "-i", trace, "--some-view"], " samples, "),
                      (["report", "-i", trace, "--some-view", "--json"], '"view": "some-view"'),
                      (["export", "-i", trace, "--format", "some-format"], "main chunk"),
                      (["export", "--list"], "some-format"),
                      (["info", "-i", trace, "--json"], '"some_figure": 0')):
        p = run([luasample, *cmd])
        if p.returncode or want not in p.stdout:
            wrong.append("%s: status %d, %s" % (" ".join(cmd), p.returncode, p.stdout[-600:]))
    p = run([sys.executable, os.path.join(tree, "tests", "check_man.py"), luasample, os.path.join(tree, "man")])
    return wrong + ([p.stdout] if p.returncode else [])


def main():
    argv = [a for a in sys.argv[1:] if a != "--build"]
    root = argv[0] if argv else os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    wrong = []
    with tempfile.TemporaryDirectory() as d:
        tree = os.path.join(d, "tree")
        shutil.copytree(root, tree, ignore=LEFT_OUT, symlinks=True)
        new = os.path.join(tree, "scripts", "new")
        for kind, name in TAKEN:
            p = run([new, kind, name])
            if not p.returncode or "Traceback" in p.stdout:
                wrong.append("%s %s is not refused: %s" % (kind, name, p.stdout))
        for kind, name in MADE:
            p = run([new, kind, name])
            if p.returncode or "left to do" not in p.stdout:
                wrong.append("%s %s: %s" % (kind, name, p.stdout))
            elif not run([new, kind, name]).returncode:
                wrong.append("%s %s is made twice" % (kind, name))
        if "--build" in sys.argv and not wrong:
            wrong = build(tree)
    for line in wrong:
        print(line)
    print("%d kinds, %d wrong" % (len(MADE), len(wrong)))
    return 1 if wrong else 0


sys.exit(main())
