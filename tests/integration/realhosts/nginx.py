"""nginx with its Lua module and two workers under load, recorded from its start and by attach. Imported by run.py."""
import os
import re
import signal
import socket
import time

import support as s
import tree
from support import check

PORT = 18098
CONF = """
load_module modules/ndk_http_module.so;
load_module modules/ngx_http_lua_module.so;
daemon %(daemon)s; worker_processes 2; user www-data;
pid /files/nginx.pid; error_log /files/nginx.err notice;
events { worker_connections 256; }
http {
        access_log off;
        lua_package_path "/files/?.lua;;";
        init_by_lua_block { app = require "nginx_app" }
        server { listen 127.0.0.1:%(port)d; location / { content_by_lua_block { app.handle() } } }
}
"""
APP = """
local M = {}
local function spin(n) local x = 0 for i = 1, n do x = (x * 31 + i) % 1000003 end return x end
local function heavy_route(n) local x = spin(7 * n) return x end
local function light_route(n) local x = spin(3 * n) return x end
function M.handle()
        local a = heavy_route(3000)
        local b = light_route(3000)
        ngx.say("ok ", a + b)
end
return M
"""


def lines(pattern, text):
    return [l for l in text.splitlines() if re.search(pattern, l)]


def requests(seconds, threads=1, connections=8, port=PORT):
    """Loads the server. The number of answers; none may fail."""
    r = tree.plain("wrk", "-t%d" % threads, "-c%d" % connections, "-d%ds" % seconds, "http://127.0.0.1:%d/" % port,
                   timeout=seconds + 60).ok()
    check(not lines("Non-2xx|Socket errors", r.out), "requests failed: %s" % r.out[-400:])
    return int(re.search(r"(\d+) requests in", r.out).group(1))


def wait_up(server, timeout=30, port=PORT):
    end = time.monotonic() + timeout
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            check(server is None or server.p.poll() is None, "nginx ended: %s" % (server and server.read(server.err)[-400:]))
            check(time.monotonic() < end, "nginx does not listen")
            time.sleep(0.05)


def master():
    with open(tree.outside("/files/nginx.pid")) as f:
        return int(f.read())


def workers(pid):
    with open("/proc/%d/task/%d/children" % (pid, pid)) as f:
        return sorted(int(x) for x in f.read().split())


def wait_for_other_workers(pid, before):
    """Until two workers run, and none of those before: one that is told to end closes its connections."""
    end = time.monotonic() + 30
    while len(workers(pid)) != 2 or set(workers(pid)) & set(before):
        check(time.monotonic() < end, "no new workers: %s, before %s" % (workers(pid), before))
        time.sleep(0.05)


def files(daemon="off"):
    tree.file("nginx_app.lua", APP)
    for name in ("nginx.pid", "nginx.err"):
        if os.path.exists(tree.outside("/files/" + name)):
            os.remove(tree.outside("/files/" + name))
    os.chmod(s.tmpdir(), 0o755)         # workers run as another user
    return tree.file("nginx.conf", CONF % {"daemon": daemon, "port": PORT})


def shares(r):
    rows = r.rows("--by", "function")
    # by place: attach finds no names of functions that have run compiled only
    heavy, light = (s.share(rows, "total", source=lambda n: s.basename(n) == "nginx_app.lua", line_defined=l) for l in (4, 5))
    check(heavy + light > 25, "the routes have %.1f and %.1f %%: %s" % (
        heavy, light, [(x["function"], round(100 * x["self"], 1)) for x in rows[:8]]))
    s.check_near("heavy_route's part of both", 100 * heavy / (heavy + light), 70, 10)
    return [x for x in r.rows("--by", "process") if x["self_ticks"] > 30]


def error_log():
    with open(tree.outside("/files/nginx.err"), errors="replace") as f:
        return f.read()


