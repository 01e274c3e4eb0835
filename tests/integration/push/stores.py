"""Real stores: what was pushed is asked back. Its sum in ns and its five first functions are those of luasample report: an
answer of 200 is no proof. Stores of scripts/stores are taken from its cache; ClickHouse is Debian's."""
import base64
import json
import os
import shutil
import socket
import time
import urllib.error
import urllib.parse
import urllib.request

import support as s
from pprof import Profile
from shared import check, first_five, push, reported, self_of, small, suite


# Parts of Pyroscope, each of which else takes an address of the machine for its own.
PYROSCOPE_PARTS = ["ingester.lifecycler.addr", "memberlist.advertise-addr", "query-frontend.instance-addr"] + [
    p + ".instance-addr" for p in ("distributor.ring", "compactor.ring", "overrides-exporter.ring", "query-scheduler.ring",
                                   "store-gateway.sharding-ring")]


def program(name):
    """A store that scripts/stores has built. In CI it must be there: it is built now, or that is waited for."""
    if os.environ.get("CI"):
        r = s.run([os.path.join(s.ROOT, "scripts", "stores"), name], timeout=3600)
        check(r.status == 0, r.err[-600:])
    cache = os.environ.get("LUASAMPLE_TEST_CACHE") or os.path.expanduser("~/.cache/luasample-tests")
    path = os.path.join(cache, "stores", name)
    if not os.access(path, os.X_OK):
        raise s.Skip("no %s: scripts/stores %s builds it, in some minutes" % (name, name))
    return path


def port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def ask(url, data=None, headers={}):
    request = urllib.request.Request(url, data=data, headers=headers)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=30) as answer:
        return answer.read()


def wait_for(url, started, timeout=90):
    end = time.monotonic() + timeout
    while True:
        try:
            return ask(url)
        except (urllib.error.URLError, ConnectionError, TimeoutError) as e:
            check(started.p.poll() is None, "it has ended: " + started.read(started.err)[-400:])
            check(time.monotonic() < end, "no answer of %s: %s" % (url, e))
            time.sleep(0.2)


def trace_of_now():
    """A trace that has begun a minute ago: stores refuse old ones."""
    return small(start=(1000000000, time.time_ns() - 60 * 1000000000, 1000))


def same(trace, profile):
    want, top = reported(trace)
    check(profile.sum() == want, "sum %d ns, report has %d" % (profile.sum(), want))
    check(first_five(self_of([profile])) == top, "%s, report has %s" % (first_five(self_of([profile])), top))


@suite.test("store-parca", "Parca: pushed, merged by its query, the same")
def _():
    binary, dir, at = program("parca"), s.tmpfile(".parca"), port()
    os.mkdir(dir)
    config = os.path.join(dir, "parca.yaml")
    with open(config, "w") as f:
        f.write('object_storage: {bucket: {type: FILESYSTEM, config: {directory: "%s/data"}}}\n' % dir)
    st = s.Started([binary, "--config-path=" + config, "--http-address=127.0.0.1:%d" % at, "--debuginfod-upstream-servers="],
                   cwd=dir)
    url = "http://127.0.0.1:%d" % at
    wait_for(url + "/api/profiles/types", st)
    trace = trace_of_now()
    push(trace, "parca:" + url, "--service-name", "web", "--series", "env=test").ok()
    push(trace, "parca:" + url, "--service-name", "other").ok()
    types = json.loads(ask(url + "/api/profiles/types"))["types"]
    kind = [t for t in types if t["name"] == "process_cpu" and t["sampleType"] == "cpu"]
    check(len(kind) == 1, str(types))
    name = ":".join(kind[0][k] for k in ("name", "sampleType", "sampleUnit", "periodType", "periodUnit"))
    query = {"mode": "MODE_MERGE", "reportType": "REPORT_TYPE_PPROF",
             "merge.query": name + (":delta" if kind[0].get("delta") else "") + '{service_name="web",env="test"}',
             "merge.start": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 600)),
             "merge.end": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 60))}
    answer = json.loads(ask(url + "/api/profiles/query?" + urllib.parse.urlencode(query)))
    same(trace, Profile(base64.b64decode(answer["pprof"])))


@suite.test("store-pyroscope", "Pyroscope: pushed, merged by its query, the same")
def _():
    binary, dir = program("pyroscope"), s.tmpfile(".pyroscope")
    http, grpc, gossip = port(), port(), port()
    os.mkdir(dir)
    st = s.Started([binary, "-server.http-listen-address=127.0.0.1", "-server.http-listen-port=%d" % http,
                    "-server.grpc-listen-address=127.0.0.1", "-server.grpc-listen-port=%d" % grpc,
                    "-memberlist.bind-addr=127.0.0.1", "-memberlist.bind-port=%d" % gossip, "-ring.store=inmemory",
                    "-ingester.min-ready-duration=0", "-usage-stats.enabled=false", "-self-profiling.disable-push=true",
                    "-pyroscopedb.data-path=" + dir] + ["-%s=127.0.0.1" % part for part in PYROSCOPE_PARTS], cwd=dir)
    url = "http://127.0.0.1:%d" % http
    wait_for(url + "/ready", st)
    trace = trace_of_now()
    push(trace, "pyroscope:" + url, "--service-name", "web", "--series", "env=test").ok()
    push(trace, "pyroscope:" + url, "--service-name", "other").ok()
    now = int(time.time() * 1000)
    query = {"profileTypeID": "process_cpu:cpu:nanoseconds:cpu:nanoseconds", "labelSelector": '{service_name="web",env="test"}',
             "start": now - 600000, "end": now + 60000}
    answer = ask(url + "/querier.v1.QuerierService/SelectMergeProfile", json.dumps(query).encode(),
                 {"Content-Type": "application/json"})
    j = json.loads(answer)
    texts = j["stringTable"]
    functions = {f["id"]: texts[int(f["name"])] for f in j["function"]}
    where = {l["id"]: functions[l["line"][0]["functionId"]] for l in j["location"]}
    count = {}
    for x in j["sample"]:
        leaf = where[x["locationId"][0]]
        count[leaf] = count.get(leaf, 0) + int(x["value"][-1])
    want, top = reported(trace)
    check(sum(count.values()) == want and first_five(count) == top, "%s, report has %s" % (count, top))


