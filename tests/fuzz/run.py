#!/usr/bin/python3
"""Looks for new inputs with libFuzzer: run.py [--list] [NAME...]. Each target begins with its corpus and has LUASAMPLE_FUZZ
seconds of CPU time (60), whatever else runs, and the seed LUASAMPLE_FUZZ_SEED (1: the same inputs each time); as many at once
as there are processors. A crash, a leak, a hang or too much memory is a failure, which prints the input. The targets are
those of the build directory (-Dfuzz=true, clang) that LUASAMPLE_BUILD names. Corpora are not written to; CONTRIBUTING.md says
how they are renewed."""
import base64
import glob
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
import support
from support import Fail, check

SECONDS = int(os.environ.get("LUASAMPLE_FUZZ", "60"))
SEED = os.environ.get("LUASAMPLE_FUZZ_SEED", "1")
HANG = 1200                     # seconds that a target may take on a busy machine, beside all others
MORE = {"reader": ["golden/rejected", "golden/traces"]}         # what a target begins with beside its corpus

suite = support.Suite("fuzz")
ahead = support.Ahead(suite, os.cpu_count())


def targets():
    for path in sorted(glob.glob(os.path.join(support.build_dir(), "tests/fuzz/fuzz_*"))):
        name = os.path.basename(path)[len("fuzz_"):]
        if os.path.isfile(path) and not name.startswith("replay_"):
            yield name, path


def corpora(name):
    return [os.path.join(HERE, "corpus_" + name)] + [os.path.join(support.TESTS, d) for d in MORE.get(name, [])]


def fuzz(name, path):
    """(status, stderr, {file: content} of what libFuzzer says is bad)."""
    with tempfile.TemporaryDirectory() as d:
        new, bad = os.path.join(d, "new"), os.path.join(d, "bad")
        os.mkdir(new)
        os.mkdir(bad)
        limit = lambda: resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 5))         # SIGXCPU: the time is over
        p = subprocess.run([path, "-seed=%s" % SEED, "-timeout=25", "-artifact_prefix=%s/" % bad, new, *corpora(name)], preexec_fn=limit,
                           stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=HANG)
        found = {}
        for file in os.listdir(bad):
            with open(os.path.join(bad, file), "rb") as f:
                found[file] = f.read()
        return p.returncode, p.stderr.decode("utf-8", "replace"), found


def last(said):
    """Runs and edges by libFuzzer's last line about how far it is, and edges by its first."""
    m = re.findall(r"^#(\d+)\s.*\bcov: (\d+)", said, re.M)
    return (int(m[-1][0]), int(m[-1][1]), int(m[0][1])) if m else (0, 0, 0)


def add(name, path):
    ahead.add("fuzz-" + name, fuzz, name, path)

    @suite.test("fuzz-" + name, "%d s of CPU time" % SECONDS)
    def test():
        try:
            status, said, found = ahead.result("fuzz-" + name)
        except subprocess.TimeoutExpired:
            raise Fail("no end after %d s" % HANG)
        inputs = "".join("\n%s, %d bytes: base64 -d > tests/fuzz/corpus_%s/NAME <<< %s" % (
            file, len(data), name, base64.b64encode(data).decode()) for file, data in sorted(found.items()))
        runs, edges, seeds = last(said)
        check(status == -signal.SIGXCPU and not found, "status %d: %s%s" % (status, said[-3000:], inputs))
        check(runs > 0, "it has run nothing: " + said[-500:])
        print("     %s: %d edges by the corpus, %d after %d runs" % (name, seeds, edges, runs), flush=True)


for each in targets():
    add(*each)

if __name__ == "__main__":
    sys.exit(suite.main())
