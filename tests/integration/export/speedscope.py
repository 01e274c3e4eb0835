"""Formats speedscope, chrome and perf-script, opened by speedscope in headless Chromium: all files in one tab, one after
the other. What speedscope has read is what its own "Export" writes. Imported by run.py."""
import functools
import http.server
import json
import os
import re
import sys
import threading
import time
import urllib.parse

sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "page"))
import browser
import shared
import support as s
from support import check

TRACES = [("one", shared.odd), ("mixed", shared.odd), ("deep", shared.odd), ("names", shared.odd), ("heavy", shared.odd),
          ("threads", shared.golden), ("recursion", shared.golden), ("workers", lambda _: shared.workers()),
          ("native", lambda _: shared.native())]
EMPTY = "it's empty"                    # speedscope says so in a dialog
# Keeps what is exported, and sums it up: time of each frame, of each profile.
CAPTURE = "const made = URL.createObjectURL; URL.createObjectURL = b => { window.exported = b; return made.call(URL, b); };"
SUMS = """window.exported.text().then(text => {
    const file = JSON.parse(text), self = {}, profiles = [];
    for (const p of file.profiles) {
        const stack = [], tops = new Set();
        let last = p.startValue, busy = 0;
        for (const e of p.events) {
            if (stack.length) {
                const name = file.shared.frames[stack[stack.length - 1]].name;
                self[name] = (self[name] || 0) + (e.at - last) * %s[p.unit];
                busy += (e.at - last) * %s[p.unit];
            }
            last = e.at;
            e.type === 'O' ? stack.push(e.frame) : stack.pop();
        }
        profiles.push([p.name, busy]);
    }
    return {self, profiles, frames: file.shared.frames.length};
})"""
# speedscope recurses into its call tree: with what a browser has by default it fails below 5000 frames.
STACK = "--js-flags=--stack-size=7000"
NS = json.dumps({"nanoseconds": 1, "microseconds": 1e3, "milliseconds": 1e6, "seconds": 1e9, "none": 1e6})


class Site(http.server.ThreadingHTTPServer):
    """speedscope's own files, and those that it shall read, from one origin."""
    daemon_threads = True

    def __init__(self):
        self.app = os.path.join(s.npm_dir(), "node_modules", "speedscope", "dist", "release")
        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()
        self.address = "http://127.0.0.1:%d/" % self.server_address[1]


class Handler(http.server.SimpleHTTPRequestHandler):
    def translate_path(self, path):
        name = os.path.basename(urllib.parse.unquote(path.split("?")[0]))
        return os.path.join(s.tmpdir() if path.startswith("/files/") else self.server.app, name)

    def log_message(self, *_):
        pass


class Speedscope(browser.Browser):
    def __init__(self):
        if STACK not in browser.FLAGS:
            browser.FLAGS.append(STACK)
        super().__init__(800, 600)
        self.dialogs, self.errors, self.site, self.n = [], [], Site(), 0
        self.call("Page.addScriptToEvaluateOnNewDocument", source=CAPTURE)

    def note(self, m):
        method, params = m.get("method"), m.get("params", {})
        if method == "Page.javascriptDialogOpening":            # it blocks the page until it is answered
            self.dialogs.append(params["message"])
            self.serial += 1
            os.write(self.write_end, json.dumps({"id": self.serial, "sessionId": self.session, "params": {"accept": True},
                                                 "method": "Page.handleJavaScriptDialog"}).encode() + b"\0")
        elif method == "Runtime.exceptionThrown" or params.get("type") == "error" or \
                params.get("entry", {}).get("level") == "error":
            self.errors.append(json.dumps(params)[:600])
        super().note(m)

    def load(self, path, views=False):
        """Opens a file. Returns what speedscope has of it, or None when it says that it is empty."""
        self.n += 1
        self.dialogs, self.errors = [], []
        loaded = self.loaded
        file = urllib.parse.quote("%sfiles/%s" % (self.site.address, os.path.basename(path)), "")
        self.call("Page.navigate", url="%sindex.html?%d#profileURL=%s" % (self.site.address, self.n, file))
        while self.loaded == loaded:
            self.note(self.message())
        end = time.monotonic() + browser.HANG
        while not self.dialogs and not self.js("document.title.endsWith(' - speedscope')"):
            check("Something went wrong" not in self.js("document.body.innerText"), "%s: speedscope failed: %s" %
                  (path, self.problems[-1:]))
            check(time.monotonic() < end, "%s: not open after %d s" % (path, browser.HANG))
            time.sleep(0.02)
        return self.read(path, views)

    def read(self, path, views):
        what = os.path.basename(path)
        check(all(EMPTY in d for d in self.dialogs), "%s: speedscope says: %s" % (what, self.dialogs))
        if self.dialogs:
            return None
        for key in "123" if views else "":      # time order, left heavy, sandwich
            self.key(key)
        if views:                       # the last one is a table: of the busiest thread of "mixed"
            text = self.js("document.body.innerText")
            check("Symbol Name" in text and "work" in text and "85.00ms" in text, "%s: the table is %s" % (what, text[:600]))
        self.js("window.exported = null, window.dispatchEvent(new KeyboardEvent('keydown', {key: 's', ctrlKey: true}))")
        self.wait("window.exported")
        got = self.js(SUMS % (NS, NS))
        check(not self.errors, "%s: errors in the console: %s" % (what, self.errors))
        return got


