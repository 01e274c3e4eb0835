"""What each type of store gets, byte for byte."""
import base64
import json
import os
import urllib.parse
import uuid

import made
import support as s
from fake import Store
from pprof import Profile, fields, series_of
from shared import check, first_five, many, push, reported, self_of, small, suite


def same(trace, profiles):
    """What came is what report says."""
    want, top = reported(trace)
    check(sum(p.sum() for p in profiles) == want, "sum %d, report has %d" % (sum(p.sum() for p in profiles), want))
    check(first_five(self_of(profiles)) == top, "%s, report has %s" % (first_five(self_of(profiles)), top))


@suite.test("pyroscope", "PushRequest, its labels, a UUID that a repeat has again", quick=True)
def _():
    trace = small()
    with Store() as st:
        for _ in range(2):
            r = push(trace, "pyroscope:" + st.url, "--service-name", "web", "--series", "env=prod", "--tenant", "a").ok()
        push(trace, "pyroscope:" + st.url, "--service-name", "other").ok()
    path, headers, body = st.requests[0]
    check(path == "/push.v1.PusherService/Push" and headers["Content-Type"] == "application/proto", "%s %s" % (path, headers))
    check(headers["Connect-Protocol-Version"] == "1" and headers["X-Scope-OrgID"] == "a", str(headers))
    labels, profiles, ids = series_of(body)
    labels.pop("host", None)
    check(labels == {"__name__": "process_cpu", "service_name": "web", "env": "prod", "__delta__": "false",
                     "pyroscope_spy": "luasample"}, str(labels))
    check(profiles[0].types == [("samples", "count"), ("cpu", "nanoseconds")], str(profiles[0].types))
    same(trace, profiles)
    check(str(uuid.UUID(ids[0])) == ids[0] and uuid.UUID(ids[0]).version == 8, ids[0])
    check(body == st.requests[1][2], "a repeat is not the same")
    check(series_of(st.requests[2][2])[2] != ids, "another service has the same id")
    check("674000000 ns in 1 profile" in r.out, r.out)


@suite.test("parca", "WriteRaw as JSON", quick=True)
def _():
    trace = small()
    with Store(usual=(200, {"Content-Type": "application/json"}, b"{}")) as st:
        push(trace, "parca:" + st.url + "/", "--service-name", "we\"b").ok()
    path, headers, body = st.requests[0]
    check(path == "/api/profiles/writeraw" and headers["Content-Type"] == "application/json", path)
    j = json.loads(body)
    labels = {l["name"]: l["value"] for l in j["series"][0]["labels"]["labels"]}
    check(j["normalized"] is True and labels["service_name"] == "we\"b" and labels["__name__"] == "process_cpu", str(labels))
    same(trace, [Profile(base64.b64decode(x["rawProfile"], validate=True)) for x in j["series"][0]["samples"]])


@suite.test("coroot", "a profile of its own, whose time is the end; any pprof endpoint")
def _():
    trace = small(start=(0, 1700000000000000000, 60000000000))
    with Store() as st:
        push(trace, "coroot:" + st.url, "--service-name", "a b", "--series", "zone=x&y").ok()
        push(trace, "pprof:" + st.url + "/some/where?x=1").ok()
    url = urllib.parse.urlparse(st.requests[0][0])
    query = dict(urllib.parse.parse_qsl(url.query))
    query.pop("host", None)
    check(url.path == "/v1/profiles" and query == {"service.name": "a b", "zone": "x&y"}, st.requests[0][0])
    end, begin = Profile(st.requests[0][2]), Profile(st.requests[1][2])
    check(end.time == begin.time + begin.duration, "%d, %d + %d" % (end.time, begin.time, begin.duration))
    check(st.requests[1][0] == "/some/where?x=1", st.requests[1][0])
    same(trace, [end])


@suite.test("clickhouse-rows", "rows of JSON, for a table that is named", quick=True)
def _():
    trace = small()
    with Store() as st:
        push(trace, "clickhouse:" + st.url, "--service-name", "web", "--table", "perf.lua").ok()
    path, _, body = st.requests[0]
    check(urllib.parse.parse_qs(urllib.parse.urlparse(path).query)["query"] == ["INSERT INTO perf.lua FORMAT JSONEachRow"], path)
    rows = [json.loads(line) for line in body.decode().splitlines()]
    want, top = reported(trace)
    check(sum(r["value"] for r in rows) == want, str(rows))
    count = {}
    for r in rows:
        check(r["stack"][-1] == r["function"] and r["stack"][0] == "main", str(r))
        check("vmstate" in json.loads(r["labels"]), str(r))
        count[r["function"]] = count.get(r["function"], 0) + r["value"]
    check(first_five(count) == top, str(count))
    check([r["row"] for r in rows] == list(range(len(rows))) and len({r["push"] for r in rows}) == 1, str(rows))


