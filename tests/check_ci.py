#!/usr/bin/python3
"""Checks the sums and the decisions of .ci/run: check_ci.py [ROOT]

Runs it in a repository of its own, where scripts/fresh and scripts/test are stubs that say what they are told to."""
import os
import shutil
import subprocess
import sys
import tempfile

FRESH = """#!/bin/bash
[ "$1" != install ] || echo "4 passed, ${INSTALL_FAILED-0} failed, 0 skipped"
[ "$1" != install ] || exit "${INSTALL-0}"
exit "${DEMO-0}"
"""
TEST = """#!/bin/bash
echo "a runner: 9 passed, 1 failed, 0 skipped"
echo "100 passed, ${TEST_FAILED-0} failed, 2 skipped"
exit "${TEST-0}"
"""
# What is set; the exit status, whether `scripts/fresh install` runs, the last line. In this order: a green run is remembered.
RUNS = [
    ({"TEST": "1", "TEST_FAILED": "3"}, 1, True, "105 passed, 3 failed, 2 skipped"),
    ({"TEST": "1"}, 1, True, "105 passed, 1 failed, 2 skipped"),
    ({"INSTALL": "1", "INSTALL_FAILED": "1"}, 1, True, "105 passed, 1 failed, 2 skipped"),
    ({"DEMO": "77", "INSTALL": "77"}, 0, True, "100 passed, 0 failed, 4 skipped"),
    ({"DEMO": "77", "INSTALL": "77", "CI": "1"}, 1, True, "104 passed, 2 failed, 2 skipped"),
    ({}, 0, True, "105 passed, 0 failed, 2 skipped"),
    ({}, 0, False, "101 passed, 0 failed, 2 skipped"),
    ({"DEMO": "2"}, 1, False, "100 passed, 1 failed, 2 skipped"),
    ({"change": "1"}, 0, True, "105 passed, 0 failed, 2 skipped"),
    ({}, 0, False, "101 passed, 0 failed, 2 skipped"),
]


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        f.write(text)
    os.chmod(path, 0o755)


def commit(repo):
    subprocess.run(["git", "-C", repo, "add", "-A"], check=True)
    subprocess.run(["git", "-C", repo, "-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-qm", "t"], check=True)


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    if not shutil.which("git"):
        print("git is not installed")
        return 77
    wrong = 0
    with tempfile.TemporaryDirectory() as d:
        repo, cache = os.path.join(d, "repo"), os.path.join(d, "cache")
        os.mkdir(cache)
        subprocess.run(["git", "init", "-q", repo], check=True, stderr=subprocess.DEVNULL)
        with open(os.path.join(root, ".ci", "run"), encoding="utf-8") as f:
            write(os.path.join(repo, ".ci", "run"), f.read())
        write(os.path.join(repo, "scripts", "fresh"), FRESH)
        write(os.path.join(repo, "scripts", "test"), TEST)
        commit(repo)
        for env, status, install, last in RUNS:
            if "change" in env:
                write(os.path.join(repo, "scripts", "new"), "")
                commit(repo)
            e = {k: v for k, v in os.environ.items() if k != "CI"}
            p = subprocess.run(["bash", os.path.join(repo, ".ci", "run")], env=dict(e, LUASAMPLE_TEST_CACHE=cache, **env),
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8")
            got = p.returncode, "== scripts/fresh install" in p.stdout, p.stdout.splitlines()[-1]
            if got != (status, install, last):
                print("with %s: %s, should be %s" % (env, got, (status, install, last)))
                wrong += 1
    print("%d runs, %d wrong" % (len(RUNS), wrong))
    return 1 if wrong else 0


sys.exit(main())