def add_to(suite):
    t = suite.test

    @t("nginx.launch", "nginx from its start: two workers, a reload, a worker that crashes; no request fails")
    def launch():
        conf, trace = files(), tree.WORK + "/nginx.data"
        server = tree.start(tree.BUILD + "/luasample", "record", "-o", trace, "--", "nginx", "-c", conf)
        try:
            wait_up(server)
            pid = master()
            wait_for_other_workers(pid, [])
            first = workers(pid)
            done = requests(2)
            os.kill(pid, signal.SIGHUP)         # reload: new workers, the old ones end
            wait_for_other_workers(pid, first)
            done += requests(1)
            second = workers(pid)
            os.kill(second[-1], signal.SIGSEGV) # a crash: the master starts another
            wait_for_other_workers(pid, first + second[-1:])
            done += requests(1)
            os.kill(pid, signal.SIGQUIT)
            check(server.wait() == 0, "status %s; %s" % (server.p.returncode, server.read(server.err)[-400:]))
        finally:
            if server.p.poll() is None:
                server.p.terminate()
                server.wait()
        log = error_log()
        check(len(lines(r"exited on signal 11", log)) == 1 and not lines(r"exited on signal (?!11)|\[(alert|emerg|crit)\](?!.*signal 11)", log),
              "nginx's log: %s" % log[-600:])
        r = s.Run(0, "", server.read(server.err), tree.outside(trace))
        seen = shares(r)                # one worker may have got all connections
        check(len(seen) >= 3, "workers of before and after the reload and the crash are not all there: %s" % seen)
        i = r.info()
        lost = sum(n for k, n in i["lost"].items() if k in ("ring-full", "no-safe-point", "bad-stack", "abandoned"))
        check(lost <= 0.02 * i["ticks"] + 20, "lost %d of %d ticks: %s" % (lost, i["ticks"], i["lost"]))
        check(done > 1000, "only %d requests" % done)

    @t("nginx.attach", "attach to both workers under load; no request fails, and they are as before")
    def attach():
        server = tree.start("nginx", "-c", files())
        try:
            wait_up(server)
            pid = master()
            wait_for_other_workers(pid, [])
            ws = workers(pid)
            requests(1)                         # a first use opens what stays open
            before = [state(w) for w in ws]
            load = tree.start("wrk", "-t1", "-c8", "-d6s", "http://127.0.0.1:%d/" % PORT)
            trace = tree.WORK + "/attach.data"
            r = tree.plain(tree.BUILD + "/luasample", "record", "-p", ",".join(map(str, ws)), "-d", "2s", "-o", trace, timeout=60).ok()
            check(workers(pid) == ws, "workers %s, now %s" % (ws, workers(pid)))
            check(load.wait() == 0, "wrk: %s" % load.read(load.err))
            out = load.read(load.out)
            check(not lines("Non-2xx|Socket errors", out), "requests failed: %s" % out[-400:])
            end = time.monotonic() + 10         # for the last connections to be closed
            while not all(as_before(state(w), b) for w, b in zip(ws, before)):
                check(time.monotonic() < end, "workers changed: %s, before %s" % ([state(w) for w in ws], before))
                time.sleep(0.1)
            r.trace = tree.outside(trace)
            shares(r)
            os.kill(pid, signal.SIGQUIT)
            check(server.wait() == 0, "nginx ended with %s" % server.p.returncode)
            check(not lines(r"exited on signal|\[(alert|emerg|crit)\]", error_log()), "nginx's log: %s" % error_log()[-600:])
        finally:
            if server.p.poll() is None:
                server.p.terminate()
                server.wait()


def as_before(now, before):
    return now[0] == before[0] and now[1] <= before[1]         # connections come and go


def state(pid):
    """What an attach must leave as it was."""
    with open("/proc/%d/status" % pid) as f:
        status = dict(l.rstrip("\n").split(":\t", 1) for l in f if ":\t" in l)
    # bits of signals 32 and 33: the C library's own handlers, which its first thread leaves behind
    status["SigCgt"] = "%016x" % (int(status["SigCgt"], 16) & ~(3 << 31))
    return {k: status[k] for k in ("SigBlk", "SigIgn", "SigCgt", "Threads", "TracerPid")}, len(os.listdir("/proc/%d/fd" % pid))
