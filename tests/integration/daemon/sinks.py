"""[sink NAME]: what the store has comes to another store exactly once, whatever happens between."""
import ctypes
import datetime
import os
import sys
import time

import support as s
from shared import Daemon, Service, check, check_once, rule, suite, ticks_of, until

sys.path.append(os.path.join(s.TESTS, "integration", "push"))
from fake import Store
from pprof import series_of


def sink(url, more="", type="pyroscope"):
    return "[sink out]\ntype = %s\nurl = %s\nevery = 1s\n%s\n" % (type, url, more)


def state(d):
    return d.json("status")["sinks"][0]


def sender_of(d):
    for pid in s.children_of(d.started.p.pid):
        try:
            with open("/proc/%d/cmdline" % pid, "rb") as f:
                if f.read().startswith(b"luasample\0push\0"):
                    return pid
        except OSError:
            pass                                # it has ended
    return None


def taken(requests):
    """(service, profile) by id: what has the same id is the same."""
    found, bodies = {}, {}
    for _, _, body in requests:
        labels, profiles, ids = series_of(body)
        for i, p in zip(ids, profiles):
            check(bodies.setdefault(i, body) == body, "%s has two contents" % i)
            found[i] = (labels["service_name"], p)
    return found


def drain(d, upto, timeout=60):
    """Until all that was recorded before is sent."""
    until("the sink is at its end", lambda: state(d)["until_ms"] > upto and state(d)["state"] == "waiting", timeout)


def hot_ns(found, service):
    return sum(values[-1] for name, p in found.values() if name == service for stack, values, _ in p.samples if "hot" in stack)


def stored_ns(d, service):
    return sum(r["total_ticks"] for r in s.json_of(["report", "--store", d.store, "--service", service, "--json", "--by", "function"])
               ["rows"] if r["function"] == "hot") * 10000000


@suite.test("sink", "what was recorded is sent once: a store that fails, the daemon killed, and its sender")
def _():
    bad = [(500, {}, b""), (429, {"Retry-After": "1"}, b""), "cut", "close"]
    with Store(*bad) as st:
        service = Service("sent", share=0.6)
        d = Daemon(rule("sent") + sink(st.url, "series = env=test"))
        until("something was sent", lambda: len(st.requests) >= 6)
        for _ in range(3):
            until("it goes on", lambda n=len(st.requests): len(st.requests) > n)
            d.kill()
            d.start()
        seen = len(st.requests)
        st.answers.append("slow")               # a sender that waits for its answer
        until("a request", lambda: len(st.requests) > seen and not st.answers)
        os.kill(until("a sender", lambda: sender_of(d)), 9)
        service.end()
        end = int(time.time() * 1000)
        drain(d, end)
        found = taken(st.requests)
        status = d.ctl("status").ok().out
        check("sink out" in status and "profiles sent" in status, status)
        d.stop()
    check_once(d.chunks("sent"))
    want = stored_ns(d, "sent")
    check(want > 0 and hot_ns(found, "sent") == want, "%d ns were sent, the store has %d" % (hot_ns(found, "sent"), want))
    check(len({b for _, _, b in st.requests}) == len(found), "one profile has two ids")


@suite.test("sink-age", "what is older than max-age is given up, and counted; what is refused for good, too")
def _():
    with Store(usual=(503, {}, b"come back")) as st:
        service = Service("aged", share=0.5)
        d = Daemon(rule("aged") + sink(st.url, "max-age = 8s"))
        got = until("something is given up", lambda: state(d)["given_up_s"] >= 1 and state(d), 90)
        check(got["state"] in ("failing", "sending") and "it answers 503: come back" in got["last"] and not got["sent"], str(got))
        st.usual = (400, {}, b"too old")
        got = until("something is refused", lambda: state(d)["refused"] and state(d), 90)
        check("it answers 400: too old" in got["last"], str(got))
        st.usual = (200, {}, b"")
        until("it is sent again", lambda: state(d)["sent"], 60)
        service.end()
        d.stop()


