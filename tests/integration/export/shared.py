"""Traces that the tests of all formats share: each is recorded once a run, when first asked for."""
import functools
import os

import support as s


@functools.lru_cache(None)
def plain():
    """Many functions, lines, C functions and recursion."""
    return s.record_lua("kinds.lua", "-q", args=["0.4"]).ok().trace


@functools.lru_cache(None)
def zones():
    return s.record_lua("zones.lua", "-q", args=["0.4"]).ok().trace


def export(trace, *args, to=None, **kw):
    """luasample export; with to (a suffix) into a file, whose path is in Run.path."""
    path = s.tmpfile(to) if to else None
    r = s.run([s.luasample(), "export", "-i", trace, *args, *(["-o", path] if path else [])], **kw)
    r.path = path
    return r


def total(trace, *args):
    """Ticks after filters, as report --json has them."""
    return s.json_of(["report", "-i", trace, *args, "--json"])["header"]["ticks"]


def size(path):
    return os.stat(path).st_size
