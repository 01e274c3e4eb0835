#!/usr/bin/python3
"""Chooses the seeds of a fuzz target: choose.py TARGET [DIRECTORY...]. Of its corpus and of the inputs in directories (what
libFuzzer found) those stay that together cover the most edges, one after the other by what they add, the smaller first: they
are called seed-01 and so on, and with what has a name of its own, which stays, they are 20 at most. An input that failed once
is no seed but a regression: give it a name that says what it was. LUASAMPLE_BUILD names the build directory (-Dfuzz=true,
clang)."""
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
MOST = 20


def features(program, directories):
    """{file: set of features}: an edge and how often it was taken, about."""
    with tempfile.TemporaryDirectory() as d:
        control, out = os.path.join(d, "control"), os.path.join(d, "out")
        os.mkdir(out)
        subprocess.run([program, "-merge=1", "-merge_control_file=" + control, out, *directories], check=True,
                       stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with open(control) as f:
            lines = f.read().splitlines()
    files = lines[2:2 + int(lines[0])]
    return {files[int(l.split()[1])]: set(map(int, l.split()[2:])) for l in lines if l.startswith("FT ")}


def chosen(of, always):
    """Files, by what each adds: edges first, then how often they are taken."""
    left, seen, files = dict(of), set(), []
    for file in always:
        seen |= left.pop(file)
    while left and len(always) + len(files) < MOST:
        edges = {f // 8 for f in seen}
        best = max(left, key=lambda x: (len({f // 8 for f in left[x]} - edges), len(left[x] - seen), -os.path.getsize(x)))
        if left[best] <= seen:
            break
        seen |= left.pop(best)
        files.append(best)
    return files


def main():
    target = sys.argv[1]
    program = os.path.join(os.environ.get("LUASAMPLE_BUILD", "build-san"), "tests/fuzz/fuzz_" + target)
    corpus = os.path.join(HERE, "corpus_" + target)
    of = features(program, [corpus, *sys.argv[2:]])
    always = [x for x in of if os.path.dirname(x) == corpus and not is_seed(os.path.basename(x))]
    files = chosen(of, always)
    with tempfile.TemporaryDirectory() as d:
        for i, file in enumerate(files):
            shutil.copyfile(file, os.path.join(d, "seed-%02d" % (i + 1)))
        for name in os.listdir(corpus):
            if is_seed(name):
                os.remove(os.path.join(corpus, name))
        shutil.copytree(d, corpus, dirs_exist_ok=True)
    print("%s: %d seeds and %d with names, of %d inputs" % (target, len(files), len(always), len(of)))


def is_seed(name):
    """Not so what has a name that says what it is."""
    return name.startswith("seed-") or len(name) == 40 and set(name) <= set("0123456789abcdef")


if __name__ == "__main__":
    main()
