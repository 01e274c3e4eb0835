#!/usr/bin/python3
"""Checks that lines of C files end at column 100: check_width.py [--mend] [ROOT]

--mend breaks comments there: code and words stay, lists and drawings too. KNOWN says how many lines of comments it cannot mend,
by the first folder of the path: comments beside long code, lists. There may not be more; when there are fewer, the number goes
down. CODE says how many lines of code go beyond that column: there may not be more."""
import collections
import os
import re
import sys

MOST = 100
KNOWN = {"examples": 1, "formats": 7, "libsample": 12, "record": 3, "store": 3, "tests": 10}
CODE = {"tests": 7}
TOKEN = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
NOT_TEXT = re.compile(r"  +\S|\s*(-|\d\.|\*|\|) ")     # behind the * of a line: of a list or a drawing


def width(text):
    return len(text.expandtabs(8))


def comments(text):
    """Each comment that makes a line too wide: its match, what stands before it in its first line, behind it in its last."""
    for m in TOKEN.finditer(text):
        begin = text.rfind("\n", 0, m.start()) + 1
        if m.group()[0] == "/" and max(map(width, text[begin:m.end()].split("\n"))) > MOST:
            yield m, text[begin:m.start()], text[m.end():].split("\n", 1)[0]


def wide_lines(text):
    wide = set()
    for m, before, _ in comments(text):
        first = text.count("\n", 0, m.start()) + 1
        wide |= {first + i for i, line in enumerate((before + m.group()).split("\n")) if width(line) > MOST}
    return sorted(wide)


def wide_code(text):
    """Lines that are too wide, and not by a comment."""
    by_comment = set(wide_lines(text))
    return [n for n, line in enumerate(text.split("\n"), 1) if width(line) > MOST and n not in by_comment]


def wrap(words, at, indent):
    """Lines of these words; the first begins at a column, the others with indent."""
    lines = [[]]
    for word in words:
        if lines[-1] and at + len(" ".join(lines[-1] + [word])) > MOST:
            lines.append([])
            at = width(indent)
        lines[-1].append(word)
    return [" ".join(line).replace("\0", " ") for line in lines]


def paragraphs(comment):
    """Lists of words, None between them; or None when it has a shape that is to stay."""
    lines = comment.split("\n")
    if comment.startswith("/**") or not comment.startswith("/* ") or not comment.endswith(" */") or lines[-1].strip() == "*/":
        return None
    found = [lines[0][2:].split()]
    for line in lines[1:]:
        m = re.match(r"[ \t]*\*( .*)?$", line)
        if not m or NOT_TEXT.match(m[1] or ""):
            return None
        if m[1] and m[1].strip():
            found[-1] += m[1].split()
        else:
            found += [None, []]
    if any(re.search(r"\S  +\S", line) for line in lines):
        return None
    found[-1][-2:] = [found[-1][-2] + "\0*/"] if len(found[-1]) > 1 else found[-1]      # never alone in a line
    return found


def mended(comment, before, after):
    """The comment in lines that are not too wide, or None."""
    parts = paragraphs(comment)
    if not parts or after.strip() or "*/" in before or before.lstrip().startswith("#") or (before.strip() and width(before) > 68):
        return None
    indent = (" " * width(before) if before.strip() else before) + " * "
    lines = []
    for words in parts:
        if words is None:
            lines.append(indent.rstrip())
            continue
        new = wrap(words, width(before) + 3 if not lines else width(indent), indent)
        lines += [("/* " if not lines else indent) + new[0]] + [indent + line for line in new[1:]]
    text = "\n".join(lines)
    return text if max(map(width, (before + text).split("\n"))) <= MOST else None


def mend(text):
    out, last = [], 0
    for m, before, after in comments(text):
        new = mended(m.group(), before, after)
        if new:
            out += [text[last:m.start()], new]
            last = m.end()
    new = "".join(out) + text[last:]
    words = [[w for w in t.split() if w != "*"] for t in (text, new)]
    assert words[0] == words[1], "a word has changed"
    return new


def sources(root):
    for base, dirs, names in os.walk(root):
        dirs[:] = [d for d in dirs if d != "subprojects" and not d.startswith((".", "build"))]
        for name in names:
            path = os.path.relpath(os.path.join(base, name), root)
            if name.endswith((".c", ".h")):
                yield path


def wrong_code(code):
    """Folders with more wide lines of code than are known; fewer are said, for the number to go down."""
    bad = 0
    for top in sorted(set(code) | set(CODE)):
        have, known = len(code[top]), CODE.get(top, 0)
        if have > known:
            print("\n".join("%s: goes beyond column %d" % (where, MOST) for where in code[top][-20:]))
            print("%s: %d wide lines of code are known, these are %d" % (top, known, have))
        elif have < known:
            print("CODE says %d of %s, there are %d: lower it" % (known, top, have))
        bad += have > known
    return bad


def main():
    args = sys.argv[1:]
    mends = "--mend" in args
    args = [a for a in args if a != "--mend"]
    root = args[0] if args else os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    found, code, files, bad = collections.defaultdict(list), collections.defaultdict(list), 0, 0
    for path in sorted(sources(root)):
        files += 1
        with open(os.path.join(root, path), encoding="utf-8") as f:
            text = f.read()
        if mends and mend(text) != text:
            text = mend(text)
            with open(os.path.join(root, path), "w", encoding="utf-8") as f:
                f.write(text)
        found[path.split("/")[0]] += ["%s:%d" % (path, n) for n in wide_lines(text)]
        code[path.split("/")[0]] += ["%s:%d" % (path, n) for n in wide_code(text)]
    for top in sorted(set(found) | set(KNOWN)):
        have, known = len(found[top]), KNOWN.get(top, 0)
        if have > known:
            print("\n".join("%s: a comment goes beyond column %d" % (where, MOST) for where in found[top]))
            print("%s: %d are known, these are %d: check_width.py --mend" % (top, known, have))
        elif have < known:
            print("KNOWN says %d of %s, there are %d: lower it" % (known, top, have))
        bad += have != known
    bad += wrong_code(code)
    print("%d files, %d wrong folders, %d wide lines known" % (files, bad, sum(KNOWN.values()) + sum(CODE.values())))
    return 1 if bad or not files else 0


if __name__ == "__main__":
    sys.exit(main())
