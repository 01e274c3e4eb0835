"""Format firefox, loaded by the Firefox Profiler's own command line tool (npm @firefox-devtools/profiler-cli), which has the
code of the profiler sum it up. Its daemon is started and asked here, over its socket: the tool's client waits half a second
for it, which a loaded machine may not have. Imported by run.py."""
import json
import os
import socket
import time

import shared
import support as s
from support import check

HANG = 120
ROWS = 1000000


class Profiler:
    def __init__(self, path):
        tool = os.path.join(shared.required(s.npm_dir), "node_modules", "@firefox-devtools", "profiler-cli", "dist", "profiler-cli.js")
        self.dir = s.tmpfile(".fx")
        os.mkdir(self.dir)
        self.process = s.Started([s.need("node"), tool, "--daemon", path, "--session", "x"],
                                 env=dict(os.environ, PROFILER_CLI_SESSION_DIR=self.dir, PROFILER_CLI_NO_SYMBOLICATE="1",
                                          HOME=self.dir))
        try:
            self.wait(path)
        except s.Fail:
            self.process.p.kill()
            self.process.p.wait()
            raise

    def wait(self, path):
        end = time.monotonic() + HANG
        while True:
            try:
                answer = self.send({"type": "status"})
            except OSError:
                answer = {"type": "loading"}
            if answer["type"] == "ready":
                return
            check(answer["type"] in ("loading", "symbolicating"), "%s: %s" % (path, answer))
            check(self.process.p.poll() is None, "%s: it ended: %s" % (path, s.Started.read(self.process.err)[-500:]))
            check(time.monotonic() < end, "%s: not loaded after %d s" % (path, HANG))
            time.sleep(0.02)

    def send(self, message):
        with socket.socket(socket.AF_UNIX) as c:
            c.settimeout(HANG)
            c.connect(os.path.join(self.dir, "x.sock"))
            c.sendall(json.dumps(message).encode() + b"\n")
            got = b""
            while not got.endswith(b"\n"):
                part = c.recv(1 << 20)
                if not part:
                    raise OSError("no answer")
                got += part
        return json.loads(got)

    def ask(self, command, subcommand, **more):
        answer = self.send({"type": "command", "command": {"command": command, "subcommand": subcommand, **more}})
        check(answer["type"] == "success", "%s %s: %s" % (command, subcommand, answer))
        return answer["result"]

    def threads(self):
        """[(handle, tid as text, name, CPU ms)]"""
        return [(t["threadHandle"], str(t["tid"]), t["name"], t["cpuMs"])
                for p in self.ask("profile", "info", all=True)["processes"] for t in p["threads"]]

    def functions(self, thread):
        return self.ask("thread", "functions", thread=thread, includeIdle=True, functionFilters={"limit": ROWS})["functions"]

    def categories(self, thread):
        r = self.ask("thread", "samples", thread=thread, includeIdle=True)["categoryBreakdown"]
        return {c["name"]: c["samples"] for c in r["categories"]} if r else {}

    def markers(self, thread):
        return self.ask("thread", "markers", thread=thread, markerFilters={"list": True}).get("flatMarkers", [])

    def close(self):
        self.send({"type": "shutdown"})
        self.process.wait()


def opened(trace, *filters):
    path = s.tmpfile(".firefox.json")
    shared.export(trace, "-o", path, *filters)
    return Profiler(path), path


def compare(what, trace, *filters):
    """Self and total ticks by function, ticks by VM state and by thread."""
    fx, path = opened(trace, *filters)
    try:
        with open(path) as f:
            names = json.load(f)["shared"]["stringArray"]
        selfs, states, threads = {}, {}, []
        for handle, _, _, _ in fx.threads():
            functions = fx.functions(handle)
            for f in functions:
                name = names[int(f["functionHandle"][2:])]      # functions are the first strings
                selfs[name] = selfs.get(name, 0) + round(f["selfSamples"])
            threads.append(sum(round(f["selfSamples"]) for f in functions))
            for name, n in fx.categories(handle).items():
                states[name] = states.get(name, 0) + round(n)
    finally:
        fx.close()
    want = {r["name"]: r["self_ticks"] for r in s.rows(trace, *filters)}
    d = shared.differ(selfs, want)
    check(not d, "%s: self: %s" % (what, d))
    d = shared.differ(states, {r["name"]: r["self_ticks"] for r in s.rows(trace, "--by", "vmstate", *filters)})
    check(not d, "%s: VM states: %s" % (what, d))
    want = sorted(r["self_ticks"] for r in s.rows(trace, "--by", "thread", *filters))
    check(sorted(threads) == want, "%s: threads have %s, not %s" % (what, sorted(threads), want))


