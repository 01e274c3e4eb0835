"""luasample heap: the objects of a program's VMs against what the program counts itself. Imported by run.py."""
import json
import os
import re
import time
import support as s
from support import check

# N of each kind; what is printed is what the collector counts at the end.
PROGRAM = """
keep = { tables = {}, strings = {}, functions = {}, data = {}, coroutines = {}, arrays = {} }
collectgarbage() collectgarbage()
local N = %d
for i = 1, N do
        keep.tables[i] = { name = i }
        keep.strings[i] = ("s"):rep(100) .. i
        keep.functions[i] = function() return i end
        keep.coroutines[i] = coroutine.create(function() coroutine.yield(i) end)
        keep.arrays[i] = { i, i, i, i, i, i, i, i }
        keep.data[i] = newproxy(keep.data[1] or true)
end
leak = setmetatable({}, { __index = { [1] = { deep = { ("leaked"):rep(100000) } } } })
%s
collectgarbage() collectgarbage()
collectgarbage("stop")
io.write(collectgarbage("count") * 1024, "\\n") io.flush()
local x = 0
while true do x = x + 1 end
"""


def snapshot(args, *more):
    return s.run([s.luasample(), "heap", *args, *more], timeout=120)


def read(args):
    return json.loads(snapshot(args, "--json").ok().out)


