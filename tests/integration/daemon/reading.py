"""The store: what is in it, what is read of it, what is removed; damage."""
import os
import shutil
import time

from shared import Daemon, Service, check, rule, s, suite, ticks_of, until

MIDNIGHT = 1767312000                   # of 2026-01-02, UTC


def store(*words, at):
    return s.run([s.luasample(), "store", "--store", at, *words])


def report(at, *words):
    return s.run([s.luasample(), "report", "--store", at, *words, "--json"])


def ticks(at, *words):
    r = report(at, *words).ok()
    return sum(row["total_ticks"] for row in s.json.loads(r.out)["rows"] if row["function"] == "hot")


def made(n, service="made"):
    """A store with n chunks, each of the same trace; the ticks of hot in one."""
    at, trace, stop = s.tmpfile("-store"), s.tmpfile(".data"), s.tmpfile(".stop")
    open(stop, "w").close()
    s.record([s.luajit().program, "-e", "local function hot() local x = 0 for i = 1, 6e7 do x = x + i % 7 end return x end hot()"],
             trace=trace, interval="10ms").ok()
    day = os.path.join(at, "services", service, "2026-01-02")
    os.makedirs(day)
    with open(at + "/version", "w") as f:
        f.write("luasample store 1\n")
    os.chmod(at, 0o700)
    for i in range(n):
        shutil.copy(trace, "%s/%02d%02d00.000-60000-7-0.luasample" % (day, i // 60, i % 60))
    return at, day, ticks_of(trace)


@suite.test("ranges", "times of a service add up to the last tick; what is being written is there, too", quick=True)
def ranges():
    a = Service("ranged", share=0.8)
    d = Daemon(rule("ranged"))
    d.until_state(a.pid, "recording")
    until("six chunks", lambda: len(d.chunks("ranged")) >= 6)
    live = ticks(d.store, "--since", "2s")
    check(live > 5, "%d ticks in the last 2 s" % live)
    d.stop()
    a.end()
    whole = sum(ticks_of(c) for c in d.chunks("ranged"))
    check(ticks(d.store) == whole and ticks(d.store, "--service", "ranged") == whole, "%d ticks of %d" % (ticks(d.store), whole))
    first = os.path.basename(d.chunks("ranged")[0])
    middle = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(os.stat(d.chunks("ranged")[3]).st_mtime))
    before, after = ticks(d.store, "--until", middle), ticks(d.store, "--since", middle)
    check(before > 5 and after > 5 and before + after == whole, "%d + %d ticks of %d (%s, %s)" %
          (before, after, whole, first, middle))
    out = s.run([s.luasample(), "export", "--store", d.store, "--since", middle, "--format", "collapsed"]).ok().out
    exported = sum(int(l.rsplit(" ", 1)[1]) for l in out.splitlines() if ";hot" in l)
    check(exported == after, "exported %d, reported %d" % (exported, after))
    r = s.run([s.luasample(), "diff", "--store", d.store, "--since", "2s", "--before", "1s", "--json"])
    check(r.status in (0, 1) and "Traceback" not in r.err, r.err)


@suite.test("many", "a hundred and fifty chunks become one trace; a damaged one is named, the rest is used")
def many():
    at, day, one = made(150)
    check(one > 10 and ticks(at) == 150 * one, "%d ticks, %d in one" % (ticks(at), one))
    check("150 chunks, 0 damaged" in store("verify", at=at).ok().out, "verify")
    bad = sorted(os.listdir(day))[5]
    with open(os.path.join(day, bad), "r+b") as f:
        f.truncate(100)
        f.seek(20)
        f.write(b"\xff" * 60)
    r = store("verify", at=at)
    check(r.status == 1 and bad in r.err and r.err.count("\n") == 1 and "150 chunks, 1 damaged" in r.out, r.err + r.out)
    r = report(at).ok()
    check(bad in r.err and "the rest is shown" in r.err and r.err.count("\n") == 1, r.err)
    check(ticks(at) == 149 * one, "%d ticks" % ticks(at))
    for name in os.listdir(day):
        if name != bad:
            os.unlink(os.path.join(day, name))
    r = report(at)
    check(r.status == 1 and "none of the chunks can be read" in r.err, r.err)


@suite.test("bad-times", "services, times and stores that are not there; files that are no chunks", quick=True)
def bad_times():
    at, day, one = made(3)
    os.symlink("/etc/passwd", day + "/000900.000-60000-7-0.luasample")
    open(day + "/notes.txt", "w").close()
    open(day + "/000000.000-060000-7-0.luasample", "w").close()        # not as we write it
    os.symlink("/", at + "/services/link")
    check(ticks(at) == 3 * one, "%d ticks" % ticks(at))
    r = store("du", at=at).ok()
    check("3 files that are no chunks" in r.err and "     3 chunks" in r.out, r.out + r.err)
    first = "2026-01-01"
    for words, status, says in [(["--service", "maed"], 1, "did you mean made?"), (["--service", "../.."], 1, "give --service NAME"),
                                (["--service", "made", "--since", "1h"], 1, "nothing of made was recorded in that time; the store has it from"),
                                (["--since", "soon"], 129, "--since: give how long ago"),
                                (["--until", "x"], 129, "--until: give how long ago"),
                                (["--since", first, "--until", first], 129, "--since is not before --until"),
                                (["-i", "x"], 129, "exclude each other"), (["--time", "0,1"], 129, "--time is for a file")]:
        r = report(at, *words)
        check(r.status == status and says in r.err and r.err.count("\n") == 1, "%s: %d, %r" % (words, r.status, r.err))
    for where, says in [("/nowhere", "there is no store"), (s.tmpdir(), "not a store of luasample"), ("/etc/passwd", "Not a directory")]:
        r = report(where)
        check(r.status == 1 and says in r.err and r.err.count("\n") == 1, "%s: %r" % (where, r.err))
    for words, status, says in [(["lss"], 129, "did you mean 'ls'?"), ([], 129, "what is asked?"), (["prune"], 129, "give --max-age"),
                                (["ls", "--max-age", "1d"], 129, "are for prune"), (["prune", "--max-age", "x"], 129, "a time such as"),
                                (["ls", "--service", "../x"], 129, "not a name of a service")]:
        r = store(*words, at=at)
        check(r.status == status and says in r.err and r.err.count("\n") == 1, "%s: %d, %r" % (words, r.status, r.err))
    r = s.run([s.luasample(), "diff", "--store", at, "--since", "1h"])
    check(r.status == 129 and "give --before TIME" in r.err, r.err)


@suite.test("prune", "by age and by size, the oldest first; not while a daemon runs, which does it itself")
def prune():
    at, day, _ = made(10)
    size = os.stat(os.path.join(day, os.listdir(day)[0])).st_blocks * 512
    r = store("prune", "--max-size", str(4 * size), at=at).ok()
    check("6 chunks removed" in r.out, r.out)
    check(sorted(os.listdir(day))[0].startswith("0006"), "left: %s" % os.listdir(day))
    check("4 chunks removed" in store("prune", "--max-age", "1d", at=at).ok().out, "by age")
    check(not os.path.exists(day), "the empty day is left")
    a = Service("short")
    d = Daemon(rule("short"), store="max-age = 3s")
    d.until_state(a.pid, "recording")
    until("chunks are removed", lambda: d.json("status")["pruned_chunks"] >= 3)
    check(1 <= len(d.chunks("short")) <= 8, "left: %s" % d.chunks("short"))
    r = store("prune", "--max-age", "1s", at=d.store)
    check(r.status == 1 and "another daemon uses this store" in r.err, r.err)
    d.stop()
    a.end()


def counts(day):
    """Chunks by level."""
    levels = [int(n.split("-")[3].split(".")[0]) for n in os.listdir(day)]
    return [levels.count(k) for k in range(3)]


@suite.test("merge", "a time that is over becomes one chunk, and again: not a tick is lost, whenever the daemon is killed; damage stays")
def merge():
    at, day, one = made(150)
    with open(os.path.join(day, sorted(os.listdir(day))[130]), "r+b") as f:
        f.truncate(100)
    d = Daemon(start=False, store="max-age = 3650d")
    d.head = d.head.replace(d.store, at)
    d.write("")
    d.store = at
    for _ in range(6):
        d.start()
        time.sleep(0.2)
        d.kill()
        check(ticks(at) == 149 * one, "%d ticks of %d after a kill, %s" % (ticks(at), 149 * one, counts(day)))
    d.start()
    # 00:00 to 02:00 is one; of the half hour after it ten minutes have the damaged chunk, and so has their two hours
    until("all is merged that can be", lambda: counts(day) == [10, 2, 1], 120)
    check(ticks(at) == 149 * one, "%d ticks of %d" % (ticks(at), 149 * one))
    until("the damaged one is named", lambda: "are not merged" in d.log())
    d.stop()
    names = os.listdir(day)
    check(not any(n.startswith("merg") for n in os.listdir(at + "/incoming")), "left in incoming")
    r = store("verify", at=at)
    check(r.status == 1 and "13 chunks, 1 damaged" in r.out, "%s %s" % (r.out, names))
    check(s.run([s.luasample(), "store", "--store", at, "merge"]).status == 129, "merge is for users")


def day_of(folder, name, pid, ticks):
    """What gen_day says: the own ticks of each function; all of the first half."""
    os.makedirs(folder, mode=0o700)
    gen = os.path.join(s.build_dir(), "tests", "gen", "gen_day")
    out = s.run([gen, folder, name, str(pid), str(MIDNIGHT), "1440", str(ticks), "200"]).ok().out
    said = {l.split()[0]: int(l.split()[1]) for l in out.splitlines()}
    return {k: v for k, v in said.items() if v and k != "first-half"}, said["first-half"]


def sizes(folder):
    return sum(os.path.getsize(os.path.join(folder, name)) for name in os.listdir(folder))


def own(at, *words):
    """The own ticks of each function."""
    r = report(at, *words, "--min", "0").ok()
    return {row["function"]: row["self_ticks"] for row in s.json.loads(r.out)["rows"] if row["self_ticks"]}


@suite.test("day", "a day of three services, merged: sums are equal to the last tick, a process is there once")
def day():
    at, ticks_a_minute = s.tmpfile("-store"), {"busy": 600, "half": 300, "idle": 30}
    os.makedirs(at + "/incoming", mode=0o700)
    with open(at + "/version", "w") as f:
        f.write("luasample store 1\n")
    os.chmod(at, 0o700)
    said = {n: day_of("%s/services/%s" % (at, n), n, 70 + k, t) for k, (n, t) in enumerate(ticks_a_minute.items())}
    folder = {n: "%s/services/%s/2026-01-02" % (at, n) for n in said}
    before = {n: sizes(folder[n]) for n in said}
    check(own(at, "--service", "half") == said["half"][0], "before it is merged")
    d = Daemon(start=False, store="max-age = 3650d\nmerge = 1h\nmerge-old = 4h")
    d.head = d.head.replace(d.store, at)
    d.write("")
    d.store = at
    d.start()
    until("all is merged", lambda: all(counts(folder[n]) == [0, 0, 6] for n in said), 300)
    d.stop()
    noon = "@%d" % (MIDNIGHT + 43200)
    for n, (functions, first) in said.items():
        got = own(at, "--service", n)
        whole = sum(functions.values())
        check(got == functions, "%s: %d ticks of %d" % (n, sum(got.values()), whole))
        halves = [sum(own(at, "--service", n, *w, noon).values()) for w in (["--until"], ["--since"])]
        check(halves == [first, whole - first], "%s: %s, not %d first" % (n, halves, first))
        chunk = os.path.join(folder[n], sorted(os.listdir(folder[n]))[0])
        check(s.info(chunk).get("threads") == 1, "of the chunk: %s" % s.info(chunk))
        after = sizes(folder[n])
        check(after < before[n] / 8, "%s: %d bytes of %d" % (n, after, before[n]))
    size = os.stat(os.path.join(folder["idle"], sorted(os.listdir(folder["idle"]))[0])).st_blocks * 512
    store("prune", "--max-size", str(3 * size), at=at).ok()
    left = sum(own(at, "--service", "idle").values())
    check(0 < left < sum(said["idle"][0].values()), "%d ticks are left" % left)


@suite.test("full", "a disk with too little room: the oldest is removed, then nothing is recorded; it is said, counted, and ends")
def full():
    a = Service("wide")
    d = Daemon(rule("wide"))
    d.until_state(a.pid, "recording")
    until("two chunks", lambda: len(d.chunks("wide")) >= 2)
    st = os.statvfs(d.store)
    free = 100 * st.f_bavail // st.f_blocks
    if free >= 89:
        raise s.Skip("the disk is empty: no share of it that must be free can be too much")
    d.head = d.head.replace("min-free = 0", "min-free = %d" % (free + 2))
    d.write(rule("wide"))
    d.ctl("reload").ok()
    until("it is full", lambda: d.json("status")["disk_full"] == 1)
    until("nothing is recorded", lambda: d.target(a.pid)["recorder"] == 0)
    check("disk is full" in d.ctl("status").out and "disk is full" in d.target(a.pid)["reason"], d.ctl("status").out)
    until("the seconds are counted", lambda: d.json("status")["disk_full_s"] >= 1)
    d.head = d.head.replace("min-free = %d" % (free + 2), "min-free = 0")
    d.write(rule("wide"))
    d.ctl("reload").ok()
    d.until_state(a.pid, "recording")
    d.stop()
    a.end()