def add_to(suite):
    t = suite.test

    @t("firefox.totals", "the Firefox Profiler has report's ticks of each function, VM state and thread, in each trace")
    def totals():
        for name in ("one", "mixed", "names", "deep", "heavy"):
            compare(name, shared.odd(name))
        for name in ("threads", "recursion"):
            compare(name, shared.golden(name))
        compare("filtered", shared.odd("mixed"), "--zone", "outer")
        compare("workers", shared.workers())
        compare("native", shared.native())

    @t("firefox.empty", "an empty trace has a thread without samples")
    def empty():
        fx, _ = opened(shared.odd("empty"))
        try:
            threads = fx.threads()
            check(len(threads) == 1 and not fx.functions(threads[0][0]), "threads: %s" % threads)
        finally:
            fx.close()

    @t("firefox.markers", "zones and regions are markers; CPU time of threads; lines, libraries and kinds of frames")
    def markers():
        fx, path = opened(shared.odd("mixed"))
        try:
            threads = {tid: (handle, cpu) for handle, tid, _, cpu in fx.threads()}
            zones = {m["name"]: m for m in fx.markers(threads["4242"][0])}
            check(sorted(zones) == ["inner", "outer"] and all(m["markerType"] == "zone" for m in zones.values()),
                  "zones: %s" % zones)
            outer, inner = zones["outer"], zones["inner"]
            check(outer["start"] <= inner["start"] and
                  inner["start"] + inner["duration"] <= outer["start"] + outer["duration"] + 1e-6, "zones: %s" % zones)
            s.check_near("inner", inner["duration"], 25, 0.01)          # five samples of 5 ms
        finally:
            fx.close()
        with open(path) as f:
            j = json.load(f)
        tables, libs = j["shared"], j["libs"]
        strings, kinds = tables["stringArray"], {}
        for i, name in enumerate(tables["funcTable"]["name"]):
            resource = tables["funcTable"]["resource"][i]
            lib = tables["resourceTable"]["lib"][resource] if resource >= 0 else None
            kinds[strings[name]] = (tables["funcTable"]["isJS"][i], None if lib is None else libs[lib]["name"])
        check(kinds["work"] == (True, None) and kinds["memcpy"] == (False, "libc.so.6") and
              kinds["lpeg.so+0x1234"] == (False, "lpeg.so") and kinds["string.format"] == (False, None), "kinds: %s" % kinds)
        lib = next(x for x in libs if x["name"] == "lpeg.so")
        check(lib["codeId"] == "deadbeef0001" and lib["breakpadId"] == "EFBEADDE0100" + "0" * 21, "build id: %s" % lib)
        lines = {tables["frameTable"]["line"][i] for i, f in enumerate(tables["frameTable"]["func"])
                 if strings[tables["funcTable"]["name"][f]] == "work"}
        check(lines == {None, 12, 13}, "lines of work: %s" % lines)

    @t("firefox.regions", "regions of a recording are markers; the CPU time of its threads is its ticks")
    def regions():
        trace = s.record_lua("regions.lua", "-q", args=["0.1"]).ok().trace
        fx, _ = opened(trace)
        try:
            (handle, _, _, cpu), = fx.threads()
            names = [m["name"] for m in fx.markers(handle) if m["markerType"] == "region"]
            check(names == ["first", "region"], "regions: %s" % names)
            # The profiler leaves out the first sample's, which has none before it.
            s.check_near("CPU ms", cpu, shared.ticks(trace), 0.05 * shared.ticks(trace) + 2)
        finally:
            fx.close()

    @t("firefox.labels", "labels of a recording are markers, each key with its values; marks are instants")
    def labels():
        trace = s.record_lua("labels.lua", "-q").ok().trace
        fx, _ = opened(trace)
        try:
            (handle, _, _, _), = fx.threads()
            markers = fx.markers(handle)
        finally:
            fx.close()
        shown = {m["label"] for m in markers if m["markerType"] == "label" and m["name"] == "route"}
        values = {r["label"] for r in s.rows(trace, "--by", "label:route")} - {"(none)"}
        check(shown == {"route: " + v for v in values}, "%s, not %s" % (shown, values))
        check([m["name"] for m in markers if m["markerType"] == "mark"] == ["labels begin"], "marks: %s" % markers)

    @t("firefox.perf", "the Firefox Profiler imports format perf-script: a sample for each tick of these traces")
    def perf():
        for trace in (shared.golden("threads"), shared.golden("recursion")):
            path = s.tmpfile(".linux-perf.txt")
            shared.export(trace, "-o", path).ok()
            fx, got = Profiler(path), {}
            try:
                for handle, _, _, _ in fx.threads():
                    for f in fx.functions(handle):
                        name = f["name"].split("!")[-1]
                        got[name] = got.get(name, 0) + round(f["selfSamples"])
            finally:
                fx.close()
            d = shared.differ(got, {r["name"]: r["self_ticks"] for r in s.rows(trace)})
            check(not d, d)

    @t("firefox.rejects", "the tests can fail: what is no profile is not loaded")
    def rejects():
        path = s.tmpfile(".json")
        with open(path, "w") as f:
            f.write('{"meta": {"preprocessedProfileVersion": 61}, "threads": 3}\n')
        try:
            Profiler(path).close()
        except s.Fail:
            return
        raise s.Fail("it loads anything")
