"""What the tests of all formats share: traces, each made or recorded once a run, when first asked for, and the command."""
import functools
import json
import os

import support as s

GOLDEN = os.path.join(s.TESTS, "golden", "report")


def golden(name):
    """A trace of the golden tests: app (hostile names, lines not recorded), threads, recursion, weights."""
    return os.path.join(GOLDEN, name + ".data")


@functools.lru_cache(None)
def odd(kind):
    """A trace of tests/gen/gen_odd.c: empty, one, deep, names, mixed, heavy."""
    path = s.tmpfile(".data")
    s.run([os.path.join(s.build_dir(), "tests", "gen", "gen_odd"), kind, path]).ok()
    return path


@functools.lru_cache(None)
def native():
    """A recording with native stacks."""
    return s.record_lua("builtins.lua", "-q", "--native", args=["0.4"]).ok().trace


@functools.lru_cache(None)
def workers():
    """A recording of three threads with a VM each, which run coroutines."""
    return s.record([s.host("workers"), "3", "1", "150"], "-q").ok().trace


@functools.lru_cache(None)
def compiled():
    """A recording of a program with JIT traces, which also collects garbage."""
    return s.record_lua(os.path.join(s.TESTS, "bench", "programs", "richards.lua"), "-q", args=["60"]).ok().trace


def filled(name):
    """A trace of which a format has something to write."""
    return compiled() if name == "perf-map" else odd("mixed")


def synthetic():
    """Traces that are exact, small, and need no LuaJIT."""
    return [golden("app"), golden("threads"), golden("recursion"), golden("weights"), odd("mixed"), odd("names")]


def required(find, *args):
    """What a test needs: where it is missing that is a skip, but in CI a failure."""
    try:
        return find(*args)
    except s.Skip as why:
        if os.environ.get("CI"):
            raise s.Fail(str(why))
        raise


def export(trace, *args, to=None, **kw):
    """luasample export; with to (a suffix) into a file, whose path is in Run.path."""
    path = s.tmpfile(to) if to else None
    r = s.run([s.luasample(), "export", "-i", trace, *args, *(["-o", path] if path else [])], **kw)
    r.path = path
    return r


@functools.lru_cache(None)
def report(trace, *args):
    """report --json, whatever its status."""
    return json.loads(s.run([s.luasample(), "report", "-i", trace, *args, "--json"]).out)


def ticks(trace, *args):
    """Ticks after filters."""
    return report(trace, *args)["header"]["ticks"]


def differ(got, want):
    """What two dicts of numbers have not in common, in few words; "" when they are equal."""
    keys = [k for k in {**got, **want} if got.get(k, 0) != want.get(k, 0)]
    return "; ".join("%.60r is %s, not %s" % (k, got.get(k, 0), want.get(k, 0)) for k in keys[:5])
