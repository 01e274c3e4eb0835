"""HTTP: every endpoint, over the unix socket and TCP; who is refused; what is wrong is said; names of others in pages."""
import base64
import gzip
import http.client
import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import threading
import time

from shared import Daemon, Service, check, rule, s, suite, ticks_of, until

TOKEN = "a-token-of-24-characters"


class Unix(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=60)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(60)
        self.sock.connect(self.path)


class Answer:
    def __init__(self, r):
        self.status, self.headers, self.body = r.status, r.headers, r.read()
        self.text = self.body.decode(errors="replace")

    def ok(self, status=200):
        check(self.status == status, "%d in place of %d: %s" % (self.status, status, self.text[:500]))
        return self


def ask(at, url, method="GET", headers=None, tls=None):
    """at: a daemon (its unix socket) or a port."""
    if isinstance(at, Daemon):
        c = Unix(os.path.join(at.dir, "http"))
    elif tls:
        c = http.client.HTTPSConnection("127.0.0.1", at, timeout=60, context=tls)
    else:
        c = http.client.HTTPConnection("127.0.0.1", at, timeout=60)
    try:
        c.request(method, url, headers=headers or {})
        return Answer(c.getresponse())
    finally:
        c.close()


def free_port():
    with socket.socket() as l:
        l.bind(("127.0.0.1", 0))
        return l.getsockname()[1]


def folded(text, function="hot"):
    """Ticks of a function in collapsed stacks."""
    return sum(int(l.rsplit(" ", 1)[1]) for l in text.splitlines() if ";" + function in l)


def http_process(d):
    """The process that serves, and its status."""
    for p in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/cmdline" % p) as f, open("/proc/%s/status" % p) as g:
                status = dict(l.split(":\t", 1) for l in g.read().splitlines() if ":\t" in l)
                if f.read().split("\0")[:2] == ["luasample-worker", "http"] and int(status["PPid"]) == d.started.p.pid:
                    return int(p), status
        except OSError:
            pass
    return None


@suite.test("http", "every endpoint over the unix socket; profiles have what the store has, to the last tick", quick=True)
def endpoints():
    a = Service("asked", share=0.8)
    d = Daemon(rule("asked"))
    d.until_state(a.pid, "recording")
    until("three chunks", lambda: len(d.chunks("asked")) >= 3)
    check(ask(d, "/healthz").ok().text == "ok\n" and ask(d, "/readyz").ok().text == "ok\n", "not healthy")
    seconds = folded(ask(d, "/debug/pprof/profile?service=asked&seconds=2&format=collapsed").ok().text)
    check(40 < seconds <= 210, "%d ticks in 2 s" % seconds)
    pprof = ask(d, "/debug/pprof/profile?pid=%d&last=10m" % a.pid).ok()
    check(b"hot" in gzip.decompress(pprof.body), "hot is not in the profile")
    check('filename="profile.pb.gz"' in pprof.headers["Content-Disposition"], pprof.headers)
    page = ask(d, "/flame?service=asked&last=5m").ok()
    check("<!DOCTYPE html>" in page.text and page.headers["X-Content-Type-Options"] == "nosniff", page.headers)
    ask(d, "/diff?service=asked&last=1s&before=1s").ok()
    stack = ask(d, "/stack?pid=%d" % a.pid).ok().text
    check("Thread %d" % a.pid in stack, stack)
    targets = json.loads(ask(d, "/targets").ok().text)
    check([t["pid"] for t in targets] == [a.pid], targets)
    check(json.loads(ask(d, "/status").ok().text)["services"][0]["name"] == "asked", "no service")
    home = ask(d, "/").ok().text
    check("asked" in home and "/flame?service=asked" in home and "%d" % a.pid in home, home)
    check("/debug/pprof/wall" in ask(d, "/debug/pprof/").ok().text, "no index")
    d_stop_sum(d, a)


