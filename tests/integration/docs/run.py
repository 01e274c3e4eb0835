#!/usr/bin/python3
"""The documents for users: run.py [--list] [--write] [NAME...]

Runs each command of docs/tour.md and of the docs/for-*.md, in their order, and makes the pictures of README.md. A command is a
line that begins with `    $ `, and ends with status 0, or with that behind `# status`. --write puts what the commands of
docs/tour.md print there in place of what stands there. nginx and Neovim are those of scripts/host-tree. Needs the build
directory in LUASAMPLE_BUILD (default build/)."""
import glob
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(os.path.dirname(HERE), "realhosts"), os.path.dirname(os.path.dirname(HERE))]
import support as s
import nginx
import tree
from support import check

suite = s.Suite("docs")
WRITE = "--write" in sys.argv
if WRITE:
    sys.argv.remove("--write")
PORT = 18097                            # of nginx; those of realhosts may run at the same time
DOCS = os.path.join(s.ROOT, "docs")
GAME = """
local luasample = require "luasample"
local function update(n) local t = {} for i = 1, n do t[i % 50] = { i } end return #t end
local function frame(n) luasample.zone("update", update, n) if n > 3e6 then luasample.mark("slow-frame") end end
for i = 1, 40 do frame(i == 20 and 4e6 or 1e6) end
"""
TESTED = """
local function twice(x) return 2 * x end
local function never(x)
        return x
end
local s = 0
for i = 1, 3e7 do s = s + twice(i) end
assert(twice(2) == 4)
"""


def parts(name):
    """[(text, command)] of a document: what stands before a command with its old output, and the command."""
    with open(os.path.join(DOCS, name), encoding="utf-8") as f:
        lines = f.read().split("\n")
    found, shows = [], False
    for line in lines:
        if line.startswith("    $ "):
            found.append(line)
            shows = True
        elif not (shows and (line.startswith("    ") or line == "")):
            shows = False
            found.append(line)
        elif line == "":
            found.append(line)
    return found


def commands(name):
    return [line[6:] for line in parts(name) if line.startswith("    $ ")]


def wanted(command):
    m = re.search(r"# status (\d+)$", command)
    return int(m.group(1)) if m else 0


def place(name, **files):
    d = os.path.join(s.tmpdir(), name)
    os.mkdir(d)
    for file, text in files.items():
        with open(os.path.join(d, file.replace("_", ".")), "w", encoding="utf-8") as f:
            f.write(text)
    return d


def run_all(name, cwd):
    """Runs them in one shell's directory; [(command, output)]."""
    env = dict(os.environ, PATH=s.build_dir() + ":" + os.environ["PATH"], TOUR=os.path.join(s.ROOT, "examples", "tour"),
               PROGRAMS=os.path.join(s.TESTS, "bench", "programs"), COLUMNS="110")
    done = []
    for command in commands(name):
        out = os.path.join(cwd, ".out")
        with open(out, "wb") as f:                  # a file, not a pipe: what goes on in the background may keep it open
            status = subprocess.run(["bash", "-o", "pipefail", "-c", command], cwd=cwd, env=env, stdin=subprocess.DEVNULL,
                                    stdout=f, stderr=subprocess.STDOUT, timeout=120, check=False).returncode
        with open(out, encoding="utf-8") as f:
            text = f.read()
        # 141: the reader of a pipe has read enough
        check(status == wanted(command) or status == 141 and "| head" in command,
              "%s: %s: status %d: %s" % (name, command, status, text[-800:]))
        done.append((command, text))
    check(done, "%s has no command" % name)
    return done


def write(name, done, cwd):
    lines, left = [], list(done)
    for line in parts(name):
        if line == "" and lines[-1:] == [""]:
            continue
        lines.append(line)
        if line.startswith("    $ "):
            text = left.pop(0)[1].replace(cwd, "/srv/app")
            lines += ["    " + x.rstrip() for x in text.rstrip("\n").split("\n") if text.strip()]
    with open(os.path.join(DOCS, name), "w", encoding="utf-8") as f:
        f.write("\n".join(lines))


@suite.test("tour", "each command of docs/tour.md does what it says")
def tour():
    cwd = place("tour")
    done = run_all("tour.md", cwd)
    said = dict(done)
    for part, want in (("report --annotate=decode_string", "s:find("), ("report --by jit-trace", "trace "), ("-i pack.data", "libz"),
                       ("-i client.data", "wait_for_reply"), ("-i workers.data", "worker"), ("-i alloc.data", "app.lua"), ("diff --event live", "leak.lua:5"),
                       ("-i running.data", "decode"), ("diff --normalize", "skip"), ("--check", "web")):
        check(any(want in text for command, text in said.items() if part in command), "no %s in what %s shows" % (want, part))
    if WRITE:
        write("tour.md", done, cwd)


@suite.test("for-ci", "docs/for-ci.md, of a program with tests")
def for_ci():
    cwd = place("ci", tests_lua=TESTED, bench_lua=TESTED)
    run_all("for-ci.md", cwd)
    with open(cwd + "/coverage.info", encoding="utf-8") as f:
        check("SF:" in f.read(), "no LCOV")
    with open(cwd + "/review.md", encoding="utf-8") as f:
        check("| " in f.read(), "no table")


