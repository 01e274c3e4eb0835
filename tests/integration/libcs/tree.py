"""The trees that scripts/libc-tree makes, and programs in them. Imported by the tests here.

All of a run is in a mount namespace of its own, with which what is mounted goes. The directory of temporary files has the
same path in a tree; luasample and the agent are copied there, so that the agent's path is good for a program in the tree."""
import os
import shutil
import struct
import subprocess
import sys

import support as s

ENTERED = "LUASAMPLE_TEST_NAMESPACE"


def enter_namespace():
    """Runs the whole again in its own mount namespace."""
    if os.geteuid() == 0 and ENTERED not in os.environ and shutil.which("unshare"):
        os.environ[ENTERED] = "1"
        os.execvp("unshare", ["unshare", "-m", sys.executable, *sys.argv])


_ready = set()


def path(suite):
    """The tree of a Debian, ready to run programs."""
    cache = os.environ.get("LUASAMPLE_TEST_CACHE", os.path.expanduser("~/.cache/luasample-tests"))
    tree = os.path.join(cache, "libc-" + suite)
    if not os.path.exists(os.path.join(tree, "made")):
        raise s.Skip("no tree of %s (scripts/libc-tree %s makes it)" % (suite, suite))
    if ENTERED not in os.environ:
        raise s.Skip("only root can run programs in a tree (and unshare is needed)")
    if suite not in _ready:
        place = os.path.dirname(s.tmpdir())
        os.makedirs(tree + place, exist_ok=True)
        subprocess.run(["mount", "-t", "proc", "proc", tree + "/proc"], check=True)
        subprocess.run(["mount", "--bind", place, tree + place], check=True)
        os.chmod(s.tmpdir(), 0o755)
        _ready.add(suite)
    return tree


def luasample():
    """A copy of luasample, with its agent, that the trees have too."""
    build = os.path.join(s.tmpdir(), "build")
    if not os.path.exists(build):
        os.makedirs(os.path.join(build, "libsample"))
        shutil.copy(s.luasample(), build)
        shutil.copy(os.path.join(s.build_dir(), "libsample", "libsample.so"), os.path.join(build, "libsample"))
    return os.path.join(build, "luasample")


def file(name, text):
    name = os.path.join(s.tmpdir(), name)
    with open(name, "w") as f:
        f.write(text)
    return name


def command(suite, *cmd):
    return ["chroot", path(suite), *cmd]


def luajit(suite, threads=True):
    """The command of a LuaJIT with 64-bit references. Debian 11's has none: there it is that of Debian 12, told to take the
    functions' older versions, and the libraries that glibc was in then."""
    if suite != "bullseye":
        return ["luajit"]
    old = os.path.join(s.tmpdir(), "luajit-old")
    if not os.path.exists(old):
        with open(os.path.join(path("bookworm"), "usr/bin/luajit"), "rb") as f:
            data = with_older_version(f.read(), b"GLIBC_2.34", b"GLIBC_2.2.5")
        with open(old, "wb") as f:
            f.write(data)
        os.chmod(old, 0o755)
    return ["env", "LD_PRELOAD=libdl.so.2" + (" libpthread.so.0" if threads else ""), old]


def elf_hash(name):
    h = 0
    for c in name:
        h = (h << 4) + c
        h = (h ^ ((h & 0xf0000000) >> 24)) & 0x0fffffff
    return h


def with_older_version(data, newer, older):
    """An ELF file that needs a version of its libraries: as if it had been linked when that was another."""
    data = bytearray(data)
    start, = struct.unpack_from("<Q", data, 40)
    count, = struct.unpack_from("<H", data, 60)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, start + 64 * i) for i in range(count)]
    needs = next(x for x in sections if x[1] == 0x6ffffffe)
    strings = sections[needs[6]]
    text = bytes(data[strings[4]:strings[4] + strings[5]])
    to = text.index(b"\0" + older + b"\0") + 1
    at, more, found = needs[4], 1, 0
    while more:
        _, n, _, aux, more = struct.unpack_from("<HHIII", data, at)
        one = at + aux
        for _ in range(n):
            _, flags, number, name, step = struct.unpack_from("<IHHII", data, one)
            if text[name:text.index(b"\0", name)] == newer:
                struct.pack_into("<IHHI", data, one, elf_hash(older), flags, number, to)
                found += 1
            one += step
        at += more
    s.check(found, "the program needs no %s" % newer.decode())
    return bytes(data)
