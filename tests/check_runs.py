#!/usr/bin/python3
"""Checks what scripts/test makes of its parts: check_runs.py [ROOT]

Runs it in a tree of its own, where meson, ninja, clang, valgrind and all runners are stubs that say what they are told to: sums,
second runs and debts, tests by name, the exit status."""
import os
import shutil
import subprocess
import sys
import tempfile

# A test's name is in FAILS_ONCE or FAILS_ALWAYS when it fails; where a first run was is noted in $STATE.
PASSES = r"""
passes() {
        case " $FAILS_ALWAYS " in *" $1 "*) return 1 ;; esac
        case " $FAILS_ONCE " in *" $1 "*) [ -e "$STATE/$1" ] || { : > "$STATE/$1"; return 1; } ;; esac
}
"""
MESON = "#!/bin/bash" + PASSES + r"""
[ "$1" = test ] || exit 0
names=(unit_a unit_b) chosen=() ok=0 fail=0
case "$*" in *--list*) printf 'p:unit / %s\n' "${names[@]}"; exit ;; esac
for n in "${names[@]}"; do case " ${*:3} " in *" $n "*) chosen+=("$n") ;; esac; done
[ ${#chosen[@]} != 0 ] || chosen=("${names[@]}")
for n in "${chosen[@]}"; do
        if passes "$n"; then ok=$((ok + 1)) how=OK; else fail=$((fail + 1)) how=FAIL; fi
        printf '1/2 p:unit / %s   %s   0.01s\n' "$n" "$how"
done
printf 'Ok:                 %d   \nFail:               %d   \nTimeout:            0   \nSkipped:            0   \n' $ok $fail
[ $fail = 0 ]
"""
RUNNER = r'''#!/usr/bin/python3
import os, re, sys
names = [n for n in sys.argv[1:] if not n.startswith("--")]
but = names.pop(0) if "--but" in sys.argv else "-"
tests = [t for t in TESTS if (not names or any(re.fullmatch(n, x) for n in names for x in t)) and not re.fullmatch(but, t[0])]
if "--list" in sys.argv:
    for name, tag in tests:
        print("%-24s [%s] a title" % (name, tag))
    sys.exit()
bad = 0
for name, _ in tests:
    state = os.path.join(os.environ["STATE"], name)
    fails = name in os.environ["FAILS_ALWAYS"].split() or name in os.environ["FAILS_ONCE"].split() and not os.path.exists(state)
    open(state, "w").close()
    bad += fails
    print("%s %s a title (0.0 s)" % ("FAIL" if fails else "ok  ", name))
print("it: %d passed, %d failed, 0 skipped" % (len(tests) - bad, bad))
sys.exit(bad > 0)
'''
RUNNERS = {"integration/main": [("main.a", "T1"), ("threads.split.cputime", "T2")], "integration/attach": [("attach.a", "T3")],
           "integration/agent": [("agent.a", "T12")], "integration/daemon": [("daemon.a", "T13")],
           "integration/record": [("record.a", "T14")], "integration/other": [("other.a", "T4"), ("other.b", "T5")],
           "truth": [("truth.a", "T6")], "reader": [("reader.a", "T7")], "jit": [("jit.a", "T8")], "exact": [("exact.a", "T11")], "stress": [("stress.a", "T9")], "fuzz": [("fuzz-a", "T10")]}
STEPS = 2 + 2 + 25 + 2                  # gcc's and clang's build, valgrind, the installation
ALL = STEPS + 2 * 2 + sum(map(len, RUNNERS.values()))
# Arguments, tests that fail once, that fail always; the exit status, the last lines, and how many debts.
RUNS = [
    ([], "", "", 0, ["0 debts", "%d passed, 0 failed, 0 skipped" % ALL]),
    ([], "unit_a", "", 0, ["debt: meson test: unit_a passed in its second run only", "1 debts",
                           "%d passed, 0 failed, 0 skipped" % ALL]),
    ([], "threads.split.cputime other.b", "", 0, ["2 debts", "%d passed, 0 failed, 0 skipped" % ALL]),
    ([], "truth.a", "unit_b attach.a", 1, ["failed: meson test (sanitizers): unit_b", "1 debts",
                                           "%d passed, 3 failed, 0 skipped" % (ALL - 3)]),
    ([], "", "fuzz-a", 1, ["failed: clang and fuzz targets: fuzz-a", "0 debts", "%d passed, 1 failed, 0 skipped" % (ALL - 1)]),
    (["--quick"], "", "", 0, ["0 debts", "%d passed, 0 failed, 0 skipped" % (2 + 2 + sum(map(len, RUNNERS.values())) - 1)]),
    (["T5", "unit_.*", "main.a"], "", "", 0, ["4 passed, 0 failed, 0 skipped"]),
    (["other.a"], "other.a", "", 1, ["0 passed, 1 failed, 0 skipped"]),
    (["nosuch", "jit.a"], "", "", 1, ["FAIL nosuch: no test has that name or tag (RUNNER --list shows them)",
                                      "1 passed, 1 failed, 0 skipped"]),
    (["othr.a"], "", "", 1, ["FAIL othr.a: no test has that name or tag; the nearest: other.a", "0 passed, 1 failed, 0 skipped"]),
    (["--nosuch"], "", "", 129, ["usage: scripts/test"]),
]


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        f.write(text)
    os.chmod(path, 0o755)


def make(root, tree):
    shutil.copytree(os.path.join(root, "scripts"), os.path.join(tree, "scripts"))
    for name in ("ninja", "clang", "valgrind", "luajit"):
        write(os.path.join(tree, "bin", name), "#!/bin/sh\n")
    write(os.path.join(tree, "bin/meson"), MESON.replace('[ "$1" = test ] || exit 0', INSTALL))
    for name, tests in RUNNERS.items():
        write(os.path.join(tree, "tests", name, "run.py"), RUNNER.replace("TESTS", repr(tests), 1))
    for build in ("build", "build-san"):
        write(os.path.join(tree, build, "luasample"), "#!/bin/sh\n")


INSTALL = r"""if [ "$1" = install ]; then mkdir -p "$DESTDIR" && cp build/luasample "$DESTDIR"; exit; fi
[ "$1" = test ] || exit 0"""


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    wrong = 0
    for args, once, always, status, last in RUNS:
        with tempfile.TemporaryDirectory() as d:
            os.chmod(d, 0o755)          # nobody runs its valgrind
            make(root, d)
            os.mkdir(os.path.join(d, "state"))
            env = {k: v for k, v in os.environ.items() if k != "LUASAMPLE_BUILD"}
            env.update(PATH=os.path.join(d, "bin") + ":" + os.environ["PATH"], STATE=os.path.join(d, "state"), FAILS_ONCE=once,
                       FAILS_ALWAYS=always)
            p = subprocess.run(["bash", os.path.join(d, "scripts/test"), *(args or ["--no-install"])], env=env, timeout=120,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8")
            missing = [line for line in last if line not in p.stdout]
            if p.returncode != status or missing:
                print("%s, once %r, always %r: status %d, should be %d; not said: %s\n%s" % (
                    args, once, always, p.returncode, status, missing, p.stdout[-3000:]))
                wrong += 1
    print("%d runs, %d wrong" % (len(RUNS), wrong))
    return 1 if wrong else 0


sys.exit(main())
