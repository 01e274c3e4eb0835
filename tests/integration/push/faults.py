"""Stores that fail: each error is one line, the status says whether it may succeed later, and nothing is lost."""
import os
import shutil
import socket
import ssl
import tempfile
import time

import support as s
from fake import Store
from shared import check, push, small, suite

LATER = 75
REFUSED = 76


def failed(r, status, *words):
    check(r.status == status, "status %d, expected %d: %s" % (r.status, status, r.err))
    check(len(r.err.splitlines()) == 1 and r.err.startswith("luasample: push: "), r.err)
    for word in words:
        check(word in r.err, "no %r in: %s" % (word, r.err))


@suite.test("refused", "nobody listens; a host that is not there", quick=True)
def _():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        failed(push(small(), "parca:http://127.0.0.1:%d" % free.getsockname()[1], "--retries", "0"), LATER)
    failed(push(small(), "parca:http://no.such.host.invalid", "--retries", "0"), LATER, "no.such.host.invalid")


@suite.test("statuses", "429, 500, 400 and 404; what the store says is shown, and its escapes are not obeyed", quick=True)
def _():
    for status, end in (429, LATER), (500, LATER), (503, LATER), (400, REFUSED), (401, REFUSED), (404, REFUSED), (501, REFUSED), (302, REFUSED):
        with Store(usual=(status, {"Location": "http://127.0.0.1:1/"}, b"too \x1b[31mold\nsecret")) as st:
            r = push(small(), "pyroscope:" + st.url, "--retries", "0")
        failed(r, end, "it answers %d: too \\x1b[31mold" % status)
        check("secret" not in r.err and len(st.requests) == 1, r.err)


@suite.test("retry", "after 429 it waits as long as it is told, and sends the same again")
def _():
    with Store((429, {"Retry-After": "1"}, b""), (500, {}, b"")) as st:
        begin = time.monotonic()
        push(small(), "pyroscope:" + st.url).ok()
        took = time.monotonic() - begin
    check(len(st.requests) == 3 and len({body for _, _, body in st.requests}) == 1, "%d requests" % len(st.requests))
    check(took >= 1.5, "%.2f s: it has not waited" % took)
    with Store((429, {"Retry-After": "3600"}, b"")) as st:      # so long nobody waits
        r = push(small(), "pyroscope:" + st.url, "--porcelain")
    failed(r, LATER, "it answers 429")
    check(r.out == "sent 0\nretry-after-ms 3600000\n", r.out)


@suite.test("cut", "an answer that is cut, or never comes, is no success; the repeat is the same request")
def _():
    for answer in "cut", "close":
        with Store(answer) as st:
            push(small(), "pyroscope:" + st.url).ok()
        check(len(st.requests) == 2 and st.requests[0][2] == st.requests[1][2], "%s: %d" % (answer, len(st.requests)))
    with Store(usual="slow") as st:
        failed(push(small(), "pyroscope:" + st.url, "--timeout", "200ms", "--retries", "0"), LATER, "imeout")


@suite.test("nonsense", "a URL behind which is something else: 200 is no proof", quick=True)
def _():
    for sink in "pyroscope", "parca", "clickhouse":
        with Store(usual=(200, {"Content-Type": "text/html"}, b"<html>welcome</html>")) as st:
            failed(push(small(), sink + ":" + st.url), REFUSED)
    with socket.socket() as other:              # no HTTP at all
        other.bind(("127.0.0.1", 0))
        other.listen(1)
        pid = os.fork()
        if not pid:
            c = other.accept()[0]
            c.sendall(b"220 smtp ready\r\n")
            c.close()
            os._exit(0)
        r = push(small(), "parca:http://127.0.0.1:%d" % other.getsockname()[1], "--retries", "0")
        os.waitpid(pid, 0)
    failed(r, REFUSED)


