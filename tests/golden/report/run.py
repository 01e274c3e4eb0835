#!/usr/bin/python3
"""Golden tests of report, dump and info: run.py LUASAMPLE [--update] [--make MAKE_TRACES] [NAME...]

Each line of the file cases is a run of luasample in this directory. Its stdout, stderr and exit status are compared
with NAME.out. --update writes what it got (the diff is then reviewed); --make writes the input traces anew first."""
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def cases():
    with open(os.path.join(HERE, "cases")) as f:
        for line in f:
            if line.strip() and not line.startswith("#"):
                name, args = line.rstrip("\n").split(": ", 1)
                yield name, args.split(" ")


def clean_env():
    env = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "NO_COLOR", "PAGER", "LUASAMPLE_PAGER")}
    env.update(LC_ALL="C.UTF-8", TZ="UTC", TERM="xterm")
    return env


def run(luasample, args):
    env = clean_env()
    while re.match(r"[A-Z]+=", args[0]):
        key, value = args.pop(0).split("=", 1)
        env[key] = value
    p = subprocess.run([luasample, *args], cwd=HERE, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE, timeout=120)
    text = p.stdout.decode("utf-8", "backslashreplace")
    if text and not text.endswith("\n"):
        text += "\n(no end of line)\n"
    for line in p.stderr.decode("utf-8", "backslashreplace").splitlines():
        text += "stderr: " + line + "\n"
    # A version is not a change of behaviour.
    text = re.sub(r"luasample \d+\.\d+\.\d+", "luasample VERSION", text)
    return text + "status: %d\n" % p.returncode


def main(argv):
    update, names, make = False, [], None
    if len(argv) < 2:
        sys.exit(__doc__)
    luasample, rest = os.path.abspath(argv[1]), argv[2:]
    while rest:
        a = rest.pop(0)
        if a == "--update":
            update = True
        elif a == "--make":
            make = rest.pop(0)
        else:
            names.append(a)
    if make:
        subprocess.run([make, HERE], check=True)
    failed = count = 0
    known = set()
    for name, args in cases():
        known.add(name + ".out")
        if names and name not in names:
            continue
        got = run(luasample, args)
        path = os.path.join(HERE, name + ".out")
        count += 1
        if update:
            with open(path, "w", encoding="utf-8", newline="") as f:
                f.write(got)
            continue
        try:
            with open(path, encoding="utf-8", newline="") as f:
                want = f.read()
        except FileNotFoundError:
            want = "(there is no %s: run.py --update writes it)\n" % path
        if got != want:
            import difflib
            failed += 1
            print("FAIL " + name)
            sys.stdout.writelines(list(difflib.unified_diff(want.splitlines(True), got.splitlines(True), name + ".out", "got"))[:60])
    for extra in sorted(set(f for f in os.listdir(HERE) if f.endswith(".out")) - known):
        failed += 1
        print("FAIL %s belongs to no case" % extra)
    print("%d golden cases of report, %d failed" % (count, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