_open = []


def speedscope():
    """One Chromium for all tests of a run."""
    if not _open:
        shared.required(s.npm_dir)
        _open.append(Speedscope())
    return _open[0]


def close():
    while _open:
        _open.pop().close()


@functools.lru_cache(None)
def want(trace):
    """Ticks of each function, as report has them."""
    return {r["name"]: r["self_ticks"] for r in s.rows(trace) if r["self_ticks"]}


def to_ticks(ns):
    """A time that is not a whole number of ticks of 1 ms stays what it is."""
    t = ns / 1e6
    return round(t) if abs(t - round(t)) < max(0.01, t * 1e-9) else t


def threads_of(trace):
    return sorted(r["self_ticks"] for r in s.rows(trace, "--by", "thread"))


def compare(name, trace, suffix, *filters):
    """Ticks of each function and of each thread, in speedscope and in report."""
    path, what = s.tmpfile(suffix), "%s as %s" % (name, suffix)
    shared.export(trace, "-o", path, *filters).ok()
    got = speedscope().load(path, views=name == "mixed" and not filters)
    check(got is not None, what + ": speedscope says that it is empty")
    ticks = {k: to_ticks(v) for k, v in got["self"].items() if to_ticks(v)}
    check(sum(ticks.values()) == shared.ticks(trace, *filters), "%s: %s ticks in speedscope, %d in report" %
          (what, sum(ticks.values()), shared.ticks(trace, *filters)))
    if filters:
        return got
    if name != "names" or suffix != ".linux-perf.txt":          # there, names are what readers of perf can read
        d = shared.differ(ticks, want(trace))
        check(not d, "%s: %s" % (what, d))
    threads = sorted(to_ticks(ns) for _, ns in got["profiles"])
    check(threads == threads_of(trace), "%s: threads have %s, not %s" % (what, threads, threads_of(trace)))
    return got


def add_to(suite):
    t = suite.test

    @t("speedscope.json", "speedscope's own format: ticks of each function and thread are those of report, in nine traces")
    def own():
        for name, make in TRACES:
            got = compare(name, make(name), ".speedscope.json")
            check(all(re.search(r"\(tid \d+\)$", p) for p, _ in got["profiles"]), "profiles: %s" % got["profiles"])
        compare("mixed", shared.odd("mixed"), ".speedscope.json", "--vmstate", "gc")

    @t("speedscope.chrome", "the same of format chrome")
    def chrome():
        for name, make in TRACES[1:6] + TRACES[-2:]:
            compare(name, make(name), ".trace.json")

    @t("speedscope.perf", "the same of format perf-script")
    def perf():
        for name, make in TRACES[1:6] + TRACES[-2:]:
            compare(name, make(name), ".linux-perf.txt")

    @t("speedscope.empty", "an empty trace is empty")
    def empty():
        for suffix in (".speedscope.json", ".trace.json"):
            path = s.tmpfile(suffix)
            shared.export(shared.odd("empty"), "-o", path).ok()
            got = speedscope().load(path)
            check(got is None or not got["self"], "%s: an empty trace has %s" % (suffix, got))

    @t("speedscope.rejects", "the tests can fail: what is no profile is said to be none")
    def rejects():
        path = s.tmpfile(".json")
        with open(path, "w") as f:
            f.write('{"no": "profile"}\n')
        try:
            speedscope().load(path)
        except s.Fail as e:
            check("Unrecognized" in str(e), "speedscope says: %s" % e)
        else:
            raise s.Fail("it opens anything")
        finally:
            close()
