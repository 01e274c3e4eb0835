"""The tree of real hosts that scripts/host-tree makes, and running commands inside it. Imported by the tests here.

A command runs in a mount namespace of its own: /proc and /dev are there, the build directory is /opt/luasample, the test's
files are /files. What is mounted goes with the command."""
import os
import subprocess

import support as s

BUILD, WORK = "/opt/luasample", "/files"
ENTER = r"""
set -e
mount -t proc proc "$1/proc"
mount --rbind /dev "$1/dev"
mkdir -p "$1%s" "$1%s"
mount --bind "$2" "$1%s"
mount --bind "$3" "$1%s"
tree=$1
shift 3
exec chroot "$tree" "$@"
""" % (BUILD, WORK, BUILD, WORK)


def path():
    cache = os.environ.get("LUASAMPLE_TEST_CACHE", os.path.expanduser("~/.cache/luasample-tests"))
    tree = os.path.join(cache, "hosts")
    if not os.path.exists(os.path.join(tree, "made")):
        raise s.Skip("no tree of hosts (scripts/host-tree makes it)")
    if os.geteuid() != 0:
        raise s.Skip("only root can run commands in the tree of hosts")
    return tree


def command(*cmd):
    """The command that runs cmd inside the tree."""
    return ["unshare", "-m", "sh", "-c", ENTER, "sh", path(), s.build_dir(), s.tmpdir(), *cmd]


def file(name, text):
    """A file of the test: its path inside the tree."""
    with open(os.path.join(s.tmpdir(), name), "w") as f:
        f.write(text)
    return WORK + "/" + name


def outside(inside):
    """The path on this machine of a file in /files."""
    return os.path.join(s.tmpdir(), os.path.relpath(inside, WORK))


def record(name, *cmd, opts=(), **kw):
    """Records a command inside the tree; the trace is read outside."""
    trace = WORK + "/" + name + ".data"
    r = s.run(command(BUILD + "/luasample", "record", "-o", trace, *opts, "--", *cmd), **kw)
    r.trace = outside(trace)
    return r


def plain(*cmd, **kw):
    return s.run(command(*cmd), **kw)


def start(*cmd):
    return s.Started(command(*cmd))


def version(package):
    r = s.run(["chroot", path(), "dpkg-query", "-W", "-f", "${Version}", package])
    return r.out if r.status == 0 else "?"
