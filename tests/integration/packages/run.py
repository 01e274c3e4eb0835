#!/usr/bin/python3
"""What is installed, and from what: run.py [--list] [--long] [NAME...]

Without --long: what `meson install` puts where, and the rock. --long, some ten minutes on two cores: the Debian package of
scripts/deb in a new tree (scripts/base-tree; root), the tarball of `meson dist` built and tested, and what scripts/new makes. Needs the build
directory in LUASAMPLE_BUILD (default build/)."""
import glob
import os
import re
import shutil
import subprocess
import sys
import tarfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(os.path.dirname(HERE))]
import support as s
from support import check

suite = s.Suite("packages")
LONG = "--long" in sys.argv
if LONG:
    sys.argv.remove("--long")
# Each kind of file that an installation has, below its prefix.
INSTALLED = ["bin/luasample", "lib/*/luasample/libsample.so", "include/luasample.h", "lib/*/pkgconfig/luasample.pc",
             "share/lua/5.1/luasample.lua", "share/lua/5.1/luasample/iprof.lua",
             "share/lua/5.1/luasample/openresty.lua", "lib/systemd/system/luasample.service",
             "lib/systemd/system/luasample.socket", "lib/systemd/system/luasample-http.socket",
             "share/bash-completion/completions/luasample", "share/zsh/*/_luasample", "share/fish/vendor_completions.d/luasample.fish"]
PAGES = sorted(os.path.basename(p)[:-4] for p in glob.glob(os.path.join(s.ROOT, "man", "*.scd")))
# In a new tree: the program, its agent, the units, the pages, the module, and the way out again.
IN_TREE = r"""
set -e
export DEBIAN_FRONTEND=noninteractive
apt-get -q -o Acquire::Retries=3 update
apt-get -q -o Acquire::Retries=3 install -y --no-install-recommends luajit bash-completion /root/*_amd64.deb
luasample --version
cd /root
printf 'local t = {} for i = 1, 2e7 do t[i %% 100] = i end' > app.lua
luasample record -i 1ms -o a.data -- luajit app.lua
luasample report -i a.data --min 0
luasample record -o b.data -- luajit -e 'assert(require "luasample".is_recording())'
luajit -e 'assert(not require "luasample".is_recording()); require "luasample.openresty"; require "luasample.iprof"'
grep ExecStart=/usr/bin/luasample /lib/systemd/system/luasample.service
[ -z "$(ls /etc/systemd/system/*.wants/luasample* 2> /dev/null)" ]
apt-get -q purge -y luasample
! command -v luasample
[ -z "$(find / -xdev -name '*luasample*' ! -path '/root/*' ! -path '/var/lib/dpkg/*' ! -path '/proc/*' ! -path '/sys/*' ! -path '/var/cache/*')" ]
echo all is well
"""


def only_long(*args):
    return suite.test(*args) if LONG else lambda fn: fn


def version():
    with open(os.path.join(s.ROOT, "meson.build"), encoding="utf-8") as f:
        return re.search(r"version: '(.*?)'", f.read()).group(1)


def shown(r, status=0):
    check(r.status == status, "status %d: %s" % (r.status, (r.out + r.err)[-1500:]))
    return r


@suite.test("version", "--version says what was compiled in, and the release is one everywhere")
def version_says():
    r = s.run([s.luasample(), "--version"]).ok()
    lines = dict(re.findall(r"^(\w+): +(.+)$", r.out, re.M))
    check(r.out.startswith("luasample version %s\n" % version()), r.out)
    check(set(lines) == {"agent", "HTTP", "libraries", "compiler"}, r.out)
    needed = s.run(["readelf", "-d", s.luasample()]).ok().out
    check(("microhttpd" in needed) == (not lines["HTTP"].startswith("no")), "HTTP: %s; it needs %s" % (lines["HTTP"], needed))
    for library in ("popt", "zstd", "xxhash", "dw", "capstone", "seccomp", "curl"):
        check(library in lines["libraries"] and "lib%s" % library in needed, "%s: %s" % (library, r.out))
    rocks = glob.glob(os.path.join(s.ROOT, "*.rockspec"))
    check([os.path.basename(p) for p in rocks] == ["luasample-%s-1.rockspec" % version()], rocks)
    with open(os.path.join(s.ROOT, "debian", "changelog"), encoding="utf-8") as f:
        check(f.readline().startswith("luasample (%s)" % version()), "debian/changelog is of another version")


@suite.test("install", "meson install puts the program, agent, pages, units, completions and modules where they are looked for")
def install():
    root = os.path.join(s.tmpdir(), "root")
    shown(s.run(["meson", "install", "-C", s.build_dir(), "--no-rebuild", "--quiet"], env=dict(os.environ, DESTDIR=root)))
    program = glob.glob(root + "/**/bin/luasample", recursive=True)
    check(len(program) == 1, program)
    prefix = os.path.dirname(os.path.dirname(program[0]))
    lacks = [p for p in INSTALLED if not glob.glob(os.path.join(prefix, p))]
    lacks += [p for p in PAGES if not os.path.exists("%s/share/man/man%s/%s" % (prefix, p[-1], p))]
    check(not lacks, "not installed: %s" % lacks)
    with open(prefix + "/lib/systemd/system/luasample.service", encoding="utf-8") as f:
        check("ExecStart=%s/bin/luasample daemon" % prefix[len(root):] in f.read(), "the unit starts another program")
    trace = s.tmpfile(".data")
    s.run([program[0], "record", "-q", "-o", trace, "--", s.luajit().program, "-e", "for i = 1, 1e8 do end"]).ok()
    check(s.info(trace)["samples"] > 0, "the installed program recorded nothing")


