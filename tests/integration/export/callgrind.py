"""Format callgrind beyond what tests/golden/report/viewers.py compares: parts, object files, kcachegrind. Imported by
run.py."""
import glob
import importlib.util
import os
import re

import shared
import support as s
from support import check


def annotate(path, *args):
    """(program total, {function: self}, object of each, text) of callgrind_annotate, which must say nothing on stderr."""
    r = s.run([s.need("callgrind_annotate"), "--auto=no", "--threshold=100", *args, path])
    check(r.status == 0 and r.err == "", "callgrind_annotate: %d %r" % (r.status, r.err[:300]))
    number = lambda text: int(text.replace(",", ""))
    total = number(re.search(r"^ *([\d,]+) .*PROGRAM TOTALS", r.out, re.M).group(1))
    rows = re.findall(r"^ *([\d,]+) \([ \d.]+%\) +[\d,]+ \([ \d.]+%\) +(\S.*?)(?: \[([^\[]*)\])?$", r.out, re.M)
    rows = [x for x in rows if "PROGRAM TOTALS" not in x[1]]
    return total, {x[1].split(":", 1)[1]: number(x[0]) for x in rows}, {x[1].split(":", 1)[1]: x[2] for x in rows}, r.out


def parts(trace, base, *args):
    """{thread's number: path} of export --per-thread."""
    s.run([s.luasample(), "export", "-i", trace, "--per-thread", "-o", base, *args]).ok()
    found = {}
    for path in sorted(glob.glob(glob.escape(base) + "-*")):
        with open(path) as f:
            found[int(re.search(r"^desc: Thread: (\d+)", f.read(), re.M).group(1))] = path
    check(not os.path.exists(base), "there is a file without a number")
    return found


def kcachegrind_tests():
    """What tests/integration/main has for programs with windows."""
    path = os.path.join(s.TESTS, "integration", "main", "viewers.py")
    spec = importlib.util.spec_from_file_location("main_viewers", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def add_to(suite):
    t = suite.test

    @t("callgrind.threads", "--per-thread: a file a thread, their sums are the threads' of report", True)
    def threads():
        for trace in (shared.workers(), shared.golden("threads"), shared.odd("names")):
            found = parts(trace, s.tmpfile(".callgrind"))
            want = {x["thread"]: x["self_ticks"] for x in shared.report(trace, "--by", "thread")["rows"]}
            wrong = shared.differ({tid: annotate(path)[0] for tid, path in found.items()}, want)
            check(not wrong, "%s: %s" % (os.path.basename(trace), wrong))
            for tid, path in list(found.items())[:3]:
                _, got, _, text = annotate(path)
                rows = shared.report(trace, "--thread", str(tid))["rows"]
                want = {x["function"] if x["function"].strip() else "[no name]": x["self_ticks"] for x in rows}
                wrong = shared.differ(got, want)
                check(not wrong, "%s, thread %d: %s" % (os.path.basename(trace), tid, wrong))
                check("Thread: %d" % tid in text, "no thread in the head: " + text[:400])
        base = s.tmpfile(".callgrind")
        check(list(parts(shared.golden("threads"), base, "--thread", "4243")) == [4243], "--thread 4243")

    @t("callgrind.objects", "native functions are in their object files, Lua's are not", True)
    def objects():
        _, _, of, _ = annotate(shared.export(shared.odd("mixed"), to=".callgrind").ok().path)
        want = {"memcpy": "/usr/lib/libc.so.6", "lpeg.so+0x1234": "/usr/lib/lpeg.so", "string.format": "/usr/bin/luajit",
                "work": "Lua", "[outside Lua]": "???"}
        got = {k: of.get(k) for k in want}
        check(got == want, "objects %s" % got)
        _, got, of, _ = annotate(shared.export(shared.native(), to=".callgrind").ok().path)
        check(any(o.startswith("/") for o in of.values()), "a recording: %s" % of)
        wrong = shared.differ(got, {x["function"]: x["self_ticks"] for x in shared.report(shared.native())["rows"]})
        check(not wrong, "a recording: " + wrong)

    @t("callgrind.kcachegrind", "kcachegrind takes the parts for one profile")
    def kcachegrind():
        tool, home = s.need("kcachegrind"), s.tmpfile(".d")
        os.mkdir(home, 0o700)
        with open(os.path.join(home, "kcachegrindrc"), "w") as f:
            f.write("[TipOfDay]\nRunOnStart=false\n")
        base = os.path.join(home, "callgrind.out.threads")
        parts(shared.golden("threads"), base)
        with kcachegrind_tests().Screen() as screen:
            title, err = screen.open([tool, base], r"^Error|callgrind.out.threads \[", home)
            # There is no file of that name, only its parts: the command is from them.
            check("[luajit src/app.lua" in title and err == "", "title %r, stderr %s" % (title, err[-300:]))
