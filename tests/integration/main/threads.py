"""Every thread and VM: shares by thread, VM and coroutine, against what hosts (tests/hosts/vms.c) and sysbench's
threads measure of themselves in the same run. Imported by run.py."""
import collections
import os
import re

import support as s
from support import SIGMAS, check, check_near, json_of

POINTS = 2.0
THREADS = 5                     # of split


def rest(trace, threads):
    """Ticks that threads at most have between their last sample and their end, when they end at any time: by the distances of
    the samples, which are their weights. Of a row of events the rest has the mean E(w^2) / 2 E(w)."""
    weights = [x["weight"] for x in json_of(["dump", "-i", trace, "--json"]) if x.get("record") == "sample"]
    first, second, third = (sum(w ** k for w in weights) for k in (1, 2, 3))
    mean = second / (2 * first)
    return threads * mean + SIGMAS * (threads * (third / (3 * first) - mean ** 2)) ** 0.5


def last_ticks(trace, threads):
    """Ticks of as many distances between samples as there are threads: with the kernel's own ticks the one before a thread's
    end is met by the end itself now and then (1 run of 8), and has no stack either."""
    return threads * max(x["weight"] for x in json_of(["dump", "-i", trace, "--json"]) if x.get("record") == "sample")


def host_vms(action, *opts, coarse=False):
    """The recording of an action, and what it printed: {key: ns}. Of the stacks 1 % may be incomplete, and what the threads
    needed after their work, as they measured it; with coarse ticks the rest of each thread in place of the 1 %."""
    r = s.record([s.host("vms"), action], "-q", *opts, interval="250us").ok()
    said = collections.OrderedDict((k, float(ns)) for k, ns in (l.split() for l in r.out.splitlines()))
    check(said, "nothing printed")
    ending, i = said.pop("ending", 0) / 250e3, r.info()
    most = 100 * (ending + (rest(r.trace, THREADS) + last_ticks(r.trace, THREADS) if coarse else
                           0.01 * i["ticks"])) / i["ticks"]
    check(100 * i["incomplete"] <= most, "%.2f %% of the stacks are incomplete, more than %.2f %%: %s" % (
        100 * i["incomplete"], most, {k: n for k, n in i["lost"].items() if n}))
    return r, said


def shares(r, *by):
    """{name of the first: percent}, and of two {(first, second): percent of all}."""
    rows = r.rows("--by", ",".join(by))
    total = sum(x["self_ticks"] for x in rows)
    check(total > 1000, "%d ticks" % total)
    if len(by) == 1:
        return {x["name"]: 100.0 * x["self_ticks"] / total for x in rows}
    return {(x["name"], c["name"]): 100.0 * c["self_ticks"] / total for x in rows for c in x["children"]}


def points_of(r):
    """POINTS, and what a busy machine adds: of ticks that came late fewer samples have the same time, each with more of it."""
    return POINTS + max(0, s.margin(50, s.effective_samples(r.trace)) - s.margin(50, r.info()["ticks"]))


def compare(got, want, total, points):
    for name, ns in want.items():
        check_near(name, got.get(name, 0.0), 100 * ns / total, points)


def by_second(got):
    sums = collections.Counter()
    for (_, second), share in got.items():
        sums[second] += share
    return sums