@suite.test("for-games", "docs/for-games.md, of a program with frames")
def for_games():
    cwd = place("game", game_lua=GAME)
    said = run_all("for-games.md", cwd)
    check("update" in said[1][1] and "update" in said[2][1], said[1][1])
    check(glob.glob(cwd + "/game.data*"), os.listdir(cwd))


def run_in_tree(name, before=()):
    """All of a document's commands in the tree of hosts, in /files, behind others that go on beside them. In a pid namespace of
    its own: --name finds nothing else there, and all of it ends with the last command."""
    script = ["set -e -o pipefail", "cd /files", "PATH=%s:$PATH" % tree.BUILD, "export LC_ALL=C.UTF-8", *before, *commands(name)]
    r = s.run(["unshare", "-p", "-f", "--kill-child", *tree.command("bash", "-c", "\n".join(script))], timeout=180)
    return r.ok().out


@suite.test("for-neovim", "docs/for-neovim.md, in the Neovim of Debian")
def for_neovim():
    tree.file("init.lua", "local t = {} for i = 1, 2e7 do t[i % 100] = tostring(i % 7) end")
    out = run_in_tree("for-neovim.md")
    check("init.lua" in out and "main chunk" in out, out[-600:])
    check(os.path.getsize(tree.outside("/files/nvim.html")) > 50000, "no page")


@suite.test("for-openresty", "docs/for-openresty.md, in nginx with its Lua module under load")
def for_openresty():
    tree.file("nginx_app.lua", nginx.APP)
    tree.file("nginx.conf", nginx.CONF % {"daemon": "off", "port": PORT})
    url = "http://127.0.0.1:%d/" % PORT
    out = run_in_tree("for-openresty.md", [
        "nginx -c /files/nginx.conf &", "for i in $(seq 100); do curl -s %s > /dev/null && break; sleep 0.1; done" % url,
        "wrk -t1 -c8 -d20s %s > wrk.out &" % url])
    check("nginx_app.lua:" in out and "spin" in out, out[-600:])
    check(os.path.getsize(tree.outside("/files/nginx.pb.gz")) > 500, "no pprof")


LEAKS = """
local M, seen = {}, {}
local function remember(id)
        seen[#seen + 1] = { id = id }
end
local function render(id)
        local parts = {}
        for i = 1, 100 do parts[i] = { i, tostring(i + id), {} } end
        return #parts
end
local n = 0
function M.handle()
        n = n + 1
        remember(n)
        ngx.say("ok ", render(n))
end
return M
"""


@suite.test("for-leaks", "docs/for-leaks.md: nginx, of whose handler's memory one part in a hundred stays, under load")
def for_leaks():
    tree.file("nginx_app.lua", LEAKS)
    tree.file("nginx.conf", nginx.CONF % {"daemon": "off", "port": PORT})
    url = "http://127.0.0.1:%d/" % PORT
    out = run_in_tree("for-leaks.md", [
        "nginx -c /files/nginx.conf &", "for i in $(seq 100); do curl -s %s > /dev/null && break; sleep 0.1; done" % url,
        "wrk -t1 -c8 -d40s %s > wrk.out &" % url])
    check(re.search(r"Chance +Line\n +0 B +\S+ \S+ +\+\S+ \S+ +new +\S+ \* +nginx_app.lua:(4|14)\n", out), out)   # traces from before it have their callers' lines
    check(re.search(r"^ .* nginx_app.lua:(4|14)\n +.* table", out, re.M), out)
    check(re.search(r" table +_G\.app\.handle<upvalue .*<value>\n", out), out[-3000:])


@suite.test("lines", "a first success is five commands; README and DESIGN are short, and what they link to is there")
def lengths():
    for path in glob.glob(DOCS + "/for-*.md"):
        n = len(commands(os.path.basename(path)))
        check(n <= 5, "%s has %d commands" % (path, n))
    for name, most in (("README.md", 130), ("DESIGN.md", 250)):
        with open(os.path.join(s.ROOT, name), encoding="utf-8") as f:
            text = f.read()
        check(text.count("\n") <= most, "%s has %d lines, %d are the most" % (name, text.count("\n"), most))
    for path in [*glob.glob(s.ROOT + "/*.md"), *glob.glob(DOCS + "/*.md")]:
        with open(path, encoding="utf-8") as f:
            for link in re.findall(r"\]\((?!http)([^)#]+)", f.read()):
                check(os.path.exists(os.path.join(os.path.dirname(path), link)), "%s links to %s" % (path, link))


@suite.test("pictures", "the pictures of README.md can be made anew, and are small")
def pictures():
    s.need("tmux")
    s.need("chromium")
    out = os.path.join(s.tmpdir(), "pictures")
    s.run([s.ROOT + "/scripts/pictures", out]).ok()
    made, kept = sorted(os.listdir(out)), sorted(os.listdir(DOCS + "/pictures"))
    check(made == kept == ["page.png", "terminal.png"], "made %s, there are %s" % (made, kept))
    for d in (out, DOCS + "/pictures"):
        for name in made:
            with open(os.path.join(d, name), "rb") as f:
                data = f.read()
            check(data[:4] == b"\x89PNG" and 20000 < len(data) < 200000, "%s/%s has %d bytes" % (d, name, len(data)))


if __name__ == "__main__":
    sys.exit(suite.main())