@suite.test("usage", "what is wrong on the command line: one line, status 129", quick=True)
def _():
    t = small()
    for args in ([], ["--to", "http://x"], ["--to", "nosuch:http://x"], ["--to", "parca:ftp://x"], ["--to", "parca:x"],
                 ["--to", "parca:http://user:word@x/"], ["--to", "parca:http://x/?a"], ["--to", "dir:"],
                 ["--to", "parca:http://x", "--series", "a-b=c"], ["--to", "parca:http://x", "--series", "a=1", "--series", "a=2"],
                 ["--to", "parca:http://x", "--series", "service_name=c"], ["--to", "parca:http://x", "--table", "t"],
                 ["--to", "clickhouse:http://x", "--table", "t; drop"], ["--to", "parca:http://x", "--timeout", "0"],
                 ["--to", "parca:http://x", "--auth-file", "/no/such"], ["--to", "parca:http://x", "more"],
                 ["--to", "parca:http://x", "--tenant", "a\nb"]):
        r = s.run([s.luasample(), "push", t, *args])
        failed(r, 129)
        check("user:word" not in r.err, r.err)
    r = s.run([s.luasample(), "push", "/no/such/file", "--to", "parca:http://x"])
    failed(r, 1, "/no/such/file")
    r = s.run([s.luasample(), "push", __file__, "--to", "parca:http://x"])
    failed(r, 1, "faults.py")


@suite.test("auth", "headers of a file go with each request, and it is read by whom it belongs to")
def _():
    auth = s.tmpfile(".auth")
    with open(auth, "w") as f:
        f.write("Authorization: Bearer abc\nX-API-Key: k\n")
    os.chmod(auth, 0o600)
    with Store(usual=(200, {"Content-Type": "application/json"}, b"{}")) as st:
        push(small(), "parca:" + st.url, "--auth-file", auth).ok()
        with open(auth, "a") as f:
            f.write("X: a\r\nEvil: b\n")
        r = push(small(), "parca:" + st.url, "--auth-file", auth)
    check(st.requests[0][1]["Authorization"] == "Bearer abc" and st.requests[0][1]["X-API-Key"] == "k", str(st.requests[0][1]))
    check(r.status == 129 and len(st.requests) == 1, r.err)


def status_while_sending(*command):
    """What the kernel says of a push whose request is on its way."""
    with Store(usual="slow") as st:
        p = s.Started(["sh", "-c", "exec \"$@\" < " + small(), "sh", *(command or [s.luasample()]), "push", "-", "--to",
                       "pyroscope:" + st.url])
        end = time.monotonic() + 20
        while not st.requests:
            check(time.monotonic() < end and p.p.poll() is None, "no request: " + p.read(p.err))
            time.sleep(0.02)
        with open("/proc/%d/status" % p.p.pid) as f:
            status = dict(line.split(":\t", 1) for line in f.read().splitlines() if ":\t" in line)
        p.p.kill()
        p.p.wait()
    return status


@suite.test("rights", "as root it is nobody before it reads the trace, and sends as nobody", quick=True)
def _():
    if os.geteuid() != 0:
        raise s.Skip("not root")
    status = status_while_sending()
    check(status["Uid"].split() == ["65534"] * 4 and status["Gid"].split() == ["65534"] * 4, str(status["Uid"]))
    check(int(status["CapPrm"], 16) == int(status["CapEff"], 16) == 0 and status["NoNewPrivs"].strip() == "1", "rights are left")
    check(status["Groups"].strip() == "", status["Groups"])


@suite.test("confined", "whoever pushes may make few system calls: names are looked up by a thread, and TLS reads its certificates")
def _():
    status = status_while_sending()
    check(status["Seccomp"].strip() == "2" and status["NoNewPrivs"].strip() == "1", "as this user: %r" % status["Seccomp"])
    if os.geteuid() == 0:
        with tempfile.TemporaryDirectory() as d:        # the build directory may be closed to others
            os.chmod(d, 0o755)
            status = status_while_sending(s.need("setpriv"), "--reuid=65534", "--regid=65534", "--clear-groups",
                                          shutil.copy(s.luasample(), d))
        check(status["Seccomp"].strip() == "2" and status["Uid"].split() == ["65534"] * 4, "as nobody: %r" % status["Seccomp"])
    with Store() as st:
        push(small(), "pyroscope:" + st.url.replace("127.0.0.1", "localhost")).ok()
        check(len(st.requests) == 1, "%d requests" % len(st.requests))
    key, cert = s.tmpfile(".key"), s.tmpfile(".pem")
    s.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert, "-days", "2", "-subj",
           "/CN=localhost"]).ok()
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(cert, key)
    st = Store()
    st.server.socket = tls.wrap_socket(st.server.socket, server_side=True)
    with st:                            # the handshake came as far as the certificate, which nobody has signed
        r = push(small(), "pyroscope:https://localhost:%d" % st.server.server_address[1], "--retries", "0")
    failed(r, REFUSED, "certificate")
