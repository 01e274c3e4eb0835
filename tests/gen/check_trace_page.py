"""luasample-trace(5) and the tables of the code say the same: kinds with their numbers and rules, and all columns with
number, name and type, in both directions. Arguments: root of the source tree."""
import re
import sys
from pathlib import Path

ROOT = Path(sys.argv[1])
TYPES = {"NUM": "number", "HASH": "hash", "STR": "string", "BYTES": "bytes", "REAL": "real"}
RULES = {"DENSE": "ids", "KEYED": "key", "STREAM": "rows"}


def code_tables():
    numbers = {name: int(n) for n, name in re.findall(r"LS_RECORD\(\s*(\d+),\s*(\w+)",
                                                      (ROOT / "formats/wire/records.def").read_text())}
    rules = dict(re.findall(r"\[LS_REC_(\w+)\]\s*=\s*\{ \"\w+\",\s*LS_ROWS_(\w+)", (ROOT / "formats/trace/schema.c").read_text()))
    tables = {kind: (numbers[kind], RULES[rule], {}) for kind, rule in rules.items()}
    for kind, n, name, type_ in re.findall(r'^LS_COLUMN\((\w+),\s*(\d+),\s*\w+,\s*"(\w+)",\s*(\w+)',
                                           (ROOT / "formats/trace/columns.def").read_text(), re.M):
        tables[kind][2][int(n)] = (name, TYPES[type_])
    return tables


def page_tables():
    tables = {}
    page = (ROOT / "man/luasample-trace.5.scd").read_text().replace("\\_", "_")
    for kind, number, rule, body in re.findall(r"^## (\w+) \((\d+)\), (\w+)(.*?)(?=^#)", page, re.M | re.S):
        rows = re.findall(r"^\|  (\d+)\n:  (\w+)\n:  (\w+)", body, re.M)
        tables[kind] = (int(number), rule, {int(n): (name, type_) for n, name, type_ in rows})
    return tables


def main():
    code, page = code_tables(), page_tables()
    wrong = 0
    for kind in sorted(code.keys() | page.keys()):
        if code.get(kind) != page.get(kind):
            print(f"{kind}: the code has {code.get(kind)}, the page {page.get(kind)}")
            wrong += 1
    if not code:
        print("no tables found in the code")
    return 1 if wrong or not code else 0


sys.exit(main())
