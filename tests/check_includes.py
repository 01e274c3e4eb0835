#!/usr/bin/python3
"""Checks the #include edges of DESIGN.md: check_includes.py [ROOT]

Each row below names a folder and the folders whose headers it may use; the longest row that fits a file counts. A file
may always use its own folder. Also: project headers are included by their path from the root."""
import os
import re
import sys

ALLOWED = {
    "formats/wire": [],
    "formats": ["formats/wire"],
    "cli": ["formats"],
    "libsample/handler": ["formats/wire", "libsample"],
    "libsample/inject": ["formats/wire", "libsample"],
    "record/watch": ["formats/wire", "libsample", "libsample/handler"],
    "libsample": ["formats/wire", "libsample/handler", "libsample/inject"],
    "record/worker": ["formats/wire", "libsample/inject", "record/watch"],
    "store": ["formats", "cli"],
    "daemon/client": ["cli"],
    "daemon": ["daemon/client", "store", "formats", "cli"],
    "record": ["daemon/client", "record/worker", "formats", "formats/wire", "cli", "libsample/inject", "record/watch"],
    "report": ["store", "formats", "formats/wire", "cli"],
    ".": ["cli", "daemon", "store", "record", "record/worker", "report"],
}
LIBC_ONLY = ["formats/wire", "libsample"]       # what enters other processes: no other library's headers
LIBRARIES = re.compile(r"^(popt|zstd|xxhash|uthash|yajl|elfutils|gelf|libelf|lua|lauxlib|luajit|curses)", re.I)
SKIP = {"tests", "subprojects", ".git"}


def folder_rule(path):
    folder = os.path.dirname(path) or "."
    while folder not in ALLOWED and folder not in ("", "."):
        folder = os.path.dirname(folder) or "."
    return folder


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    wrong, files = [], 0
    for base, dirs, names in os.walk(root):
        rel = os.path.relpath(base, root)
        dirs[:] = [d for d in dirs if d not in SKIP and not d.startswith((".", "build"))]
        for name in names:
            if not name.endswith((".c", ".h", ".def")):
                continue
            path = os.path.normpath(os.path.join(rel, name))
            rule = folder_rule(path)
            files += 1
            with open(os.path.join(root, path), encoding="utf-8", errors="replace") as f:
                for number, line in enumerate(f, 1):
                    quoted = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
                    angled = re.match(r"\s*#\s*include\s+<([^>]+)>", line)
                    if quoted:
                        target = quoted.group(1)
                        if not os.path.exists(os.path.join(root, target)):
                            if "/" in target or not os.path.exists(os.path.join(root, os.path.dirname(path), target)):
                                continue        # made by the build
                            wrong.append("%s:%d: \"%s\" is not a path from the root" % (path, number, target))
                            continue
                        folder = folder_rule(target)
                        if folder != rule and folder not in ALLOWED[rule]:
                            wrong.append("%s:%d: %s/ must not use %s" % (path, number, rule, target))
                    elif angled and LIBRARIES.match(angled.group(1)):
                        if any(rule == l or rule.startswith(l + "/") for l in LIBC_ONLY):
                            wrong.append("%s:%d: %s/ is libc only, but uses <%s>" % (path, number, rule, angled.group(1)))
    for line in wrong:
        print(line)
    print("%d files, %d wrong edges" % (files, len(wrong)))
    return 1 if wrong or not files else 0


sys.exit(main())
