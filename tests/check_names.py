#!/usr/bin/python3
"""Checks that files which comments and documents name are there: check_names.py [ROOT]

Of comments in .c, .h and .def, and of DESIGN.md, CONTRIBUTING.md, README.md and docs/: words that end like a file of sources, by
its name alone or with folders before it. Files of others, and examples, are listed below."""
import os
import re
import sys

OTHERS = {"elf.h", "lua.h", "sysexits.h", "jit/vmdef.lua", "jit/p.lua", "a.lua", "b.lua"}
OTHERS_LIKE = re.compile(r"lj_\w+\.[ch]|.*\b(NAME|FILE)(_\w+)?\.\w+")
NAME = re.compile(r"(?<![\w./*<-])[A-Za-z][\w/-]*\.(?:c|h|def|lua|py)\b(?!\()")
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
SHOWN = re.compile(r"docs/(tour|for-[\w-]+)\.md")               # what programs print


def sources(root):
    for base, folders, names in os.walk(root):
        folders[:] = [f for f in folders if f[0] != "." and not f.startswith("build") and f != "subprojects"]
        for name in names:
            yield os.path.relpath(os.path.join(base, name), root)


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    files = sorted(sources(root))
    there = {"/".join(parts[i:]) for parts in (f.split("/") for f in files) for i in range(len(parts))} | OTHERS
    wrong = named = 0
    for path in files:
        is_text = path.endswith(".md") and not SHOWN.fullmatch(path) and path != "CHANGELOG.md"
        if not is_text and not path.endswith((".c", ".h", ".def")):
            continue
        with open(os.path.join(root, path), encoding="utf-8") as f:
            text = f.read()
        for part in [re.match(r"(?s).*", text)] if is_text else COMMENT.finditer(text):
            for m in NAME.finditer(part.group(0)):
                named += 1
                if m.group(0) in there or OTHERS_LIKE.fullmatch(m.group(0)):
                    continue
                line = text.count("\n", 0, part.start() + m.start()) + 1
                print("%s:%d: there is no %s" % (path, line, m.group(0)))
                wrong += 1
    print("%d names of files, %d wrong" % (named, wrong))
    return 1 if wrong or not named else 0


sys.exit(main())
