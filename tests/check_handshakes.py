#!/usr/bin/python3
"""Checks that each row of docs/handshakes.md names a test, that these tests exist, and that none of them is left out."""
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FILES = ["test_libsample_recording_threads.c", "test_record_attach_hold_steps.c", "test_record_tick_ticker_steps.c",
         "test_record_translate_drain_steps.c"]


def read(name):
    with open(os.path.join(ROOT, name), encoding="utf-8") as f:
        return f.read()


def main():
    text = read("docs/handshakes.md")
    named = {n for names in re.findall(r"\b[AR]\s+(\w+(?:, \w+)*)", text) for n in names.split(", ") if "_" in n}
    wrong = ["row without a test: " + row for row in re.findall(r"^\|.*\|$", text, re.M)
             if row.count("|") == 6 and not row.startswith(("| from", "|---")) and not re.search(r"\| (A|R|integration:|test_)[^|]*\|$", row)]
    there = set()
    for name in FILES:
        there |= set(re.findall(r"(?:cmocka_unit_test|TEST)\((?!name)(\w+)\)", read("tests/unit/" + name)))
    wrong += ["no such test: " + n for n in sorted(named - there)]
    wrong += ["not in docs/handshakes.md: " + n for n in sorted(there - named)]
    for line in wrong:
        print(line)
    print("%d tests, %d wrong" % (len(there), len(wrong)))
    return 1 if wrong or not there else 0


sys.exit(main())