def d_stop_sum(d, a):
    """What HTTP says of all time is what is stored, when nothing is recorded any more."""
    d.ctl("detach", str(a.pid)).ok()
    until("it is detached", lambda: d.target(a.pid)["state"] == "off" and not d.target(a.pid)["recorder"])
    until("all is committed", lambda: not [n for n in os.listdir(os.path.join(d.store, "incoming")) if n.startswith("asked")])
    whole = sum(ticks_of(c) for c in d.chunks("asked"))
    got = folded(ask(d, "/debug/pprof/profile?service=asked&last=1h&format=collapsed").ok().text)
    check(got == whole and whole > 100, "%d ticks over HTTP, %d in the store" % (got, whole))
    d.stop()
    check(not os.path.exists(os.path.join(d.dir, "http")), "the socket is left")
    a.end()


@suite.test("http-formats", "each exporter's format; events that were not recorded")
def formats():
    a = Service("formed", share=0.8)
    d = Daemon(rule("formed"))
    d.until_state(a.pid, "recording")
    until("a chunk", lambda: len(d.chunks("formed")) >= 1)
    for name in s.run([s.luasample(), "export", "--list"]).ok().out.split("\n"):
        if name:
            got = ask(d, "/debug/pprof/profile?last=1m&format=" + name.split()[0]).ok()
            # a line of perf's map is short, and a chunk may have seen one trace
            check(len(got.body) > (20 if name.startswith("perf-map") else 50), "%s: %d bytes" % (name, len(got.body)))
    for event in "wall", "suspended":
        got = ask(d, "/debug/pprof/%s?last=1m" % event).ok(400)
        check("no such event" in got.text, got.text)
    ask(d, "/burst?service=formed", "POST").ok(202)
    until("wall time", lambda: ask(d, "/debug/pprof/wall?last=1m").status == 200)
    d.stop()
    a.end()


@suite.test("http-operations", "POST burst and snapshot: 202, and what came of it; what is kept is there")
def operations():
    a = Service("kept", share=0.5)
    d = Daemon(rule("kept", more="burst-time = 2s"))
    d.until_state(a.pid, "recording")
    until("a chunk", lambda: d.chunks("kept"))
    burst = ask(d, "/burst?pid=%d" % a.pid, "POST").ok(202).headers["Location"]
    check(json.loads(ask(d, burst).ok().text)["state"] == "running", "it does not run")
    check(ask(d, "/burst?pid=%d" % a.pid, "POST").status == 409, "twice at one time")
    until("it ends", lambda: json.loads(ask(d, burst).ok().text)["state"] == "done")
    keeps = [ask(d, "/snapshot?service=kept&last=1m", "POST").ok(202).headers["Location"] for _ in range(8)]
    refused = ask(d, "/snapshot?service=kept", "POST").ok(409)
    check("8 are about to be kept" in refused.text, refused.text)
    for k in keeps:
        got = until("it is kept", lambda: (lambda o: o["state"] == "done" and o)(json.loads(ask(d, k).ok().text)))
        folder = os.path.join(d.store, got["text"].split(":")[0])
        check(os.path.isdir(folder) and len(os.listdir(folder)) >= 1, got)
    said = d.ctl("snapshot", "--last", "1m", "kept").ok().out.strip()
    until("ctl's is kept", lambda: os.path.isdir(os.path.join(d.store, said)))
    for words in ("snapshot",), ("snapshot", "nothing"), ("snapshot", "--last", "soon", "kept"), ("status", "--last", "1m"):
        check(d.ctl(*words).status != 0, "ctl %s" % " ".join(words))
    ask(d, "/operations/9999").ok(404)
    d.stop()
    a.end()


