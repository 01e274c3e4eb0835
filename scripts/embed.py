#!/usr/bin/env python3
"""Puts text into a C file as arrays: embed.py OUTPUT.c HEADER.h NAME FILE [FILE.css] [FILE.js...]

The first file becomes NAME and NAME_len, which HEADER.h declares; with a place @DATA@, NAME_head and NAME_tail and their
lengths. Its places @STYLE@ and @SCRIPT@ take the other files. Scripts become one, in the order given: they share its names.
Run by the build (report/meson.build, libsample/meson.build)."""
import sys


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def array(name, text):
    data = text.encode()
    lines = [", ".join(str(b) for b in data[i:i + 24]) for i in range(0, len(data), 24)]
    return "const char %s[] = {\n%s\n};\nconst unsigned %s_len = %d;\n" % (name, ",\n".join(lines), name, len(data))


def join(text, others):
    style = "".join(read(f) for f in others if f.endswith(".css"))
    script = "(() => {\n'use strict';\n%s})();\n" % "\n".join(read(f) for f in others if f.endswith(".js"))
    for part, end in ((style, "</style"), (script, "</script")):
        if end in part.lower():
            sys.exit("embed.py: %s would end its element" % end)
    return text.replace("@STYLE@", style).replace("@SCRIPT@", script)


def main():
    output, header, name, first, *others = sys.argv[1:]
    text = join(read(first), others)
    if any(b >= 0x80 for b in text.encode()):
        sys.exit("embed.py: write characters beyond ASCII as escapes: a C char may be signed")
    parts = dict(zip((name + "_head", name + "_tail"), text.split("@DATA@"))) if "@DATA@" in text else {name: text}
    with open(output, "w", encoding="ascii") as f:
        f.write('/* Made by scripts/embed.py. */\n#include "%s"\n\n%s'
                % (header, "".join(array(n, t) for n, t in parts.items())))


if __name__ == "__main__":
    main()
