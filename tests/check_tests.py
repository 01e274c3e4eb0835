"""Checks the tests' own order: check_tests.py ROOT. A unit test has the name of the source that it tests: test_ and its path,
with _ for /, and _SUBJECT behind that when a source has several. Run by meson test."""
import glob
import os
import sys

ROOT = os.path.abspath(sys.argv[1])
ROOMS = ("cli", "formats", "libsample", "record", "report")


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


def main():
    wrong = sorted(unit_names())
    for line in wrong:
        print(line)
    return 1 if wrong else 0


sys.exit(main())