@suite.test("http-wrong", "what is not understood is refused with a line that says why", quick=True)
def wrong():
    d = Daemon("[service none]\nexe = /nothing\n")
    for url, status, why in (
            ("/nothing", 404, "/ lists"), ("/flame?lest=3", 400, "did you mean 'last'"), ("/flame?service=../x", 400, "service"),
            ("/flame?service=none", 404, "nothing is in the store"), ("/stack?pid=1", 404, "no rule"), ("/stack", 400, "give pid"),
            ("/flame?last=", 400, "last: give"), ("/flame?last", 400, "last: give"), ("/flame?last=5parsecs", 400, "last"),
            ("/flame?seconds=301", 400, "1 to 300"), ("/flame?seconds=2&last=3m", 400, "exclude"), ("/flame?to=1h", 400, "from"),
            ("/flame?from=1h&to=2h", 400, "not before"), ("/flame?from=%d" % (time.time() + 1000), 400, "before now"), ("/flame?from=99999999999999999999", 400, "from"),
            ("/debug/pprof/profile?format=gif", 400, "format"), ("/targets?x=%00", 400, ""), ("/burst?pid=1", 405, "POST"),
            ("/flame?pid=-1", 400, "process id"), ("/operations/x", 400, "number"), ("/flame?%3Cscript%3E=1", 400, "unknown argument")):
        got = ask(d, url)
        check(got.status == status and why in got.text, "%s: %d %s" % (url, got.status, got.text))
        check(got.headers["Content-Type"].startswith("text/plain") and got.text.count("\n") == 1, "%s: %r" % (url, got.text))
    ask(d, "/burst", "POST").ok(400)
    ask(d, "/burst?service=none", "POST").ok(409)
    ask(d, "/burst?service=no", "POST").ok(404)
    ask(d, "/flame", "DELETE").ok(405)
    ask(d, "/flame", "POST").ok(405)
    check(ask(d, "/healthz", "HEAD").ok().body == b"", "HEAD has a body")
    for text in (b"GET / HTTP/9.9\r\n\r\n", b"\0\0\0\0\r\n\r\n", b"GET " + b"a" * 70000 + b" HTTP/1.1\r\n\r\n",
                 b"GET / HTTP/1.1\r\nHost: x\r\n" + b"X: y\r\n" * 20000 + b"\r\n", b"POST /burst?pid=1 HTTP/1.1\r\nHost: x\r\n"
                 b"Content-Length: 99999999\r\n\r\n" + b"x" * 100000):
        with socket.socket(socket.AF_UNIX) as c:
            c.settimeout(20)
            c.connect(os.path.join(d.dir, "http"))
            try:
                c.sendall(text)
                c.shutdown(socket.SHUT_WR)
                while c.recv(65536):
                    pass
            except OSError:
                pass
    pid, _ = http_process(d)
    ask(d, "/healthz").ok()
    check(http_process(d)[0] == pid, "the process has changed: " + d.log())
    d.stop()


@suite.test("http-rights", "the process has no rights; it is started again; other users, hosts, sites and those without token are refused", quick=True)
def rights():
    port, token = free_port(), s.tmpfile(".token")
    with open(token, "w") as f:
        f.write(TOKEN + "\n")
    d = Daemon("[http]\nlisten = 127.0.0.1:%d\nhost = me.example\ntoken-file = %s\n" % (port, token))
    # a process that is just being made has what made it still
    pid, status = until("the process", lambda: next((x for x in [http_process(d)] if x and x[1]["Seccomp"].strip() != "0"), None))
    check(status["NoNewPrivs"].strip() == "1" and status["Seccomp"].strip() == "2" and set(status["CapEff"].strip()) == {"0"}, status)
    if os.geteuid() == 0:
        check(status["Uid"].split() == ["65534"] * 4 and status["Gid"].split() == ["65534"] * 4, status)
    check(os.stat(os.path.join(d.dir, "http")).st_mode & 0o777 == 0o660, "mode")
    bearer = {"Authorization": "Bearer " + TOKEN}
    basic = {"Authorization": "Basic " + base64.b64encode(b"x:" + TOKEN.encode()).decode()}
    for headers, want in (({}, 401), (bearer, 200), (basic, 200), ({"Authorization": "Bearer " + TOKEN[:-1]}, 401),
                          ({"Authorization": "Bearer " + TOKEN + "x"}, 401), ({"Authorization": "Bearer "}, 401),
                          (dict(bearer, Host="evil.example:%d" % port), 403), (dict(bearer, Host="me.example"), 200),
                          (dict(bearer, Host="localhost:%d" % port), 200), (dict(bearer, Host="127.0.0.1.evil.example"), 403),
                          (dict(bearer, Host="[::1]:%d" % port), 200), (dict(bearer, Host=""), 403)):
        got = ask(port, "/healthz", headers=headers)
        check(got.status == want, "%s: %d %s" % (headers, got.status, got.text))
    for headers, want in ((bearer, 404), (dict(bearer, Origin="http://evil.example"), 403), (dict(bearer, Origin="null"), 403),
                          (dict(bearer, Origin="http://127.0.0.1:%d" % port), 404), ({**bearer, "Sec-Fetch-Site": "cross-site"}, 403)):
        got = ask(port, "/burst?service=no", "POST", headers=headers)
        check(got.status == want, "%s: %d %s" % (headers, got.status, got.text))
    os.kill(pid, 9)
    until("a new one", lambda: (http_process(d) or (pid,))[0] != pid)
    until("it answers", lambda: ask(d, "/healthz").status == 200)
    check("the HTTP process ended with signal 9" in d.log(), d.log())
    if os.geteuid() == 0:
        for at in d.dir, os.path.dirname(d.dir):
            os.chmod(at, 0o755)
        os.chmod(os.path.join(d.dir, "http"), 0o666)     # whoever has done that
        code = ("import os,socket\nos.setgroups([])\nos.setgid(65533)\nos.setuid(65533)\nc=socket.socket(socket.AF_UNIX)\nc.connect(%r)\n"
                "c.sendall(b'GET /status HTTP/1.0\\r\\n\\r\\n')\nprint(c.recv(4096).decode())" % os.path.join(d.dir, "http"))
        out = subprocess.run(["/usr/bin/python3", "-c", code], capture_output=True, text=True)
        check(" 403 " in out.stdout and "owner and group" in out.stdout, out)
    d.stop()


