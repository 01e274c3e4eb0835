"""Hosts that run a script and end: each is recorded as a user would, and two functions of the script, 70/30 of its time,
must have their shares. Imported by run.py."""
import os
import re
import signal
import urllib.request

import support as s
import tree
from support import check

WORK_LUA = """
local function heavy_%(host)s() local x = 0 for i = 1, %(n)d * 7 do x = (x * 31 + i) %% 1000003 end return x end
local function light_%(host)s() local x = 0 for i = 1, %(n)d * 3 do x = (x * 31 + i) %% 1000003 end return x end
"""
LOOP = "for r = 1, %d do heavy_%s() light_%s() end\n"


def script(host, rounds=60, end=""):
    return tree.file(host + ".lua", WORK_LUA % {"host": host, "n": 100000} + LOOP % (rounds, host, host) + end)


def shares(r, host, tolerance=6):
    """The two functions have 70/30 of what both have, by name, and most of all there is."""
    rows = r.rows("--by", "function")
    heavy, light = (s.share(rows, "total", function="%s_%s" % (w, host)) for w in ("heavy", "light"))
    check(heavy + light > 60, "the script's functions have only %.1f and %.1f %%: %s" % (
        heavy, light, [(x["function"], round(100 * x["self"], 1)) for x in rows[:8]]))
    s.check_near("heavy_%s's part of both" % host, 100 * heavy / (heavy + light), 70, tolerance)


def summary(r, samples=100):
    """What record said: some samples, and no warning but those that are expected."""
    m = re.search(r"\[ luasample: (\d+) samples", r.err)
    check(m and int(m.group(1)) >= samples, "record says %r" % r.err[-500:])


def warnings(r):
    return [l for l in r.err.splitlines() if l.startswith("luasample: warning")]


OPENRESTY_WORK = """
local o = require "luasample.openresty"
local function work(ms)
        local x, e = 0, os.clock() + ms / 1000
        repeat for i = 1, 1000 do x = x + i % 7 end until os.clock() >= e
end
local function route() return ngx.var.uri:match "%w+" end
local auth = o.plugin("auth", { access = function() work(1) end }, route)
return {
        access = function() return auth:access() end,
        content = o.phase("content", route, function() work(2) ngx.sleep(0.001) ngx.say(route()) end),
        log = o.phase("log", route, function() work(1) end),
        timer = o.timer("sync", function(premature) if not premature then work(100) end end),
}
"""
OPENRESTY_CONF = """
load_module /usr/lib/nginx/modules/ndk_http_module.so;
load_module /usr/lib/nginx/modules/ngx_http_lua_module.so;
worker_processes 1;
error_log stderr warn;
pid openresty.pid;
events { worker_connections 256; }
http {
        access_log off;
        lua_package_path "$prefix/?.lua;;";
        init_worker_by_lua_block { ngx.timer.at(0, require("work").timer) }
        server {
                listen 127.0.0.1:18096;
                location / {
                        access_by_lua_block { require("work").access() }
                        content_by_lua_block { require("work").content() }
                        log_by_lua_block { require("work").log() }
                }
        }
}
"""


