"""What the tests of the page share: one recording, its page, and one browser."""
import functools

import browser
import support as s
from support import check

PHASES = "phases.lua"
_browser = None


@functools.lru_cache(None)
def recording():
    """A trace with zones, coroutines, the collector and C functions."""
    return s.record_lua(PHASES, args=("1.6",), interval="1ms").ok().trace


@functools.lru_cache(None)
def page_of(trace, *args, status=0):
    path = s.tmpfile(".html")
    r = s.report(trace, "--html", "-o", path, *args)
    check(r.status == status, "status %d: %s" % (r.status, r.err[-300:]))
    return path


def chromium():
    global _browser
    if not _browser:
        _browser = browser.Browser()
    return _browser


def close():
    global _browser
    if _browser:
        _browser.close()
    _browser = None


def opened(path, scheme="light"):
    """The browser with a page that has drawn itself without a complaint."""
    b = chromium()
    b.prefer(scheme)
    b.open(path)
    check(b.js(browser.READY), "the page did not start: %s" % b.problems)
    is_fine(b)
    return b


def is_fine(b):
    check(not b.problems, "complaints: %s" % b.problems)
    outside = [u for u in b.requests if not u.startswith(("file:", "data:"))]
    check(not outside, "it asked for %s" % outside)


def text_of(path):
    with open(path, encoding="utf-8") as f:
        return f.read()