@suite.test("http-reload", "what [http] says is taken by a reload; what cannot be is said, and then nothing is", quick=True)
def reload():
    port, token = free_port(), s.tmpfile(".token")

    def put(text):
        with open(token, "w") as f:
            f.write(text + "\n")
    put(TOKEN)
    base = rule("none") + "[http]\nlisten = 127.0.0.1:%d\n" % port
    d = Daemon(base)

    def bearer(text):
        try:
            return ask(port, "/healthz", headers={"Authorization": "Bearer " + text}).status
        except (OSError, http.client.HTTPException):
            return 0                    # it is cut when another process takes over
    check(ask(port, "/healthz").status == 200, "it does not answer")
    pid = http_process(d)[0]
    d.ctl("reload").ok()
    check(http_process(d)[0] == pid, "it was begun anew for nothing")
    d.write(base + "token-file = %s\nhost = me.example\n" % token)
    d.ctl("reload").ok()
    until("a token is asked for", lambda: bearer("x" * 20) == 401 and bearer(TOKEN) == 200)
    check(ask(port, "/healthz", headers={"Authorization": "Bearer " + TOKEN, "Host": "me.example"}).status == 200, "host")
    check("HTTP is served anew" in d.log() and "ended with" not in d.log(), d.log())
    put("another-" + TOKEN)             # the file alone
    os.kill(d.started.p.pid, 1)
    until("the new token holds", lambda: bearer(TOKEN) == 401 and bearer("another-" + TOKEN) == 200)
    put("short")
    r = d.ctl("reload")
    check(r.status == 1 and "less than 16 characters" in r.err and "stays as it was" in r.err and r.err.count("\n") == 1, r.err)
    check(bearer("another-" + TOKEN) == 200, "the old one is gone")
    put(TOKEN)
    other = free_port()
    for text in (base.replace(str(port), str(other)), rule("none"), base + "enable = no\n", base + "socket = %s/other\n" % d.dir):
        d.write(text)
        r = d.ctl("reload")
        check(r.status == 1 and "enable, socket and listen of [http] cannot be changed by a reload" in r.err and r.err.count("\n") == 1, r.err)
    check(bearer("another-" + TOKEN) == 200, "something of it was taken")
    d.write(base)
    d.ctl("reload").ok()
    until("no token is asked for", lambda: bearer("") == 200)
    d.stop()


