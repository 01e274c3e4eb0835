"""[sink NAME]: what the store has comes to another store exactly once, whatever happens between."""
import os
import sys
import time

import support as s
from shared import Daemon, Service, check, check_once, rule, suite, until

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


def taken(store):
    """(service, profile) by id: what has the same id is the same."""
    found, bodies = {}, {}
    for _, _, body in store.requests:
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
        found = taken(st)
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
        st.usual = (200, {}, b"")
        d.ctl("detach", str(service.pid)).ok()
        until("it is left", lambda: d.target(service.pid)["recorder"] == 0)
        d.ctl("flush", "out").ok()
        want = stored_ns(d, "soon")
        check(want > 0 and hot_ns(taken(st), "soon") == want, "%d ns were sent, the store has %d" % (hot_ns(taken(st), "soon"), want))
        d.ctl("reload").ok()
        until("the spool is empty", lambda: not state(d)["spool_chunks"])
        for words, status, says in ((("flush", "uot"), 1, "there is no sink uot; did you mean out?"),
                                    (("flush", "nowhere"), 1, "there is no sink nowhere"), (("flush", "a", "b"), 129, "give one SINK, or none")):
            r = d.ctl(*words)
            check(r.status == status and says in r.err and r.err.count("\n") == 1, r.err)
        d.ctl("flush").ok()
        d.stop()
        service.end()


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
