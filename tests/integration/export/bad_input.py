"""Odd traces and outputs that cannot be written, for every format of export --list. Imported by run.py."""
import os
import re
import stat

import command
import shared
import support as s
from support import check

KINDS = ["empty", "one", "deep", "names", "mixed", "heavy"]


def experimental(row):
    return ["--experimental"] * row[2]


def add_to(suite):
    t = suite.test

    @t("bad_input.traces", "no sample, one frame, 10,000 frames, names of 64 KiB, bytes that are no UTF-8", True)
    def traces():
        for row in command.formats():
            for kind in KINDS:
                r = shared.export(shared.odd(kind), "--format", row[0], *experimental(row), binary=True, timeout=30)
                what = "%s of %s: " % (row[0], kind)
                check(r.status == 0, what + "status %d: %s" % (r.status, r.err[-300:]))
                want = "luasample: warning: no samples collected\n" if kind == "empty" else ""
                check(r.err == want, what + r.err[-300:])
                if "\0" not in r.out.decode("latin-1"):         # text
                    text = r.out.decode("utf-8")
                    check(not any(ord(c) < 32 and c not in "\r\n\t" or ord(c) in (127, 0x202e) for c in text),
                          what + "control characters")
                    if kind != "names":                             # a name there is "nan"
                        check(not re.search(r"\b(nan|inf|infinity)\b", text.lower()), what + "has no number")

    @t("bad_input.files", "traces of newer versions, and those that must be rejected: exported or refused in one line", True)
    def files():
        found = [os.path.join(s.TESTS, "golden", d, f) for d in ("traces", "rejected")
                 for f in sorted(os.listdir(os.path.join(s.TESTS, "golden", d)))]
        found = [f for f in found if f.endswith(".lst")]
        check(len(found) > 10, "no traces: %s" % found)
        for row in command.formats():
            for path in found:
                r = shared.export(path, "--format", row[0], *experimental(row), "-o", s.tmpfile(".out"))
                check(r.status == 0 or r.status == 1 and r.err.count("\n") == 1,
                      "%s of %s: %d %s" % (row[0], path, r.status, r.err[-300:]))

    @t("bad_input.full", "a full disk: status 1, one line that says so", True)
    def full():
        if not stat.S_ISCHR(os.stat("/dev/full").st_mode):
            raise s.Skip("no /dev/full")
        for row in command.formats():
            args = [s.luasample(), "export", "-i", shared.filled(row[0]), "--format", row[0], *experimental(row)]
            r = s.run([*args, "-o", "/dev/full"])
            check(r.status == 1 and r.err.count("\n") == 1 and "No space left" in r.err and "/dev/full" in r.err,
                  "%s -o /dev/full: %d %s" % (row[0], r.status, r.err[-300:]))
            r = s.run(["sh", "-c", '"$@" > /dev/full', "sh", *args])
            check(r.status == 1 and r.err.count("\n") == 1 and "No space left" in r.err, "%s > /dev/full: %d %s" %
                  (row[0], r.status, r.err[-300:]))

    @t("bad_input.unwritable", "a directory, a missing directory, a file that may not be written; the old file stays", True)
    def unwritable():
        there, d = s.tmpfile(".old"), s.tmpfile(".d")
        os.mkdir(d)
        with open(there, "w") as f:
            f.write("precious")
        for row in command.formats():
            for path in (d, os.path.join(d, "no", "such", "file")):
                r = shared.export(shared.odd("one"), "--format", row[0], *experimental(row), "-o", path)
                check(r.status == 1 and r.err.count("\n") == 1 and path in r.err,
                      "%s: %d %s" % (row[0], r.status, r.err[-300:]))
            r = shared.export(s.tmpfile(".none"), "--format", row[0], *experimental(row), "-o", there)
            check(r.status == 1 and r.err.count("\n") == 1, "no trace: %d %s" % (r.status, r.err))
        with open(there) as f:
            check(f.read() == "precious", "the old file is gone")
        check(os.listdir(d) == [], "left behind: %s" % os.listdir(d))

    @t("bad_input.parts", "--per-thread where nothing can be written", True)
    def no_parts():
        r = shared.export(shared.odd("mixed"), "--format", "callgrind", "--per-thread", "-o", "/no/such/x")
        check(r.status == 1 and r.err.count("\n") == 1 and "/no/such/x-01" in r.err, "%d %s" % (r.status, r.err))

    @t("bad_input.reader", "a reader that goes away ends it by SIGPIPE, without a word", True)
    def reader():
        for name, _, flag in command.formats():
            extra = "--experimental" if flag else ""
            r = s.run(["bash", "-c", 'set -o pipefail; "$0" export -i "$1" --format "$2" $3 | true', s.luasample(),
                       shared.odd("names"), name, extra])
            check(r.status in (0, 141) and r.err == "", "%s: %d %s" % (name, r.status, r.err[-300:]))