@suite.test("rock", "the rock has the modules, and start() finds luasample")
def rock():
    s.need("luarocks")
    tree = os.path.join(s.tmpdir(), "rock")
    cwd = os.path.join(s.tmpdir(), "pack")
    os.mkdir(cwd)
    spec = "luasample-%s-1.rockspec" % version()
    base = ["luarocks", "--lua-version", "5.1"]
    shown(s.run([*base, "make", "--tree", tree + "-made", os.path.join(s.ROOT, spec)], cwd=s.ROOT))
    shown(s.run([*base, "pack", "luasample", "--tree", tree + "-made"], cwd=cwd))
    packed = glob.glob(cwd + "/*.rock")
    check(len(packed) == 1, "luarocks packed %s" % packed)
    shown(s.run([*base, "install", "--tree", tree, packed[0]], cwd=cwd))
    path = "%s/share/lua/5.1/?.lua" % tree
    trace = s.tmpfile(".data")
    lua = ('assert(package.searchpath("luasample", package.path):find(%r, 1, true)); require "luasample.openresty"; require "luasample.iprof"; '
           'local l = require "luasample"; assert(not l.is_recording()); assert(l.start{ output = %r }); '
           'assert(l.is_recording()); for i = 1, 2e8 do end; l.stop()' % (tree, trace))
    shown(s.run([s.luajit().program, "-e", lua], env=dict(os.environ, LUA_PATH=path, LUASAMPLE=s.luasample())))
    check(s.info(trace)["samples"] > 0, "start() of the rock recorded nothing")


@only_long("deb", "the Debian package is clean, and works in a new tree until it is purged")
def deb():
    if os.geteuid() != 0:
        raise s.Skip("only root can install a package in a new tree")
    s.need("dpkg-buildpackage")
    s.need("lintian")
    out = os.path.join(s.tmpdir(), "deb")
    package = shown(s.run([s.ROOT + "/scripts/deb", "--no-install", out], timeout=1800)).out.strip().splitlines()[-1]
    cache = os.environ.get("LUASAMPLE_TEST_CACHE", os.path.expanduser("~/.cache/luasample-tests"))
    base = shown(s.run([s.ROOT + "/scripts/base-tree", cache], timeout=900)).out.strip()
    tree = os.path.join(s.tmpdir(), "tree")
    subprocess.run(["cp", "-a", "--reflink=auto", base, tree], check=True)
    try:
        shutil.copy(package, tree + "/root")
        r = s.run([s.ROOT + "/scripts/in-tree", tree, cache + "/debs", "sh", "-c", IN_TREE], timeout=900)
        check(r.status == 0 and r.out.endswith("all is well\n"), "status %d: %s" % (r.status, (r.out + r.err)[-3000:]))
        check("main chunk" in r.out, "the report in the tree: %s" % r.out[-1500:])
    finally:
        subprocess.run(["rm", "-rf", "--one-file-system", tree], check=False)


@only_long("dist", "the tarball of meson dist builds, and passes the unit tests")
def dist():
    s.need("git")
    clone = os.path.join(s.tmpdir(), "clone")                   # meson writes the tarball into its build directory
    build, source = clone + "/build", os.path.join(s.tmpdir(), "luasample-" + version())
    setup = ["meson", "setup", "-Dtests=enabled", "--werror"]
    shown(s.run(["git", "clone", "-q", s.ROOT, clone]))
    shown(s.run([*setup, build, clone]))
    shown(s.run(["meson", "dist", "-C", build, "--no-tests", "--formats", "xztar"], timeout=600))
    with tarfile.open("%s/meson-dist/%s.tar.xz" % (build, os.path.basename(source))) as t:
        t.extractall(s.tmpdir())
    check(not os.path.exists(source + "/.git"), "the tarball has a .git")
    shown(s.run([*setup, source + "/build", source]))
    shown(s.run(["ninja", "-C", source + "/build", "-j2"], timeout=3000))
    r = shown(s.run(["meson", "test", "-C", source + "/build", "--suite", "unit", "--no-rebuild", "--num-processes", "2"],
                    timeout=3000))
    ok = int(re.search(r"^Ok: +(\d+)", r.out, re.M).group(1))
    ours = s.run(["meson", "test", "-C", os.path.dirname(s.luasample()), "--suite", "unit", "--no-rebuild", "--list"]).ok().out.count("\n")
    check(ok == ours > 50, "%d tests ran, not %d" % (ok, ours))


@only_long("new", "what scripts/new makes builds and works")
def new():
    shown(s.run([s.ROOT + "/tests/check_new.py", "--build"], timeout=1800))


if __name__ == "__main__":
    sys.exit(suite.main())