@suite.test("otlp", "only with --experimental; what was rejected is an error")
def _():
    trace = small()
    with Store((200, {"Content-Type": "application/x-protobuf"}, b""),
               (200, {"Content-Type": "application/x-protobuf"}, bytes([10, 2, 8, 1]))) as st:
        r = push(trace, "otlp:" + st.url)
        check(r.status == 129 and "--experimental" in r.err and not st.requests, r.err)
        push(trace, "otlp:" + st.url, "--experimental").ok()
        r = push(trace, "otlp:" + st.url, "--experimental")
    check(r.status == 76 and "no part of 1 profiles" in r.err, r.err)
    path, headers, body = st.requests[0]
    export = s.run([s.luasample(), "export", "-i", trace, "--format", "otlp", "--experimental"], binary=True)
    check(path == "/v1development/profiles" and headers["Content-Type"] == "application/x-protobuf", path)
    check(len(body) > 200 and {n for n, _ in fields(body)} == {n for n, _ in fields(export.out)} == {1, 2}, "not as export")


@suite.test("directory", "a file for each profile, which a repeat replaces")
def _():
    trace, to = small(), s.tmpfile(".d")
    os.mkdir(to)
    if os.geteuid() == 0:
        r = push(trace, "dir:" + to)
        check(r.status == 1 and "belongs to root" in r.err and len(r.err.splitlines()) == 1, r.err)
        os.chown(to, 65534, 65534)
        os.chmod(s.tmpdir(), 0o711)
    for _ in range(2):
        push(trace, "dir:" + to, "--service-name", "../x").ok()
    names = os.listdir(to)
    check(len(names) == 1 and names[0].startswith("_._x-cpu-") and names[0].endswith(".pb.gz"), str(names))
    with open(os.path.join(to, names[0]), "rb") as f:
        same(trace, [Profile(f.read())])


@suite.test("splits", "what is larger than a store takes: by samples, and deep stacks")
def _():
    trace = many(40000)
    with Store() as st:
        push(trace, "pyroscope:" + st.url).ok()
    profiles = [p for _, _, body in st.requests for p in series_of(body)[1]]
    check([len(p.samples) for p in profiles] == [16000, 16000, 8000], str([len(p.samples) for p in profiles]))
    check(max(p.size for p in profiles) <= 4 << 20, "a profile of %d bytes" % max(p.size for p in profiles))
    ids = [i for _, _, body in st.requests for i in series_of(body)[2]]
    check(len(set(ids)) == 3, "ids are not different")
    same(trace, profiles)
    with Store() as st:                 # what was taken before is left out
        push(trace, "pyroscope:" + st.url, "--skip", "2").ok()
    check([series_of(body)[2][0] for _, _, body in st.requests] == ids[2:], "not the rest")


@suite.test("splits-bytes", "and by bytes")
def _():
    p = made.Program([("f%d_%s" % (i, "x" * 400), 1 + 300 * i, i + 1) for i in range(15000)])
    trace = made.trace(p, [(["f%d_%s" % (i, "x" * 400)], 1) for i in range(15000)])
    with Store() as st:
        push(trace, "pyroscope:" + st.url).ok()
    profiles = [q for _, _, body in st.requests for q in series_of(body)[1]]
    check(len(profiles) == 2 and max(q.size for q in profiles) <= 4 << 20, str([q.size for q in profiles]))
    same(trace, profiles)


@suite.test("deep", "stacks of more frames than the store takes lose those at the root, and it is said")
def _():
    p = made.Program([("root", 1, 1), ("leaf", 4000, 2)])
    trace = made.trace(p, [([("root", 2 + i) for i in range(1100)] + ["leaf"], 5), (["leaf"], 1)])
    with Store() as st:
        r = push(trace, "pyroscope:" + st.url).ok()
    check("1 stack of cpu had more than 1000 frames" in r.err, r.err)
    stacks = sorted(len(stack) for stack, _, _ in series_of(st.requests[0][2])[1][0].samples)
    check(stacks == [1, 1000], str(stacks))
    same(trace, series_of(st.requests[0][2])[1])


@suite.test("labels", "only those labels of samples that are allowed, and no sample is lost with the others")
def _():
    r = s.record_lua("labels.lua").ok()
    with Store() as st:
        push(r.trace, "pyroscope:" + st.url).ok()
        push(r.trace, "pyroscope:" + st.url, "--labels", "route,thread").ok()
        bad = push(r.trace, "pyroscope:" + st.url, "--labels", "a-b")
    check(bad.status == 129 and len(bad.err.splitlines()) == 1, bad.err)
    keys = [{k for p in series_of(body)[1] for _, _, labels in p.samples for k, _ in labels} for _, _, body in st.requests]
    check(keys[0] <= {"vmstate", "zone"} and keys[0] and keys[1] == {"route", "thread"}, str(keys))
    same(r.trace, series_of(st.requests[0][2])[1])
    same(r.trace, series_of(st.requests[1][2])[1])


@suite.test("events", "each event is a profile of its own; a trace without samples sends nothing")
def _():
    r = s.record_lua("wall.lua", "-e", "cpu,wall").ok()
    with Store() as st:
        push(r.trace, "pyroscope:" + st.url).ok()
        empty = push(r.trace, "pyroscope:" + st.url, "--function", "no such function").ok()
    names = {series_of(body)[0]["__name__"]: series_of(body)[1] for _, _, body in st.requests}
    check(set(names) == {"process_cpu", "wall"}, str(set(names)))
    for event, name in ("cpu", "process_cpu"), ("wall", "wall"):
        check(sum(p.sum() for p in names[name]) == reported(r.trace, "--event", event)[0], name)
    check("nothing was pushed" in empty.err, empty.err)