@suite.test("http-tls", "off loopback only with token and TLS; what is missing is said; TLS works")
def tls():
    port, token, key, cert = free_port(), s.tmpfile(".token"), s.tmpfile(".key"), s.tmpfile(".cert")
    with open(token, "w") as f:
        f.write(TOKEN)
    s.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert, "-days", "2", "-subj", "/CN=localhost",
           "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]).ok()
    for more, why in (("listen = 0.0.0.0:%d" % port, "off loopback give token-file"), ("listen = 0.0.0.0:%d\ntoken-file = %s" % (port, token),
                      "off loopback give"), ("listen = everywhere", "give an address"), ("certificate = %s" % cert, "given together"),
                      ("listen = 127.0.0.1:%d\ntoken-file = /nothing" % port, "No such file"), ("group = nosuchgroup", "no such group"),
                      ("lisen = x", "did you mean 'listen'")):
        d = Daemon("[http]\n%s\n" % more, start=False)
        r = s.run([s.luasample(), "daemon", "--config", d.path])
        check(r.status == 1 and why in r.err and "Traceback" not in r.err, "%s: %d %s" % (more, r.status, r.err))
    d = Daemon("[http]\nlisten = 0.0.0.0:%d\ntoken-file = %s\ncertificate = %s\nkey = %s\n" % (port, token, cert, key))
    context = ssl.create_default_context(cafile=cert)
    until("it listens", lambda: http_process(d))
    got = ask(port, "/status", headers={"Authorization": "Bearer " + TOKEN}, tls=context).ok()
    check(json.loads(got.text)["pid"] == d.started.p.pid, got.text)
    ask(port, "/status", tls=context).ok(401)
    try:
        plain = ask(port, "/status", headers={"Authorization": "Bearer " + TOKEN}).status
    except (OSError, http.client.HTTPException):
        plain = 0
    check(plain == 0, "it answers without TLS: %d" % plain)
    d.stop()


@suite.test("http-names", "names that processes give themselves are text in pages, headers and metrics; metrics are as their readers want them")
def names():
    hostile = "</td><script>alert(1)</script>\"'\\"
    a = Service("named")
    sleeper = s.Started(["python3", "-c", "import ctypes, time; ctypes.CDLL(None).prctl(15, %r.encode()); time.sleep(1000)" %
                         "<b>\"\\\n'x&", "service.lua %s named" % s.tmpdir()])
    until("it has its name", lambda: open("/proc/%d/comm" % sleeper.p.pid).read().startswith("<b>"))
    d = Daemon(rule("named"))
    d.until_state(a.pid, "recording")
    d.until_state(sleeper.p.pid, "refused")
    page = ask(d, "/").ok().text
    check("<b>\"" not in page and "&lt;b&gt;&quot;" in page, page)
    bad = ask(d, "/flame?service=" + "%3Cscript%3E")
    check(bad.status == 400 and "<" not in bad.text, bad.text)
    check("\n" not in ask(d, "/flame?x%0d%0aSet-Cookie:%20a=1").ok(400).headers.get("Set-Cookie", ""), "a header was made")
    check(ask(d, "/" + hostile.replace("<", "%3C").replace(" ", "%20").replace('"', "%22").replace("\\", "%5C")).ok(404), "")
    text = ask(d, "/metrics").ok().text
    sample = re.compile(r'^luasample_[a-z_]+(\{[a-z]+="([^"\\\n]|\\[\\"n])*"(,[a-z]+="([^"\\\n]|\\[\\"n])*")*\})? [-+.0-9e]+$')
    for line in text.splitlines():
        check(line.startswith("# ") or sample.match(line), "not a metric: %r" % line)
    check("luasample_service_recorded{service=\"named\"} 1" in text and "# EOF" not in text, text)
    om = ask(d, "/metrics", headers={"Accept": "application/openmetrics-text; version=1.0.0"}).ok()
    check(om.text.endswith("# EOF\n") and om.headers["Content-Type"].startswith("application/openmetrics-text"), om.text)
    check("# TYPE luasample_slowed counter" in om.text and "luasample_slowed_total 0" in om.text, om.text)
    if shutil.which("promtool"):
        r = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True)
        check(r.returncode == 0 and not r.stderr, r.stderr + r.stdout)
    sleeper.p.kill()
    d.stop()
    a.end()


@suite.test("http-pprof", "go tool pprof reads a profile over HTTP", quick=True)
def pprof():
    go = shutil.which("go")
    if not go:
        raise s.Skip("no go")
    port = free_port()
    a = Service("gone", share=0.8)
    d = Daemon(rule("gone") + "[http]\nlisten = 127.0.0.1:%d\n" % port)
    d.until_state(a.pid, "recording")
    until("a chunk", lambda: d.chunks("gone"))
    r = s.run([go, "tool", "pprof", "-top", "-seconds", "2", "http://127.0.0.1:%d/debug/pprof/profile?service=gone" % port],
              env=dict(os.environ, PPROF_TMPDIR=d.dir))
    check(r.status == 0 and "Type: cpu" in r.out and re.search(r"%\s+hot$", r.out, re.M), r.out + r.err)
    d.stop()
    a.end()