def add_to(suite):
    t = suite.test

    for timer in ("perf", "helper", "cputime"):
        @t("threads.split." + timer, "four threads with a VM each, 40/30/20/10, and one without Lua, by their clocks",
           timer == "perf")
        def split(timer=timer):
            # With cputime ticks come with the kernel's own, or what a busy machine leaves of them: what follows a thread's
            # last one has no stack.
            coarse = timer == "cputime"
            r, said = host_vms("split", "--timer", timer, coarse=coarse)
            total = sum(said.values())
            names = {"%s (%s)" % tuple(k.split("-")): ns for k, ns in said.items()}
            # Whose they were the recording does not say: all may be of one thread.
            points = points_of(r) + (100 * r.info()["lost_ticks"] / r.info()["ticks"] if coarse else 0)
            compare(shares(r, "thread"), names, total, points)
            vms = {}
            for (thread, vm), share in sorted(shares(r, "thread", "vm").items(), key=lambda i: -i[1]):
                if thread in names and thread not in vms:
                    vms[thread] = vm            # in which it was most; with coarse ticks its share may be within the limit
                elif thread in names:
                    check(share <= points, "%s ran in %s and %s" % (thread, vms[thread], vm))
            check(len(set(vms.values())) == 5, "VMs of the threads: %s" % vms)
            compare(shares(r, "vm"), {vms[n]: ns for n, ns in names.items()}, total, points)
            outside = [n for n in names if n.startswith("c20")]
            check(vms[outside[0]] == "(none)", "the thread without Lua is in %s" % vms[outside[0]])
            compare(shares(r, "thread", "function"), {(outside[0], "[outside Lua]"): names[outside[0]]}, total, points)

    @t("threads.execs", "two threads at a time fail to exec: ticks go on after the last of them")
    def execs():
        r = s.record([s.host("execs"), "100", "300"], "-q").ok()
        rows = r.rows("--by", "function")
        ticks = sum(x["total_ticks"] for x in rows if x["name"] == "burn")
        check(ticks * 1e6 > 0.8 * int(r.out), "%d ticks of %s ns: %s" % (ticks, r.out.strip(), rows))

    @t("threads.nested", "VMs nested in one thread: a C function of one runs the other, and that the first again", True)
    def nested():
        r, said = host_vms("nested")
        total = sum(said.values())
        got = shares(r, "vm", "function")
        vms = {f.split("@")[-1].split(":")[0]: vm for (vm, f), share in got.items()
               if f.startswith("work@") and share > 1}
        check(len(vms) == 2 and vms["a"] != vms["b"], "work is in %s" % vms)
        compare(shares(r, "vm"), {vms["a"]: said["a"] + said["again"] + said["run_b"], vms["b"]: said["b"]}, total, points_of(r))
        compare(got, {(vms["a"], "run_b"): said["run_b"]}, total, points_of(r))
        below = s.share(r.rows("--by", "function"), "total", function="again")
        check_near("again in total", below, 100 * said["again"] / total, points_of(r))

    @t("threads.vm-loop", "200 VMs one after the other beside one that stays")
    def vm_loop():
        r, said = host_vms("loop")
        check(r.info()["vms"] == 201, "%s VMs" % r.info()["vms"])
        got = shares(r, "vm")
        lua = [n for n in got if n.startswith("VM ")]
        left = sum(r.info()["lost"].get(k, 0) for k in ("waited", "busy"))  # ticks whose time is in the next sample
        check(201 - min(left, 20) <= len(lua) <= 201, "%d VMs have time, %d ticks are in the next sample" % (len(lua), left))
        stays = max(lua, key=got.get)
        short = sum(got[n] for n in lua if n != stays)
        check_near("the short ones", short, 100 * said["in_short"] / said["all"], points_of(r))
        total = s.share(r.rows("--by", "function"), "total", function="in_short")
        check_near("in_short", total, 100 * said["in_short"] / said["all"], points_of(r))

    @t("threads.migrate", "coroutines resumed by turns in the thread that made them and in another", True)
    def migrate():
        r, said = host_vms("migrate")
        total = said["long"] + said["short"]
        got = shares(r, "thread", "coroutine")
        threads = {k.split("-")[1]: ns for k, ns in said.items() if k.startswith("thread")}
        for tid, ns in threads.items():
            mine = sum(share for (thread, _), share in got.items() if thread.endswith("(%s)" % tid))
            check_near("thread " + tid, mine, 100 * ns / total, points_of(r))
        for name in ("long", "short"):
            share = sum(v for (_, co), v in got.items() if re.match(name + r"\b", co))
            check_near("coroutine " + name, share, 100 * said[name] / total, points_of(r))

    @t("threads.coroutines", "coroutines by the function that they run, also one that another resumes")
    def coroutines():
        r = s.record_lua("bodies.lua", "-q", args=["2"], interval="250us").ok()
        said = {k: float(ns) for k, ns in (l.split() for l in r.out.splitlines())}
        got = collections.Counter()
        for x in r.rows("--by", "coroutine"):
            got[re.sub(r" #\d+$", "", x["name"])] += 100 * x["self"]
        compare(got, {k: ns for k, ns in said.items() if k != "all"}, said["all"], points_of(r))

    @t("threads.sysbench", "sysbench, 4 threads with a VM each, work of 40/30/20/10")
    def sysbench():
        program = s.need("sysbench")
        script = os.path.join(s.LUA, "sysbench.lua")
        r = s.record([program, script, "--threads=4", "--events=40", "--time=0", "run"], "-q", interval="250us",
                     timeout=120).ok()
        said = {m.group(1): float(m.group(2)) for m in re.finditer(r"^thread (\d) ns (\d+)$", r.out, re.M)}
        check(len(said) == 4, "not 4 threads: %s" % r.out[-500:])
        total = sum(said.values())
        rows = r.rows("--by", "vm")
        got = sorted((x["self_ticks"] for x in rows if x["name"].startswith("VM ")), reverse=True)[:4]
        for ticks, ns in zip(got, sorted(said.values(), reverse=True)):
            check_near("share of a VM", 100.0 * ticks / sum(got), 100 * ns / total, points_of(r))
        threads = sorted((x["self_ticks"] for x in r.rows("--by", "thread")), reverse=True)[:4]
        for ticks, ns in zip(threads, sorted(said.values(), reverse=True)):
            check_near("ticks of a thread", ticks, ns / 250e3, 0.05 * ns / 250e3 + 20)
        functions = {x["function"]: 100 * x["total"] for x in rows_of(r)}
        check(functions.get("burn", 0) > 95, "burn has %.1f %%" % functions.get("burn", 0))


def rows_of(r):
    return r.rows("--by", "function")
