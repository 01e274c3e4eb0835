"""Times of a store that are pushed: what is sent again is the same, whatever has come since, and times side by side have all once."""
import os
import shutil
import time

import made
import support as s
from fake import Store
from pprof import series_of
from shared import check, suite

BEGIN = int(time.time()) - 21
TEN_MS = 10000000
SLEW = 7000010                          # ns by which the wall clock is moved in the 10 s of a chunk


def chunk(k):
    """1000 ticks of 10 ms, k * 10 s after the first chunk: (when it begins by its wall clock in ns, the trace)."""
    p = made.Program([("f%d" % k, 1, 1 + k), ("all", 30, 99)])
    at = BEGIN * 10**9 + k * (10**10 + SLEW)
    mono = 10**12 + k * 10**10
    return at, made.trace(p, [(["all", "f%d" % k], 400), (["all"], 600)], interval=TEN_MS, start=(mono, at, mono),
                          extra=["info elapsed_ns %d" % 10**10])


def put(store, k):
    at, trace = chunk(k)
    day = os.path.join(store, "services", "web", time.strftime("%Y-%m-%d", time.gmtime(at // 10**9)))
    os.makedirs(day, exist_ok=True)
    path = os.path.join(day, "%s.%03d-10000-7-0.luasample" % (time.strftime("%H%M%S", time.gmtime(at // 10**9)), at // 10**6 % 1000))
    shutil.copy(trace, path)
    return path


def begin_incoming(store, k):
    """A file that is empty yet: it was made during the time that is asked for."""
    folder = os.path.join(store, "incoming", "web.8.%d" % (chunk(k)[0] // 10**6))
    os.makedirs(folder)
    open(folder + "/trace", "w").close()
    return folder


def empty():
    at = s.tmpfile("-store")
    os.makedirs(at + "/services")
    os.chmod(at, 0o700)
    with open(at + "/version", "w") as f:
        f.write("luasample store 1\n")
    return at


def push(st, store, begin, end):
    """(id, profile) of what is sent of these seconds behind the first chunk."""
    before = len(st.requests)
    s.run([s.luasample(), "push", "--store", store, "--service", "web", "--since", "@%.3f" % (BEGIN + begin), "--until", "@%.3f" % (BEGIN + end),
           "--to", "pyroscope:" + st.url]).ok()
    sent = [series_of(body) for _, _, body in st.requests[before:]]
    check(len(sent) == 1, "%d requests" % len(sent))
    return sent[0][2][0], sent[0][1][0]


@suite.test("window-again", "a time that is sent again has the same id when pieces beside it have come, or have gone", quick=True)
def _():
    with Store() as st:
        store = empty()
        waits = begin_incoming(store, 2)
        put(store, 1)
        first, profile = push(st, store, 10, 20.015)            # its last tick is 8 ms before
        check(profile.sum(0) == 1000 and profile.time == BEGIN * 10**9 + 10**10 + SLEW and profile.duration == 10**10 + 15000000 - SLEW,
              "%d ticks from %d, %d ns" % (profile.sum(0), profile.time, profile.duration))

        def same(what):
            again, other = push(st, store, 10, 20.015)
            check(again == first, "%s: %s is %s now, from %d, %d ns" % (what, first, again, other.time, other.duration))
        shutil.copy(chunk(2)[1], waits + "/trace")
        same("what is being recorded")
        shutil.rmtree(waits)
        put(store, 2)
        same("it is committed")
        put(store, 0)
        same("what was before")


@suite.test("window-sum", "times side by side have each tick once, where the wall clock is slewed from chunk to chunk", quick=True)
def _():
    with Store() as st:
        store = empty()
        for k in range(4):
            put(store, k)
        for bounds in ((0, 7, 10.003, 15, 20.005, 20.035, 28, 60), (0, 10, 20, 30, 60), (0, 10.007, 20.015, 60)):
            sums = [push(st, store, a, b)[1].sum(0) for a, b in zip(bounds, bounds[1:])]
            check(sum(sums) == 4000, "%s: %s" % (bounds, sums))