@suite.test("sink-flush", "ctl flush SINK: what was recorded until now is sent when the answer comes; a store that is down is said; the spool is counted", quick=True)
def _():
    with Store(usual=(503, {}, b"come back")) as st:
        service = Service("soon", share=0.5)
        d = Daemon(rule("soon") + sink(st.url).replace("every = 1s", "every = 1h"), chunk="1m")
        until("it has its place", lambda: state(d)["until_ms"])
        d.until_state(service.pid, "recording")
        time.sleep(1)
        r = d.ctl("flush", "out")
        check(r.status == 1 and r.err.startswith("luasample: ctl: sink out: %s: it answers 503: come back" % st.url) and r.err.count("\n") == 1, r.err)
        d.ctl("reload").ok()                    # counts anew
        got = until("the spool is counted", lambda: state(d)["spool_chunks"] and state(d))
        check(got["spool_bytes"] > 1000 and "to send" in d.ctl("status").ok().out, got)
        refused = len(st.requests)
        st.usual = "close"                      # it takes the window, and the answer is lost
        r = d.ctl("flush", "out")
        check(r.status == 1 and len(st.requests) > refused, r.err)
        d.ctl("detach", str(service.pid)).ok()  # the next chunk has come
        until("it is left", lambda: d.target(service.pid)["recorder"] == 0)
        st.usual = (200, {}, b"")
        d.ctl("flush", "out").ok()
        first = [i for i, _ in taken(st.requests[:1]).items()]
        check(set(taken(st.requests[:len(st.requests) - len(st.accepted) + 1])) == set(first), "what was sent again has another id")
        check(hot_ns(taken(st.requests), "soon") == hot_ns(taken(st.accepted), "soon"), "a store whose answer was lost has it twice")
        want = stored_ns(d, "soon")
        check(want > 0 and hot_ns(taken(st.accepted), "soon") == want, "%d ns were sent, the store has %d" % (hot_ns(taken(st.accepted), "soon"), want))
        d.ctl("reload").ok()
        until("the spool is empty", lambda: not state(d)["spool_chunks"])
        for words, status, says in ((("flush", "uot"), 1, "there is no sink uot; did you mean out?"),
                                    (("flush", "nowhere"), 1, "there is no sink nowhere"), (("flush", "a", "b"), 129, "give one SINK, or none")):
            r = d.ctl(*words)
            check(r.status == status and says in r.err and r.err.count("\n") == 1, r.err)
        d.ctl("flush").ok()
        d.stop()
        service.end()


class Net:
    """A network of its own: a hub, and hosts with a link to it each, as namespaces that end with the test."""
    def __init__(self, n):
        for tool in "ip", "nsenter", "unshare":
            s.need(tool)
        self.holders = [s.Started(["unshare", "--net", "sleep", "600"]) for _ in range(n + 1)]
        own = os.stat("/proc/self/ns/net").st_ino
        for h in self.holders:
            until("a namespace", lambda h=h: h.p.poll() is None and os.stat("/proc/%d/ns/net" % h.p.pid).st_ino != own)
        for k in range(n):
            self.hub("ip", "link", "add", "name", "to%d" % k, "type", "veth", "peer", "name", "up0", "netns", str(self.holders[k + 1].p.pid))
            self.hub("ip", "address", "add", "10.77.%d.1/24" % k, "dev", "to%d" % k)
            self.hub("ip", "link", "set", "to%d" % k, "up")
            for words in (("address", "add", "10.77.%d.2/24" % k, "dev", "up0"), ("link", "set", "up0", "up")):
                s.run([*self.at(k), "ip", *words]).ok()

    def at(self, k):
        """Words before a command that runs on host k."""
        return ["nsenter", "--target", str(self.holders[k + 1].p.pid), "--net"]

    def hub(self, *words):
        s.run(["nsenter", "--target", str(self.holders[0].p.pid), "--net", *words]).ok()

    def store(self, *answers):
        """A store of ours that listens in the hub: its socket is made by this thread, which is there for that time."""
        setns = ctypes.CDLL(None, use_errno=True).setns
        with open("/proc/thread-self/ns/net") as own, open("/proc/%d/ns/net" % self.holders[0].p.pid) as hub:
            check(setns(hub.fileno(), 0) == 0, os.strerror(ctypes.get_errno()))
            try:
                return Store(*answers, host="0.0.0.0")
            finally:
                check(setns(own.fileno(), 0) == 0, os.strerror(ctypes.get_errno()))

    def end(self):
        for h in self.holders:
            h.p.kill()
            h.wait()


