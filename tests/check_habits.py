#!/usr/bin/python3
"""Checks what those who carry on rely on: check_habits.py [ROOT]

.pre-commit-config.yaml runs checks that are there and can be run, without a build; the template of issues asks for commands
that luasample has; CHANGELOG.md has the release that meson.build builds; each script is in CONTRIBUTING.md."""
import os
import re
import sys


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as f:
        return f.read()


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    wrong = []
    hooks = re.findall(r"^ +entry: (.*)$", read(root, ".pre-commit-config.yaml"), re.M)
    wrong += ["no hook is in .pre-commit-config.yaml"] if not hooks else []
    wrong += ["%s of .pre-commit-config.yaml cannot be run" % h for h in hooks if not os.access(os.path.join(root, h), os.X_OK)]
    listed = read(root, "tests/meson.build")
    wrong += ["%s is a hook and no unit test" % h for h in hooks if "'%s'" % os.path.basename(h) not in listed]
    commands = set(re.findall(r"ls_cmd_(\w+),", read(root, "luasample.c")))
    asked = re.findall(r"^\$ luasample (\S+)", read(root, ".github/ISSUE_TEMPLATE/bug.md"), re.M)
    wrong += ["the template of issues does not ask for luasample %s" % c for c in ("--version", "doctor", "info") if c not in asked]
    wrong += ["the template of issues names luasample %s" % c for c in asked if c not in commands | {"--version"}]
    version = re.search(r"version: '(.*?)'", read(root, "meson.build")).group(1)
    if not re.search(r"^## %s\b" % re.escape(version), read(root, "CHANGELOG.md"), re.M):
        wrong.append("CHANGELOG.md has nothing of %s" % version)
    contributing = read(root, "CONTRIBUTING.md")
    wrong += ["CONTRIBUTING.md does not name scripts/%s" % n for n in sorted(os.listdir(os.path.join(root, "scripts")))
              if n != "__pycache__" and not re.search(r"\b%s\b" % re.escape(n.rsplit(".")[0]), contributing)]
    for line in wrong:
        print(line)
    print("%d hooks, %d wrong" % (len(hooks), len(wrong)))
    return 1 if wrong else 0


sys.exit(main())