def add_to(suite):
    t = suite.test

    @t("neovim", "neovim, headless: a plugin's functions")
    def neovim():
        r = tree.record("neovim", "nvim", "--headless", "-u", "NONE", "-n", "-c", "luafile " +
                        script("neovim", end='vim.api.nvim_out_write("nvim done\\n")\n'), "-c", "qa!").ok()
        check("nvim done" in r.err, "neovim said %r" % r.err[:300])
        summary(r)
        check(not warnings(r), "record warns: %s" % warnings(r))
        shares(r, "neovim")

    @t("sysbench", "sysbench: 4 threads, a VM each")
    def sysbench():
        lua = tree.file("sysbench.lua", (WORK_LUA % {"host": "sysbench", "n": 10000}) +
                        "function event() heavy_sysbench() light_sysbench() end\n")
        r = tree.record("sysbench", "sysbench", "--threads=4", "--time=0", "--events=1500", lua, "run").ok()
        check(re.search(r"total number of events: +1500\b", r.out), "sysbench printed %r" % r.out[-400:])
        summary(r)
        shares(r, "sysbench")
        by_vm = [x for x in r.rows("--by", "vm") if x["self_ticks"] > 10]
        by_thread = [x for x in r.rows("--by", "thread") if x["self_ticks"] > 10]
        check(len(by_vm) >= 4 and len(by_thread) >= 4, "VMs %s, threads %s" % (by_vm, by_thread))

    @t("knot-resolver", "knot-resolver: the functions of its configuration")
    def knot():
        r = tree.record("kresd", "sh", "-c", 'mkdir -p /files/kr && exec kresd -n -c "$0" /files/kr',
                        script("kresd", end='print("kresd done")\nquit()\n')).ok()
        check("kresd done" in r.out + r.err, "kresd printed %r %r" % (r.out[-200:], r.err[-200:]))
        summary(r)
        shares(r, "kresd")

    @t("rspamd", "rspamd's Lua, by rspamadm")
    def rspamd():
        r = tree.record("rspamd", "rspamadm", "lua", "-b", script("rspamd", end='print("rspamd done")\n')).ok()
        check("rspamd done" in r.out, "rspamadm printed %r" % r.out[-300:])
        summary(r)
        shares(r, "rspamd")

    @t("tarantool", "tarantool: static, without GC64: through LuaJIT's API")
    def tarantool():
        r = tree.record("tarantool", "tarantool", script("tarantool", end='print("tarantool done")\nos.exit(0)\n')).ok()
        check("tarantool done" in r.out, "tarantool printed %r" % r.out[-300:])
        summary(r)
        check(len(warnings(r)) == 1 and "engine hook" in warnings(r)[0], "the fallback is not said, once: %s" % warnings(r))
        shares(r, "tarantool")

    @t("wrk", "wrk: its script, while it loads a server")
    def wrk():
        server = tree.start("nginx", "-c", tree.file("wrk-nginx.conf", """
daemon off; master_process off; pid /files/wrk-nginx.pid; error_log /files/wrk-nginx.err; events { worker_connections 64; }
http { access_log off; server { listen unix:/files/wrk.sock; listen 127.0.0.1:18097; location / { return 200 "ok"; } } }
"""))
        try:
            lua = tree.file("wrk.lua", (WORK_LUA % {"host": "wrk", "n": 20000}) +
                            "function request() heavy_wrk() light_wrk() return wrk.format() end\n")
            wait_port(server)
            r = tree.record("wrk", "wrk", "-t2", "-c4", "-d2s", "-s", lua, "http://127.0.0.1:18097/").ok()
            check("Non-2xx" not in r.out and "Socket errors" not in r.out, "wrk printed %r" % r.out)
            summary(r)
            shares(r, "wrk")
            check(len([x for x in r.rows("--by", "thread") if x["self_ticks"] > 10]) >= 2, "wrk's two threads are not seen")
        finally:
            server.p.terminate()
            server.wait()

    @t("nginx-example", "nginx with lua-nginx-module: examples/nginx.conf, zones and labels of requests")
    def nginx_example():
        examples = os.path.join(os.path.dirname(s.TESTS), "examples")
        for name in ("nginx.conf", "app.lua"):
            with open(os.path.join(examples, name)) as f:
                tree.file(name, f.read())
        trace = tree.WORK + "/nginx-example.data"
        server = tree.start(tree.BUILD + "/luasample", "record", "-o", trace, "--", "nginx", "-p", tree.WORK, "-c",
                            tree.WORK + "/nginx.conf", "-g", "daemon off; user root;")
        try:
            wait_port(server, 18098)
            for i in range(120):
                for route, user in (("list", "ann"), ("item", "bob"), ("item", "ann")):
                    with urllib.request.urlopen("http://127.0.0.1:18098/%s?user=%s" % (route, user), timeout=20) as answer:
                        body = answer.read().decode()
                    check(body == route + "\n", "GET /%s gave %r" % (route, body))
            with open(tree.outside(tree.WORK + "/nginx.pid")) as f:
                os.kill(int(f.read()), signal.SIGQUIT)
            status = server.wait()
            check(status == 0, "nginx under record ended with %d: %s" % (status, server.read(server.err)[-500:]))
        finally:
            server.p.terminate()
        rows = s.rows(tree.outside(trace), "--by", "zone,label:user")
        ticks = {(r["zone"], c["label"]): c["self_ticks"] for r in rows for c in r["children"]}
        for zone, user, ms in (("list", "ann", 360), ("item", "bob", 120), ("item", "ann", 120)):
            check(0.7 * ms <= ticks.get((zone, user), 0) <= 1.3 * ms + 10, "/%s of %s: %s; %s; %s" % (
                zone, user, ticks, s.info(tree.outside(trace)), server.read(server.err)[-600:]))
        check(("list", "bob") not in ticks, "bob has asked for no list: %s" % ticks)

    @t("nginx-openresty", "luasample.openresty in nginx: phases, routes, a plugin and a timer as labels")
    def nginx_openresty():
        module = os.path.join(os.path.dirname(s.TESTS), "libsample", "api", "openresty.lua")
        os.makedirs(tree.outside(tree.WORK + "/luasample"), exist_ok=True)
        with open(module) as f:
            tree.file("luasample/openresty.lua", f.read())
        tree.file("work.lua", OPENRESTY_WORK)
        conf, trace = tree.file("openresty.conf", OPENRESTY_CONF), tree.WORK + "/openresty.data"
        server = tree.start(tree.BUILD + "/luasample", "record", "-o", trace, "--", "nginx", "-p", tree.WORK, "-c", conf, "-g",
                            "daemon off; user root;")
        try:
            wait_port(server, 18096)
            for i in range(80):
                for path in "list", "item":
                    with urllib.request.urlopen("http://127.0.0.1:18096/%s" % path, timeout=20) as answer:
                        body = answer.read().decode()
                    check(body == path + "\n", "GET /%s gave %r" % (path, body))
            with open(tree.outside(tree.WORK + "/openresty.pid")) as f:
                os.kill(int(f.read()), signal.SIGQUIT)
            status = server.wait()
            check(status == 0, "nginx under record ended with %d: %s" % (status, server.read(server.err)[-500:]))
        finally:
            server.p.terminate()
        rows = s.rows(tree.outside(trace), "--by", "label:phase,label:%s" % "route")
        ticks = {(r["label"], c["label"]): c["self_ticks"] for r in rows for c in r["children"]}
        for phase, route, ms in (("content", "list", 160), ("content", "item", 160), ("access", "list", 80), ("log", "item", 80)):
            check(0.7 * ms <= ticks.get((phase, route), 0) <= 1.3 * ms + 15, "%s of %s: %s" % (phase, route, ticks))
        for key, value, ms in (("plugin", "auth", 160), ("timer", "sync", 100)):
            got = {r["label"]: r["self_ticks"] for r in s.rows(tree.outside(trace), "--by", "label:" + key)}
            check(0.7 * ms <= got.get(value, 0) <= 1.3 * ms + 15, "%s: %s, %s" % (key, got, ticks))

    for name, package, cmd, other in (("redis", "redis-server", ["redis-server", "--version"], "other than LuaJIT"),
                                      ("haproxy", "haproxy", ["haproxy", "-v"], "other than LuaJIT")):
        @t(name, "%s has a Lua of its own: one clear line, no harm" % name)
        def no_luajit(name=name, cmd=cmd, other=other):
            want = tree.plain(*cmd)
            r = tree.record(name, *cmd).ok(want.status)
            check(r.out == want.out, "it printed %r, without us %r" % (r.out, want.out))
            said = warnings(r)
            check(any(other in w for w in said) and any("no Lua VM was seen" in w for w in said) and len(said) == 2,
                  "record says %r" % r.err)


def wait_port(server, port=18097, timeout=20):
    """Until something listens there."""
    import socket
    import time
    end = time.monotonic() + timeout
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            check(server.p.poll() is None, "the server ended: %s" % server.read(server.err)[-300:])
            check(time.monotonic() < end, "nothing listens on %d" % port)
            time.sleep(0.05)
