"""Coverage compared with luacov's, file by file and line by line, of a program that uses Penlight and of luacheck. Tests of run.py.

Debian has lua-penlight and lua-check (scripts/install-deps test). luacov is looked for where LuaJIT finds it (luarocks install
luacov), or as a copy of its repository in the tests' cache, in the directory luacov."""
import os
import re
import tempfile

import support as s

OWN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs")
PENLIGHT, LUACHECK = "/usr/share/lua/5.1/pl", "/usr/share/lua/5.1/luacheck"
# pretty.read of Penlight takes the program's hook away, which is luacov's, and gives it back later: in between luacov is blind.
BLIND = {"pl/pretty.lua"}


def luacov():
    """Environment in which require finds luacov, and its directory."""
    cache = os.environ.get("LUASAMPLE_TEST_CACHE", os.path.expanduser("~/.cache/luasample-tests"))
    path = os.path.join(cache, "luacov", "src", "?.lua") + ";;"
    lj = s.luajit()
    found = s.run([lj.program, "-e", "print(package.searchpath and package.searchpath('luacov.runner', package.path))"],
                  env=lj.environ({"LUA_PATH": path}))
    if found.status or not found.out.startswith("/"):
        raise s.Skip("no luacov (luarocks install luacov, or its repository in %s)" % os.path.join(cache, "luacov"))
    return {"LUA_PATH": path}, os.path.dirname(os.path.dirname(found.out.strip()))


def read_stats(path):
    """luacov.stats.out: file -> line -> hits, of lines that have some."""
    with open(path, encoding="utf-8", errors="replace") as f:
        lines = f.read().split("\n")
    return {head.split(":", 1)[1]: {n: int(h) for n, h in enumerate(hits.split(), 1) if h != "0"}
            for head, hits in zip(lines[::2], lines[1::2])}


def compare(name, theirs, ours):
    """The kinds of differences that luasample-coverage(1) explains, and no others. Returns how many lines are compared, and how
    many have other hits."""
    with open(name, encoding="utf-8", errors="replace") as f:
        text = f.read().split("\n")
    missed = sorted(set(theirs) - set(ours))
    s.check(not missed, "%s: lines that only luacov has: %s" % (name, missed[:5]))
    if not any(name.endswith(b) for b in BLIND):
        more = sorted(set(ours) - set(theirs))
        s.check(not more, "%s: lines that luacov does not have: %s" % (name, more[:5]))
    other = 0
    for line in theirs:
        if theirs[line] == ours[line]:
            continue
        other += 1
        # The line hook comes again when a call returns into its line.
        s.check(theirs[line] > ours[line] or any(name.endswith(b) for b in BLIND),
                "%s:%d: luacov has %d, not %d" % (name, line, theirs[line], ours[line]))
        s.check(re.search(r"[\w\])]\s*[({\"']", text[line - 1]),
                "%s:%d calls nothing: luacov has %d, not %d" % (name, line, theirs[line],
                                                                ours[line]))
    return len(theirs), other


def both(program, *args):
    env, source = luacov()
    lj, work, trace = s.luajit(), tempfile.mkdtemp(dir=s.tmpdir()), s.tmpfile(".data")
    plain = s.run([lj.program, program, *args], env=lj.environ(), cwd=work)
    r = s.run([lj.program, "-joff", "-lluacov", program, *args], env=lj.environ(env), cwd=work,
              timeout=300)
    s.check((r.status, r.out) == (plain.status, plain.out), "luacov: %d %s" % (r.status, r.err))
    theirs = read_stats(os.path.join(work, "luacov.stats.out"))
    os.unlink(os.path.join(work, "luacov.stats.out"))
    r = s.run([s.luasample(), "record", "-q", "-e", "lines,calls", "-o", trace, "--", lj.program,
               program, *args],
              env=lj.environ(), cwd=work)
    s.check((r.status, r.out) == (plain.status, plain.out), "%d %s" % (r.status, r.err))
    path = os.path.join(work, "luacov.stats.out")
    s.run([s.luasample(), "coverage", "-q", "-i", trace, "--luacov", path]).ok()
    ours = read_stats(path)
    s.check(set(theirs) == set(ours), "files: %s" % sorted(set(theirs) ^ set(ours)))
    sums = [compare(name, theirs[name], ours[name]) for name in sorted(theirs)]
    # Its reporter reads ours.
    s.run([lj.program, os.path.join(source, "bin", "luacov")], env=lj.environ(env), cwd=work,
          timeout=300).ok()
    with open(os.path.join(work, "luacov.report.out"), encoding="utf-8", errors="replace") as f:
        report = f.read()
    s.check(report.count(".lua") >= len(ours), report[-2000:])
    return theirs, ours, sum(a for a, _ in sums), sum(b for _, b in sums)


def add(suite):
    @suite.test("luacov.penlight", "coverage of Penlight against luacov's")
    def penlight():
        if not os.path.isdir(PENLIGHT):
            raise s.Skip("lua-penlight is not installed")
        theirs, ours, lines, other = both(os.path.join(OWN, "penlight.lua"))
        s.check(len(theirs) >= 15 and lines > 1500, "%d files, %d lines" % (len(theirs), lines))
        s.check(0 < other < lines / 10, "%d of %d lines have other hits" % (other, lines))
        name = os.path.join(PENLIGHT, "pretty.lua")
        s.check(set(ours[name]) - set(theirs[name]),
                "luacov is not blind any more: the manual says so")

    @suite.test("luacov.luacheck", "coverage of luacheck against luacov's")
    def luacheck():
        if not os.path.isdir(LUACHECK):
            raise s.Skip("lua-check is not installed")
        theirs, _, lines, other = both("/usr/bin/luacheck", "--no-cache", "-qq", "--no-color",
                                       os.path.join(LUACHECK, "lexer.lua"), os.path.join(LUACHECK,
                                                                                         "parser.lua"))
        s.check(len(theirs) >= 40 and lines > 4000, "%d files, %d lines" % (len(theirs), lines))
        s.check(0 < other < lines / 5, "%d of %d lines have other hits" % (other, lines))

    @suite.test("luacov.control", "a hit that is moved by one is found", True)
    def control():
        name = os.path.join(OWN, "covered.lua")
        for theirs, ours in (({4: 1}, {4: 2}), ({4: 1, 5: 1}, {4: 1}), ({4: 1}, {4: 1, 5: 1}),
                             ({1: 2}, {1: 3})):
            try:
                compare(name, theirs, ours)
            except s.Fail:
                continue
            raise s.Fail("not found: %s %s" % (theirs, ours))
