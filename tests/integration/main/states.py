"""Time of C code: functions of the host, given to the VM with lua_pushcfunction, have their own time, by the host's own
clock. The other states are in tests/truth. Imported by run.py."""
import json
import threads
import support as s
from support import check, check_near, share


def add_to(suite):
    for native in ("--no-native", "--native"):
        @suite.test("states.host-function." + native.lstrip("-"),
                    "a host's C functions, busy for 50 ms at a time, also around calls back into Lua",
                    native == "--no-native")
        def host_function(native=native):
            r, said = threads.host_vms("cfunction", native)
            total, rows = said["all"], r.rows("--by", "function")
            field = "self" if native == "--no-native" else "total"
            check_near("host_busy", share(rows, field, function="host_busy"), 100 * said["host_busy"] / total, 2)
            around = said["host_around"] + (said["callback"] if field == "total" else 0)
            check_near("host_around", share(rows, field, function="host_around"), 100 * around / total, 2)
            check_near("callback", share(rows, "total", function="callback"), 100 * said["callback"] / total, 2)

    for mode in ("jit", "joff"):
        @suite.test("states.collector." + mode, "heap and cycles of the collector, by the program's own count, and in its views",
                    mode == "jit")
        def collector(mode=mode):
            r = s.record_lua("gccycles.lua", lua_opts=["-joff"] if mode == "joff" else [], args=["1"]).ok()
            cycles, most = r.out.split()
            v = json.loads(s.report(r.trace, "--by", "gc", "--json").ok().out)
            h = v["header"]
            # Between two ticks it may grow by what it makes in one, and readings are of 1/16.
            check(0.9 * float(most) < h["heap_peak_bytes"] < 1.1 * float(most), "peak %s, not %s" % (h["heap_peak_bytes"], most))
            # The first ones are of a small heap, and shorter than a tick.
            long = [c for c in v["cycles"] if c["whole"] and c["length_ns"] > 5e6]
            check(len(long) >= 3 and int(cycles) - 8 <= h["gc_cycles"] <= int(cycles) + 1, "%s cycles, not %s" % (h["gc_cycles"], cycles))
            check(all(c["peak_bytes"] >= max(c["before_bytes"], c["after_bytes"]) for c in v["cycles"]), v["cycles"])
            in_gc = sum(row["self_ticks"] for row in r.rows("--by", "vmstate") if row["vmstate"] == "Garbage Collector")
            check(sum(v["phases"].values()) == in_gc == h["gc_ticks"] == sum(f["ticks"] for f in v["functions"]) and
                  v["phases"]["sweep"] and v["phases"]["mark"], "%d ticks in the collector: %s" % (in_gc, v["phases"]))
            check("collector cycles seen" in s.report(r.trace).ok().out, "the header has no heap")
            names = {c["name"] for c in r.info()["counters"]}
            check(names == {"Lua heap", "Lua heap: threshold", "Lua collector: phase", "Lua collector: cycles"}, names)
            merged = s.tmpfile(".data")
            s.run([s.luasample(), "merge", "-o", merged, r.trace, r.trace]).ok()
            again = json.loads(s.report(merged, "--by", "gc", "--json").ok().out)
            check(len(again["cycles"]) == 2 * len(v["cycles"]) and
                  all(again["phases"][k] == 2 * n for k, n in v["phases"].items()), "merged: %s" % again["phases"])
