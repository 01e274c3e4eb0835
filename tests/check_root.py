#!/usr/bin/python3
"""Checks what lies in the root of the source tree, and .gitignore: check_root.py LUASAMPLE [ROOT]

The list below is all that may lie there; what git ignores may, too. What luasample writes by default or by suffix is ignored,
and no file that is tracked is."""
import os
import subprocess
import sys

ALLOWED = {
    ".ci", ".clang-format", ".editorconfig", ".github", ".gitignore", ".pre-commit-config.yaml", "CHANGELOG.md", "CONTRIBUTING.md", "DESIGN.md", "LICENSE", "README.md", "cli", "daemon", "debian", "docs", "examples", "formats",
    "libsample", "luasample-0.1.0-1.rockspec", "luasample.c", "man", "meson.build", "meson_options.txt", "push", "record", "report", "scripts", "store", "tests",
}
WRITTEN = ["luasample.data", "luasample.data.old", "luasample.data.1", "b.data.old", "callgrind.out.app"]


def git(root, *args, input=None):
    """Output of a git command, as names; None where there is no git or no repository."""
    try:
        p = subprocess.run(["git", "-C", root, *args, "-z"], input=input, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                           encoding="utf-8", errors="surrogateescape")
    except FileNotFoundError:
        return None
    return None if p.returncode > 1 else [n for n in p.stdout.split("\0") if n]


def check_ignored(root, luasample):
    """What is tracked although ignored, and what luasample writes that is not ignored."""
    tracked = git(root, "ls-files", "--cached", "--ignored", "--exclude-standard")
    listed = subprocess.run([luasample, "export", "--list"], check=True, stdout=subprocess.PIPE, encoding="utf-8").stdout
    names = WRITTEN + ["x" + line.split()[1] for line in listed.splitlines() if line.split()[0] != "csv"]
    ignored = git(root, "check-ignore", "--no-index", "--stdin", input="\0".join(names))
    return (["%s is tracked, and .gitignore has it" % n for n in tracked] +
            [".gitignore lacks %s, which luasample writes" % n for n in names if n not in ignored])


def main():
    luasample = sys.argv[1]
    root = sys.argv[2] if len(sys.argv) > 2 else os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    wrong = []
    files = git(root, "ls-files", "--cached", "--others", "--exclude-standard")
    if files is None:
        print("no git repository: .gitignore is not checked")
        names = set(os.listdir(root)) - {".git", "subprojects", "__pycache__"}
        names = {n for n in names if not n.startswith("build")}
    else:
        names = {n.split("/")[0] for n in files if os.path.lexists(os.path.join(root, n))}
        wrong = check_ignored(root, luasample)
    wrong += ["%s does not belong into the root" % n for n in sorted(names - ALLOWED)]
    wrong += ["%s is not in the root" % n for n in sorted(ALLOWED - names)]
    for line in wrong:
        print(line)
    print("%d names in the root, %d wrong" % (len(names), len(wrong)))
    return 1 if wrong else 0


sys.exit(main())