@suite.test("http-many", "many at one time: each is answered or told to come back; clients that leave take their question along")
def many():
    a = Service("crowd", share=0.5)
    d = Daemon(rule("crowd"))
    d.until_state(a.pid, "recording")
    until("a chunk", lambda: d.chunks("crowd"))
    got, lock = [], threading.Lock()

    def one():
        try:
            status = ask(d, "/flame?service=crowd&last=1m").status
        except (OSError, http.client.HTTPException):
            status = 0
        with lock:
            got.append(status)
    threads = [threading.Thread(target=one) for _ in range(48)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    check(set(got) <= {200, 429} and got.count(200) >= 16, sorted(got))
    for _ in range(10):                 # nobody waits for these
        with socket.socket(socket.AF_UNIX) as c:
            c.connect(os.path.join(d.dir, "http"))
            c.sendall(b"GET /flame?last=1m HTTP/1.1\r\nHost: x\r\n\r\n")
    until("it answers", lambda: ask(d, "/flame?last=1m").status == 200)
    left = until("no child is left", lambda: not [p for p in os.listdir("/proc") if p.isdigit() and is_apart(p, d.started.p.pid)])
    check(left, "children are left")
    d.stop()
    a.end()


class Drips:
    """Clients that send a request byte by byte, and never its end."""
    def __init__(self, make, n):
        self.socks, self.stop = [make() for _ in range(n)], threading.Event()
        self.began, self.ended = time.monotonic(), {}
        self.thread = threading.Thread(target=self.drip, daemon=True)
        self.thread.start()

    def drip(self):
        while not self.stop.wait(0.5):
            for k, c in enumerate(self.socks):
                try:
                    if k not in self.ended:
                        c.send(b"G")
                        if c.recv(1, socket.MSG_DONTWAIT) == b"":
                            raise OSError
                except BlockingIOError:
                    pass
                except OSError:
                    self.ended.setdefault(k, time.monotonic() - self.began)

    def end(self):
        self.stop.set()
        self.thread.join()
        for c in self.socks:
            c.close()


@suite.test("http-slow", "clients that send for ever, or wait for minutes, hold no place: others are answered, a request has 30 s to come")
def slow():
    port = free_port()
    d = Daemon(rule("none") + "[http]\nlisten = 127.0.0.1:%d\n" % port)

    def unix():
        c = socket.socket(socket.AF_UNIX)
        c.connect(os.path.join(d.dir, "http"))
        return c
    for at, make in ((d, unix), (port, lambda: socket.create_connection(("127.0.0.1", port)))):
        many = Drips(make, 90)
        for _ in range(20):
            ask(at, "/healthz").ok()
        until("the slowest give way", lambda: len(many.ended) >= 20)    # each sees it when it sends again
        check(sorted(many.ended.values())[19] < 25, "they are closed by time alone: %s" % many.ended)
        many.end()
    few = Drips(unix, 2)
    waits = [unix() for _ in range(40)]
    for c in waits:
        c.sendall(b"GET /flame?seconds=120 HTTP/1.1\r\nHost: x\r\n\r\n")
    for _ in range(5):
        ask(d, "/healthz").ok()
    refused = 0
    for c in waits:
        c.settimeout(0.2)
        try:
            refused += b" 429 " in c.recv(4096)
        except TimeoutError:
            pass
    check(refused == 16, "%d of 40 were told to come back" % refused)
    for c in waits:
        c.close()
    until("a request that does not come is given up", lambda: len(few.ended) == 2)
    few.end()
    check(all(t > 25 for t in few.ended.values()), few.ended)
    pid, _ = http_process(d)
    until("their descriptors are closed", lambda: len(os.listdir("/proc/%d/fd" % pid)) < 20)
    d.stop()


def is_apart(pid, parent):
    try:
        with open("/proc/%s/stat" % pid) as f, open("/proc/%s/cmdline" % pid) as g:
            return int(f.read().rsplit(")", 1)[1].split()[1]) == parent and g.read().startswith("luasample-apart")
    except OSError:
        return False
