#!/usr/bin/python3
"""What callgrind_annotate makes of --format callgrind: viewers.py LUASAMPLE. It must say nothing on stderr, and its self
and inclusive costs must be those of the flat profile. Skipped (77) where callgrind_annotate is not installed."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))


def run(*cmd):
    return subprocess.run(cmd, cwd=HERE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", timeout=120)


def costs(text):
    """{function: ticks} of callgrind_annotate's list, and the program's total."""
    total = re.search(r"^\s*([\d,]+) .*PROGRAM TOTALS", text, re.M).group(1)
    rows = re.findall(r"^\s*([\d,]+) \([ \d.]+%\)\s+[\d,]+ \([ \d.]+%\)\s+(\S.*)$", text, re.M)
    found = {}
    for ticks, name in rows:
        if "PROGRAM TOTALS" not in name:
            # "file:function [object]"; the file may hold ':' as a chunk of source text does
            found[re.sub(r" \[[^\[]*\]$", "", name)] = int(ticks.replace(",", ""))
    return found, int(total.replace(",", ""))


def main():
    luasample, wrong = os.path.abspath(sys.argv[1]), []
    tool = shutil.which("callgrind_annotate")
    if not tool:
        print("callgrind_annotate is not installed")
        return 77
    for trace in ("app.data", "recursion.data", "weights.data"):
        rows = json.loads(run(luasample, "report", "-i", trace, "--json").stdout)["rows"]
        with tempfile.NamedTemporaryFile(suffix=".callgrind") as f:
            run(luasample, "report", "-i", trace, "--format", "callgrind", "-o", f.name)
            for inclusive, field in (("no", "self_ticks"), ("yes", "total_ticks")):
                p = run(tool, "--threshold=100", "--inclusive=" + inclusive, f.name)
                if p.returncode or p.stderr:
                    wrong.append("%s: status %d, stderr %r" % (trace, p.returncode, p.stderr[:300]))
                    continue
                got, total = costs(p.stdout)
                if total != sum(r["self_ticks"] for r in rows):
                    wrong.append("%s: PROGRAM TOTALS %d" % (trace, total))
                for r in rows:
                    mine = [v for k, v in got.items() if k.endswith(":" + r["function"])]
                    if r[field] and mine != [r[field]]:
                        wrong.append("%s: %s of %s is %s, callgrind_annotate has %s" % (trace, field, r["function"], r[field], mine))
    for w in wrong:
        print(w)
    print("%d differences" % len(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
