#!/usr/bin/python3
"""Checks the tests' own order: check_tests.py ROOT. Run by meson test.

* A unit test has the name of the source that it tests: test_ and its path, with _ for /, and _SUBJECT behind that when a source
  has several.
* README.md of tests/lua and of tests/hosts has one line for each program that is there, and for no other.
* The corpus of a fuzz target has at most 20 seeds (tests/fuzz/choose.py), and no file whose name is a hash."""
import glob
import os
import re
import sys

ROOT = os.path.abspath(sys.argv[1])
ROOMS = ("cli", "daemon", "formats", "libsample", "record", "report", "store")


def sources():
    """Paths of all C files of the product, without .c and with _ for /."""
    for room in ROOMS:
        for path in glob.glob(os.path.join(ROOT, room, "**", "*.c"), recursive=True):
            yield os.path.relpath(path, ROOT)[:-len(".c")].replace("/", "_")


def unit_names():
    names = tuple(sources())
    for path in glob.glob(os.path.join(ROOT, "tests/unit/test_*.c")):
        name = os.path.basename(path)[len("test_"):-len(".c")]
        if not any(name == n or name.startswith(n + "_") for n in names):
            yield "%s: no source has that name (record/tick/ticker.c has test_record_tick_ticker.c)" % os.path.relpath(path, ROOT)


def programs():
    for folder, suffix in (("tests/lua", ".lua"), ("tests/hosts", ".c")):
        there = {n for n in os.listdir(os.path.join(ROOT, folder)) if n.endswith(suffix)}
        with open(os.path.join(ROOT, folder, "README.md"), encoding="utf-8") as f:
            said = re.findall(r"^\* `([^`]+)`: .", f.read(), re.M)
        for name in sorted(there - set(said)):
            yield "%s/README.md: no line for %s" % (folder, name)
        for name in sorted(set(said) - there) + sorted({n for n in said if said.count(n) > 1}):
            yield "%s/README.md: a line too many for %s" % (folder, name)


def corpora():
    for corpus in glob.glob(os.path.join(ROOT, "tests/fuzz/corpus_*")):
        names, where = os.listdir(corpus), os.path.relpath(corpus, ROOT)
        seeds = [n for n in names if n.startswith("seed-")]
        if not names or len(seeds) > 20:
            yield "%s: %d seeds, 1 to 20 are wanted (tests/fuzz/choose.py)" % (where, len(seeds))
        for name in names:
            if re.fullmatch("[0-9a-f]{40}|(crash|leak|oom|timeout|slow-unit)-.*", name):
                yield "%s/%s: a name that says what it was is wanted" % (where, name)


def main():
    wrong = sorted(unit_names()) + sorted(programs()) + sorted(corpora())
    for line in wrong:
        print(line)
    return 1 if wrong else 0


sys.exit(main())
