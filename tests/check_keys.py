#!/usr/bin/python3
"""Checks that keys of INFO records are spelled in formats/info.def alone: check_keys.py [ROOT]

Readers take an enum, which the compiler holds them to; what writes a record by a string literal is found here."""
import os
import re
import sys

FOLDERS = ("daemon", "formats", "record", "report", "store")
WRITES = re.compile(r'\bls_trace_info_(?:u64|str)\([^;"]*"([^"]*)"')


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    wrong, calls = [], 0
    for folder in FOLDERS:
        for base, _, names in os.walk(os.path.join(root, folder)):
            for name in names:
                if not name.endswith((".c", ".h")):
                    continue
                path = os.path.join(base, name)
                with open(path, encoding="utf-8") as f:
                    text = f.read()
                calls += len(re.findall(r"\bls_trace_info_(?:u64|str)\(", text))
                for m in WRITES.finditer(text):
                    wrong.append("%s:%d: \"%s\": use ls_info_key of its row in formats/info.def" % (
                        os.path.relpath(path, root), text.count("\n", 0, m.start()) + 1, m[1]))
    print("\n".join(wrong) or "%d calls write INFO records, none by a key of its own" % calls)
    return 1 if wrong or calls < 10 else 0


if __name__ == "__main__":
    sys.exit(main())