def add_to(suite, running):
    def program(n, more="", lj=None, opts=()):
        path = s.tmpfile(".lua")
        with open(path, "w") as f:
            f.write(PROGRAM % (n, more))
        lj = lj or s.luajit()
        return running([lj.program, *opts, path], env=lj.environ())

    def counts(p):
        return {k: v["objects"] for k, v in read(["-p", str(p.p.pid)])["types"].items()}

    for lj in s.luajits():
        for mode in ((), ("-joff",)):
            @suite.test("heap.truth.%s.%s" % (lj.name, mode[0][1:] if mode else "jit"),
                        "so many objects of each type, with their bytes, as the program made", lj.name == "debian")
            def truth(lj=lj, mode=mode):
                with program(10, lj=lj, opts=mode) as few, program(5010, lj=lj, opts=mode) as many:
                    a, b = counts(few), counts(many)
                    want = {"table": 10000, "string": 5000, "function": 10000, "upvalue": 5000, "thread": 5000, "userdata": 5000}
                    got = {k: b[k] - a[k] for k in want}
                    # In compiled code the traces differ, which hold nothing of these. The two functions share an upvalue.
                    check(all(abs(got[k] - n) <= 20 for k, n in want.items()), "%s, not %s" % (got, want))
                    v = read(["-p", str(many.p.pid)])
                    total, counted = sum(t["bytes"] for t in v["types"].values()), float(many.read(many.out))
                    check(v["vms"][0]["bytes"] >= counted and 0.93 * counted < total < 1.01 * counted, "%d bytes of %d" % (total, counted))
                    check(v["unheld_bytes"] < 0.01 * counted, "%d bytes are held by nothing" % v["unheld_bytes"])
                    by = {o["where"]: o for o in v["largest"]}
                    check(all(0.99 * o["bytes"] <= o["retained"] for o in v["largest"]), "an object retains less than itself")
                    check(by["_G.keep.strings"]["retained"] > 5010 * (24 + 101), by["_G.keep.strings"])
                    check("_G.leak<metatable>.__index[1].deep[1]" in by and
                          600000 < by["_G.leak"]["retained"] < 601000, "the leak: %s" % by.get("_G.leak"))

    CDATA = """
local ffi = require "ffi"
ffi.cdef[[struct pair { int a; char b[33]; }; struct wide { double d[8]; } __attribute__((aligned(64)));
          enum color { RED }; typedef struct pair again;]]
local kinds = { "double[5]", "struct pair", "int8_t", "again", "struct wide", "enum color", "void *", "struct pair[3]", "int64_t" }
local N, keep, out = 1000, {}, {}
for i = 1, #kinds + 1 do
    local make, of, list = kinds[i] and ffi.typeof(kinds[i]) or ffi.typeof("char[?]"), not kinds[i] and 300, {}
    for k = 1, N do list[k] = false end
    local function run() for k = 1, N do list[k] = of and make(of) or make() end end
    run()
    collectgarbage() collectgarbage("stop")
    local before = collectgarbage("count")
    run()
    out[i] = (collectgarbage("count") - before) * 1024
    collectgarbage("restart")
    keep[i] = list
end
collectgarbage() collectgarbage()
collectgarbage("stop")
local sum = 0
for _, n in ipairs(out) do sum = sum + n end
io.write(sum, "\\n") io.flush()
local x = 0
while true do x = x + 1 end
"""

    for lj in s.luajits():
        @suite.test("heap.cdata.%s" % lj.name, "bytes of C data: of fixed and variable size, aligned, structs by name", lj.name == "debian")
        def cdata(lj=lj):
            path = s.tmpfile(".lua")
            with open(path, "w") as f:
                f.write(CDATA)
            with running([lj.program, "-joff", path], env=lj.environ()) as p:
                want, kept = float(p.read(p.out)), s.tmpfile(".heap")
                got = read(["-p", str(p.p.pid)])["types"]["cdata"]
                check(abs(got["objects"] - 10000) < 50 and abs(got["bytes"] - want) < 0.001 * want + 2000, "%s, not %d bytes" % (got, want))
                snapshot(["-p", str(p.p.pid), "-o", kept]).ok()
                with open(kept) as f:
                    sizes = [(o[2], o[4]) for o in json.load(f)["objects"] if o[1] == 10]
                for size, name in ((56, "pair"), (17, ""), (8 + 16 + 56 + 64, "wide"), (8 + 16 + 300, "")):
                    check(sizes.count((size, name)) >= 1000, "%d of %d bytes, %r" % (sizes.count((size, name)), size, name))

    @suite.test("heap.files", "kept, read again, why, compared; a core file is the same", True)
    def files():
        with program(10) as few, program(1010) as many:
            one, two = s.tmpfile(".heap"), s.tmpfile(".heap")
            snapshot(["-p", str(few.p.pid), "-o", one]).ok()
            r = snapshot(["-p", str(many.p.pid), "-o", two]).ok()
            check(re.fullmatch(r"\[ luasample: stops process \d+ for some \d+ ms, to copy \d+ MiB \]\n", r.err), r.err)
            with open(two) as f:
                j = json.load(f)
            check(j["luasample_heap"] == 1 and j["pid"] == many.p.pid and j["stopped_ns"] > 0 and len(j["vms"]) == 1, str(j)[:200])
            live = read([two])
            core = s.tmpfile("")
            s.run([s.need("gcore"), "-o", core, str(many.p.pid)]).ok()
            dead = read(["--core", "%s.%d" % (core, many.p.pid)])
            check(live["types"] == dead["types"] and live["largest"] == dead["largest"], "the core has other objects")
            path = snapshot([two, "--why", "keep.strings"]).ok().out.splitlines()
            check([line.split()[-1] for line in path[1:]] == ["_G", ".keep", ".strings"], path)
            address = next(o["address"] for o in live["largest"] if o["where"] == "_G.keep.strings")
            check(snapshot([two, "--why", hex(address)]).ok().out.splitlines() == path, "by address it is another")
            grew = snapshot([one, two]).ok().out
            check(re.search(r"\+1000 +\d+ +\d+  thread\n", grew) and re.search(r"  _G\.keep\.strings\n", grew), grew)
            check(snapshot([two, "--why", "no.such"]).status == 1, "what is not there was found")
            with open(two, "rb") as f:
                whole = f.read()
            for bad in (whole[:len(whole) // 2], b"", b"{}", whole.replace(b"[5,", b"[99999999999999999999,", 3), b"[" * 100000):
                with open(one, "wb") as f:
                    f.write(bad)
                r = snapshot([one])
                check(r.status == 1 and len(r.err.splitlines()) == 1, "%r: status %d, %r" % (bad[:40], r.status, r.err))

    LIES = """
    local ffi = require "ffi"
    local function at(o) return ffi.cast("char *", tonumber(("%p"):format(o):sub(3), 16)) end
    local function set(o, offset, n) ffi.cast("uint32_t *", at(o) + offset)[0] = n end
    lies = { {}, {}, "a string that lies", {}, { 1, 2, 3 } }
    many, all = {}, {}
    for i = 1, 100000 do all[i] = i end
    for i = 1, 20000 do many[i] = {} end
    collectgarbage() collectgarbage("stop")
    io.write("up\\n") io.flush()
    set(lies[1], 48, 0x7fffffff)                                    -- its array's length
    set(lies[2], 52, 0x7fffffff)                                    -- that of its nodes
    set(lies[3], 20, 0x7fffffff)                                    -- of a string
    for i = 1, #many do                                             -- all have the same array
        ffi.cast("void **", at(many[i]) + 16)[0] = ffi.cast("void **", at(many) + 16)[0]
        set(many[i], 48, 20000)
    end
    ffi.cast("void **", at(lies[4]))[0] = at(lies[4])               -- the list of all objects leads into itself
    ffi.cast("void **", at(lies[5]) + 16)[0] = ffi.cast("void *", 0x7ffffffff008)
    while true do end
    """

    @suite.test("heap.hostile", "lengths that lie, a list that leads into itself: bounded, and the rest is there", True)
    def hostile():  # 20,000 tables of 20,000 slots each would be 400 million ways
        with program(100, LIES) as p:
            r = snapshot(["-p", str(p.p.pid), "--json"]).ok()
            check(json.loads(r.out)["types"]["thread"]["objects"] >= 100, r.out[:300])
            check(json.loads(r.out)["types"]["string"]["bytes"] < 10 << 20, "lies were counted")

    @suite.test("heap.threads", "of more threads than are stopped it is said how many ran on; too much memory is refused")
    def threads():
        def taken(stack, n):
            p = s.Started(["prlimit", "--stack=%d" % stack, s.host("workers"), "1", "1", "2000000", str(n)])
            deadline = time.monotonic() + 60
            while len(os.listdir("/proc/%d/task" % p.p.pid)) < n + 2 and time.monotonic() < deadline:
                time.sleep(0.05)
            r = snapshot(["-p", str(p.p.pid), "-o", os.devnull], "--max-stop", "60s")
            p.p.kill()
            p.p.wait()
            return r
        r = taken(16 << 20, 200)
        check(r.status == 1 and "more than 2 GiB" in r.err and len(r.err.splitlines()) == 1, r.err)
        r = taken(256 << 10, 1100)
        check(re.search(r"7[78] threads ran on while the memory was copied", r.err), "%d: %s" % (r.status, r.err))

    @suite.test("heap.unchanged", "twenty snapshots: a program of several threads prints and ends as without; --max-stop", True)
    def unchanged():
        p = s.Started([s.host("workers"), "4", "2", "1000"])
        n = 0
        while p.p.poll() is None and n < 20:
            r = snapshot(["-p", str(p.p.pid), "-o", os.devnull], "--max-stop", "2s")
            n += r.status == 0
        plain = s.run([s.host("workers"), "4", "2", "1000"])
        status, lines = p.wait(), len(p.read(p.out).splitlines())
        check(n > 0 and status == plain.status == 0 and p.read(p.err) == plain.err and lines == len(plain.out.splitlines()) > 0,
              "%d snapshots; %d, %d lines, %r" % (n, status, lines, p.read(p.err)))
        with program(10) as q:
            r = snapshot(["-p", str(q.p.pid)], "--max-stop", "1ms")
            check(r.status == 1 and "--max-stop" in r.err and len(r.err.splitlines()) == 1, r.err)
            check(q.p.poll() is None, "it has ended")