@suite.test("store-collector", "the OpenTelemetry collector takes our OTLP, and counts as many samples")
def _():
    binary, dir, at = program("otelcol"), s.tmpfile(".otelcol"), port()
    os.mkdir(dir)
    config = os.path.join(dir, "otelcol.yaml")
    with open(config, "w") as f:
        f.write("receivers: {otlp: {protocols: {http: {endpoint: '127.0.0.1:%d'}}}}\n"
                "exporters: {debug: {verbosity: detailed}}\n"
                "service: {telemetry: {metrics: {level: none}}, pipelines: {profiles: {receivers: [otlp], exporters: [debug]}}}\n" % at)
    st = s.Started([binary, "--config=file:" + config, "--feature-gates=+service.profilesSupport"])
    end = time.monotonic() + 60
    while "Everything is ready" not in st.read(st.err):
        check(st.p.poll() is None and time.monotonic() < end, st.read(st.err)[-600:])
        time.sleep(0.1)
    trace = trace_of_now()
    push(trace, "otlp:http://127.0.0.1:%d" % at, "--experimental").ok()
    while "Values:" not in st.read(st.err):
        check(time.monotonic() < end, st.read(st.err)[-600:])
        time.sleep(0.1)
    text = st.read(st.err)
    values = [int(v) for line in text.splitlines() if "Values:" in line for v in line.split("[")[1].split("]")[0].split()]
    check(sum(values) == reported(trace)[0], "sum %d of %s, report has %d" % (sum(values), values, reported(trace)[0]))


class ClickHouse:
    """Debian's server, with a directory of its own."""
    def __init__(self):
        if not shutil.which("clickhouse-server"):
            raise (s.Fail if os.environ.get("CI") else s.Skip)("no clickhouse-server")
        dir, self.at, tcp = s.tmpfile(".clickhouse"), port(), port()
        os.mkdir(dir)
        config = os.path.join(dir, "config.xml")
        with open(config, "w") as f:
            f.write("""<yandex><logger><level>warning</level><console>1</console></logger>
<http_port>%d</http_port><tcp_port>%d</tcp_port><listen_host>127.0.0.1</listen_host>
<path>%s/</path><tmp_path>%s/tmp/</tmp_path><users_config>users.xml</users_config>
<default_profile>default</default_profile><default_database>default</default_database><mark_cache_size>5368709120</mark_cache_size>
</yandex>""" % (self.at, tcp, dir, dir))
        with open(os.path.join(dir, "users.xml"), "w") as f:
            f.write("""<yandex><profiles><default/></profiles><quotas><default/></quotas><users><default><password></password>
<networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota></default></users></yandex>""")
        self.started = s.Started(["clickhouse-server", "--config-file=" + config], cwd=dir)
        self.url = "http://127.0.0.1:%d" % self.at
        wait_for(self.url + "/?query=SELECT%201", self.started)

    def ask(self, query):
        return ask(self.url + "/", query.encode()).decode()


def schema():
    """The table and the queries of the manual."""
    with open(os.path.join(s.ROOT, "man", "luasample-push.1.scd")) as f:
        blocks = f.read().split("# CLICKHOUSE")[1].split("# EXIT")[0].split("```")
    return blocks[1], [q for q in blocks[3].split("\n\n") if q.strip()]


@suite.test("store-clickhouse", "ClickHouse with the manual's table: rows, the manual's queries, a repeat is merged away")
def _():
    ch = ClickHouse()
    table, queries = schema()
    ch.ask(table)
    trace = trace_of_now()
    for _ in range(2):
        push(trace, "clickhouse:" + ch.url, "--service-name", "web").ok()
    rows = ch.ask("SELECT function, sum(value) FROM luasample FINAL WHERE service = 'web' GROUP BY function")
    count = {line.split("\t")[0]: int(line.split("\t")[1]) for line in rows.splitlines()}
    want, top = reported(trace)
    check(sum(count.values()) == want and first_five(count) == top, "%s, report has %s" % (count, top))
    seconds = dict(line.split("\t") for line in ch.ask(queries[0]).splitlines())
    check(abs(sum(map(float, seconds.values())) - want / 1e9) < 1e-6, str(seconds))
    check(len(queries) == 3 and all(ch.ask(q) for q in queries), "a query of the manual has no rows")
    r = push(trace, "clickhouse:" + ch.url, "--table", "nosuch")
    check(r.status != 0 and "nosuch" in r.err and len(r.err.splitlines()) == 1, r.err)
