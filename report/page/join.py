#!/usr/bin/env python3
"""Joins the files of the page into a C file: join.py OUTPUT.c PAGE.html PAGE.css SCRIPT.js...

page.html names the places: @STYLE@, @SCRIPT@ and @DATA@. Scripts become one, in the order given: they share its names.
Run by the build (report/meson.build)."""
import sys


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def array(name, text):
    data = text.encode()
    lines = [", ".join(str(b) for b in data[i:i + 24]) for i in range(0, len(data), 24)]
    return "const char %s[] = {\n%s\n};\nconst unsigned %s_len = %d;\n" % (name, ",\n".join(lines), name, len(data))


def main():
    output, html, css, *scripts = sys.argv[1:]
    style, page = read(css), read(html)
    script = "(() => {\n'use strict';\n%s})();\n" % "\n".join(read(s) for s in scripts)
    for text, end in ((style, "</style"), (script, "</script")):
        if end in text.lower():
            sys.exit("join.py: %s would end its element" % end)
    if any(b >= 0x80 for b in (page + style + script).encode()):
        sys.exit("join.py: write characters beyond ASCII as escapes: a C char may be signed")
    page = page.replace("@STYLE@", style).replace("@SCRIPT@", script)
    head, tail = page.split("@DATA@")
    with open(output, "w", encoding="ascii") as f:
        f.write('/* Made by report/page/join.py. */\n#include "report/page/page.h"\n\n%s%s'
                % (array("ls_page_head", head), array("ls_page_tail", tail)))


if __name__ == "__main__":
    main()
