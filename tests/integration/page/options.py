"""report --html as a command: what it refuses, and what is in the file. Imported by run.py."""
import os
import pty
import subprocess

import shared
import support as s
from support import check

SIZE = 400 << 10                        # bytes of a page without its data


def add_to(suite):
    t = suite.test

    @t("options.conflicts", "views that exclude --html", quick=True)
    def conflicts():
        for args in (["--json"], ["--format", "callgrind"], ["--tree"], ["--split"], ["--annotate"], ["--by", "line"],
                     ["--depth", "2"]):
            r = s.report("none.data", "--html", "-o", "x.html", *args)
            check(r.status == 129 and "--html" in r.err, "%s: status %d: %s" % (args, r.status, r.err))

    @t("options.sources", "files that are not known to be those that were recorded are not in the page", quick=True)
    def sources():
        page, d = s.tmpfile(".html"), os.path.dirname(s.tmpfile(".lua"))
        os.chmod(d, 0o755)                      # root reads as nobody what is not what was recorded
        with open(os.path.join(d, "util.lua"), "w") as f:
            f.write("-- a key that nobody may have\n" * 40)
        trace = os.path.join(s.ROOT, "tests", "golden", "report", "app.data")
        r = s.report(trace, "--html", "-o", page, "--source-dir", d).ok()
        with open(page) as f:
            check("a key that nobody may have" not in f.read(), "the page has a file that was not recorded")
        check("not in the page" in r.err and len(r.err.splitlines()) == 1, r.err)

    @t("options.terminal", "a terminal gets no page", quick=True)
    def terminal():
        master, slave = pty.openpty()
        p = subprocess.run([s.luasample(), "report", "-i", "none.data", "--html"], stdout=slave, stderr=subprocess.PIPE,
                           stdin=subprocess.DEVNULL, timeout=60)
        os.close(slave)
        os.close(master)
        check(p.returncode == 129 and b"terminal" in p.stderr, "status %d: %s" % (p.returncode, p.stderr))

    @t("options.file", "one file, small, with nothing from elsewhere")
    def file():
        text = shared.text_of(shared.page_of(shared.recording()))
        size = len(text) - len(text.split('id="data">')[1].split("</script>")[0])
        check(size < SIZE, "the page without its data has %d bytes" % size)
        for word in ("http://", "https://", "//cdn", "@import", "src=", "innerHTML", "eval("):
            check(word not in text.split('id="data">')[0] + text.split('id="data">')[1].split("</script>", 1)[1],
                  "the page has %r" % word)
        out = s.report(shared.recording(), "--html")
        check(out.status == 0 and out.out.startswith("<!DOCTYPE html>"), "to a pipe: %d %.100s" % (out.status, out.out))
        check("<script>" in out.out and out.out.rstrip().endswith("</html>"), "the page is not whole")

    @t("options.full", "a disk without room")
    def full():
        r = s.run([s.luasample(), "report", "-i", shared.recording(), "--html", "-o", "/dev/full"])
        check(r.status == 1 and "cannot write" in r.err, "status %d: %s" % (r.status, r.err))