@suite.test("sink-net", "three daemons in networks of their own, one store; one is cut off for a while, and another's host: all is there once")
def _():
    if os.geteuid() or s.run(["unshare", "--net", "true"]).status:
        raise s.Skip("network namespaces are for root")
    net = Net(3)
    with net.store() as st:
        port = st.server.server_address[1]
        names, services, daemons = ["net%d" % k for k in range(3)], [], []
        for k, name in enumerate(names):
            services.append(Service(name, share=0.4))
            d = Daemon(rule(name) + sink("http://10.77.%d.1:%d" % (k, port)), start=False)
            d.before = net.at(k)
            daemons.append(d.start())

        def of(k):
            return [i for i, (name, _) in taken(st.requests).items() if name == names[k]]
        until("each sends", lambda: all(len(of(k)) >= 2 for k in range(3)))
        net.hub("ip", "link", "set", "to1", "down")
        until("it fails", lambda: state(daemons[1])["state"] == "failing")
        check("10.77.1.1" in state(daemons[1])["last"], state(daemons[1]))
        cut, others = len(of(1)), [len(of(0)), len(of(2))]
        daemons[1].kill()                       # what is not sent survives that, too
        daemons[1].start()
        until("the others go on", lambda: len(of(0)) > others[0] + 2 and len(of(2)) > others[1] + 2)
        check(len(of(1)) == cut, "%d came over a link that is down" % (len(of(1)) - cut))
        until("it is behind", lambda: state(daemons[1])["behind_s"] >= 6)
        net.hub("ip", "link", "set", "to1", "up")
        for p in services:
            p.end()
        end = int(time.time() * 1000)
        for d in daemons:
            drain(d, end)
        found = taken(st.requests)
        for d, name in zip(daemons, names):
            got = state(d)
            d.stop()
            want = stored_ns(d, name)
            check(want > 0 and hot_ns(found, name) == want, "%s: %d ns were sent, the store has %d" % (name, hot_ns(found, name), want))
            check(not got["given_up_s"] and not got["refused"], got)
            check_once(d.chunks(name))
    net.end()
    check(len({b for _, _, b in st.requests}) == len(found), "one profile has two ids")


@suite.test("clock", "the clock steps forward, and back: all that is recorded is in the store once, is found, and comes to the sink")
def _():
    steps, service = s.tmpfile(".steps"), Service("timed", share=0.5)
    library = os.path.join(s.build_dir(), "tests", "integration", "daemon", "libstepclock.so")
    check(os.path.exists(library), "no " + library)

    def step(seconds):
        with open(steps, "a") as f:
            f.write("%d %d\n" % (time.time() + 2, seconds))
        n = len(d.chunks("timed"))
        until("it goes on", lambda: len(d.chunks("timed")) > n + 6)
    open(steps, "w").close()
    with Store() as st:
        d = Daemon(rule("timed") + sink(st.url, "max-age = 1d"), start=False, store="merge = 1d\nmerge-old = 1d")
        d.env = {"LD_PRELOAD": library, "STEPCLOCK": steps}
        d.start()
        until("something was sent", lambda: len(st.requests) >= 2)
        step(400)
        ahead = int(time.time() * 1000) + 300000
        check(any(chunk_end(c) > ahead for c in d.chunks("timed")), "the step is not seen: %s" % d.chunks("timed")[-2:])
        sent = until("it is sent", lambda: state(d)["until_ms"] > ahead + 103000 and state(d)["until_ms"])
        step(100)
        service.end()
        drain(d, int(time.time() * 1000) + 100000)
        got = hot_ns(taken(st.requests), "timed")
        d.stop()
    chunks = d.chunks("timed")
    check_once(chunks)
    want = stored_ns(d, "timed")
    check(want == sum(map(ticks_of, chunks)) * 10000000, "the views have %d ns" % want)
    # what was recorded last before the step back comes when the clock is there again: it is sent until it stepped
    later = sum(ticks_of(c) for c in chunks if s.info(c)["start_realtime_ns"] > (sent - 2000) * 1000000) * 10000000
    check(want - later <= got <= want and got > 0.4 * want, "%d ns were sent, the store has %d, %d of them from ahead" % (got, want, later))


def chunk_end(path):
    """When it ends, in ms, as its name says."""
    begin, length = os.path.basename(path).split("-")[:2]
    at = datetime.datetime.strptime(os.path.basename(os.path.dirname(path)) + begin + "000 +0000", "%Y-%m-%d%H%M%S.%f %z")
    return int(at.timestamp() * 1000) + int(length)


@suite.test("sink-config", "what is wrong with [sink NAME] is said with file and line")
def _():
    for text, word in (("[sink a]\nurl = http://x", "give type"), ("[sink a]\ntype = nosuch\nurl = http://x", "give type"),
                       ("[sink a]\ntype = parca", "give url"), ("[sink a]\ntype = parca\nurl = x", "give url"),
                       ("[sink a]\ntype = dir\nurl = x", "absolute path"), ("[sink a]\ntype = otlp\nurl = http://x", "experimental"),
                       ("[sink a]\ntype = parca\nurl = http://x\nevery = 1ms", "every"), ("[sink]\n", "needs a name"),
                       ("[sink a]\ntype = parca\nurl = http://x\nmax-ag = 1m", "max-age"),
                       ("[sink a]\ntype = parca\nurl = http://x\nlabels = -x", "labels")):
        d = Daemon(text + "\n", start=False)
        r = s.run([s.luasample(), "daemon", "--config", d.path, "--check"])
        check(r.status != 0 and word in r.err and d.path + ":" in r.err and len(r.err.splitlines()) == 1, text + ": " + r.err)
