"""Stacks: names, deep recursion, coroutines, large global tables, loaded chunks. Imported by run.py."""
import json
import os
import re

import support as s
from support import check, check_near


def functions(r, *args):
    return {x["function"]: x for x in r.rows("--by", "function", *args)}


def add_to(suite):
    t = suite.test

    @t("stacks.names", "global path, local, method; identity is the definition", True)
    def names():
        r = s.record_lua("names.lua", "-q").ok()
        got = functions(r)
        for name in ("proxy.test.Suite.run", "global_one", "named_local", "inlined"):
            check(name in got, "no %s in %s" % (name, sorted(got)))
        check(any(n.split(".")[-1].split(":")[-1] == "method" for n in got), "no method in %s" % sorted(got))
        check(got["proxy.test.Suite.run"]["line_defined"] == 8, "line_defined %s" % got["proxy.test.Suite.run"]["line_defined"])

    def line_shares(r, source):
        rows = r.rows("--by", "line", "--min", "0")
        return {x["line"]: 100 * x["total"] for x in rows if x["name"].startswith(source + ":")}

    @t("stacks.hook-lines", "the line below a debug hook is the current one, not the first that was seen")
    def hook_lines():
        got = line_shares(s.record_lua("hooklines.lua", "-q", interval="100us").ok(), "hooklines.lua")
        for line in (14, 15, 16, 17, 18):
            check_near("line %d" % line, got.get(line, 0), 20, 3)

    for name in ("debian", "shared", "luajit2"):
        @t("stacks.callback-lines-" + name, "ticks at the call and the return of what C calls back have their line, " + name)
        def callback_lines(name=name):
            lj = s.luajit(name)
            for jit in ("-jon", "-joff"):
                r = s.record([lj.program, jit, os.path.join(s.LUA, "callbacks.lua"), "1"], "-q", env=lj.environ()).ok()
                rows = [x for x in r.rows("--by", "function,line", "--min", "0") if x["function"] in ("before", "after")]
                check(len(rows) == 2, "%s: %s" % (jit, rows))
                for x in rows:
                    without = sum(c["self_ticks"] for c in x["children"] if c["name"].endswith(":?"))
                    check(without <= 0.05 * x["self_ticks"], "%s: %d of %d ticks of %s have no line" % (
                        jit, without, x["self_ticks"], x["function"]))

    @t("stacks.reuse", "functions that follow one another at one address are told apart")
    def reuse():
        got = line_shares(s.record_lua("reuse.lua", "-q", interval="100us").ok(), "(two)")
        check_near("line 1", got.get(1, 0), 50, 4)
        check_near("line 5", got.get(5, 0), 50, 4)

    @t("stacks.globals", "a global table of a million entries stalls nothing for over 1 ms")
    def globals_():
        plain = s.run([s.luajit().program, os.path.join(s.LUA, "globals.lua")]).ok()
        worst = []
        for _ in range(3):                      # a pause of the machine itself is no fault of ours: the best of three
            r = s.record_lua("globals.lua", "-q", interval="250us").ok()
            worst.append(float(re.match(r"max_pause_us ([\d.]+)", r.out).group(1)))
        base = float(re.match(r"max_pause_us ([\d.]+)", plain.out).group(1))
        check(min(worst) < base + 1000, "longest pause %s us, without us %.0f us" % (worst, base))

    for depth in (20, 1000, 10000):
        @t("stacks.depth.%d" % depth, "leaf and root are there, depth is not limited", depth == 1000)
        def deep(depth=depth):
            r = s.record_lua("stacks.lua", "-q", args=[str(depth), "1"]).ok()
            got, i = functions(r), r.info()
            cpu = float(r.out.split()[1])
            check_near("leaf_at_depth", got["leaf_at_depth"]["self"] * 100, 98, 4)
            check_near("main_root in total", got["main_root"]["total"] * 100, 99, 3)
            check_near("down in total, counted once", got["down"]["total"] * 100, 99, 3)
            check_near("ticks", i["ticks"], cpu * 1000, cpu * 20 + 2)
            text = r.text("--format", "collapsed")
            most = max(l.count(";") for l in text.splitlines())
            check(most >= depth, "deepest stack has %d frames" % most)

    @t("stacks.depth-limit", "--depth N keeps leaf and root and counts 'middle cut'")
    def limit():
        r = s.record_lua("stacks.lua", "-q", "--depth", "64", args=["1000", "0.5"]).ok()
        got = functions(r)
        check(got["leaf_at_depth"]["self"] > 0.9, "no leaf: %s" % sorted(got))
        check(got.get("main_root", {}).get("total", 0) > 0.9, "no root: %s" % sorted(got))
        check("[definition lost]" not in got, "functions that nobody named: %s" % sorted(got))
        lost = r.info()["lost"]
        check(lost["definition-lost"] == 0, "lost: %s" % lost)
        check(isinstance(lost, dict) and any("middle" in k and v > 0 for k, v in lost.items()), "lost: %s" % lost)
        for line in r.text("--format", "collapsed").splitlines():
            frames = line.rsplit(" ", 1)[0].split(";")
            check(frames.count("[middle cut]") <= 1 and frames[0] != "[middle cut]", "the cut is not in the middle: " + line[:300])

    @t("stacks.million-coroutines", "a million short coroutines do not grow the trace without bound")
    def coroutines():
        sizes = []
        for n in ("200000", "1000000"):
            r = s.record_lua("coros.lua", "-q", args=[n]).ok()
            check(r.out == "coros done\n", "stdout %r" % r.out)
            sizes.append((os.path.getsize(r.trace), r.info()["samples"]))
        (small, few), (large, many) = sizes
        check(large < 64 * 1024, "%d bytes for %d samples" % (large, many))
        check(functions(r).get("body") or any("body" in f for f in functions(r)), "no body: %s" % sorted(functions(r)))

    @t("stacks.resumer", "who resumed a coroutine: its stack is joined on")
    def resumer():
        r = s.record_lua("zoneyield.lua", "-q", args=["0.6"]).ok()
        text = r.text("--format", "collapsed")
        check(re.search(r"main chunk[^;\n]*;[^\n]*work \d+", text), "main chunk is not above work: " + text[:500])

    @t("stacks.loaded", "main chunk, tail calls and loaded chunks are told apart, the text is in the trace once")
    def loaded():
        r = s.record_lua("mixedsource.lua", "-q").ok()
        sources = {x.get("source") for x in r.rows("--by", "function")}
        check(len(sources) >= 4, "sources: %s" % sources)
        dump = s.run([s.luasample(), "dump", "-i", r.trace]).ok().out
        check(dump.count("x = x + i % 7") >= 1, "the loaded chunk's text is not in the trace")

    @t("stacks.scope", "--scope f and none: no guessed line")
    def scope():
        for scope in ("f", "none"):
            r = s.record_lua("hot3.lua", "-q", "--engine", "hook", "--scope", scope).ok()
            text = r.text("--by", "line", "--min", "0")
            check("hot3.lua:?" in text, "no row without a line with --scope %s: %s" % (scope, text))
            annotated = r.text("--annotate", "--min", "0")
            check("[line not recorded: --scope %s]" % scope in annotated, "--annotate with %s: %s" % (scope, annotated))
            dumped = s.run([s.luasample(), "dump", "-i", r.trace, "--json"]).ok().out
            flags = [json.loads(l.strip().rstrip(","))["flags"] for l in dumped.splitlines() if '"record":"sample"' in l]
            check(flags and not any(f & 16 for f in flags), "rows have the flag that has ended")
            i = r.info()
            check(i["scope"] == scope, "info: scope %s" % i["scope"])
            check_near("ticks", sum(x["self_ticks"] for x in r.rows("--by", "line")), i["ticks"], max(5, i["ticks"] * 0.02))

    @t("stacks.text-limit", "24 MB of loaded texts: 16 MiB at most are in the trace, the excess is counted")
    def text_limit():
        r = s.record_lua("texts.lua").ok()
        check(r.out == "texts done\n", "the program did not run to its end: %r" % r.out)
        i, rows = r.info(), r.rows("--by", "function")
        chunks = [x for x in rows if x["function"].startswith("main chunk@[string") and x["self_ticks"] > 10]
        check(len(chunks) == 41 and i["complete"] is True and i["damage"] == [], "%d chunks, %s" % (len(chunks), i["damage"]))
        check(sum(x["self_ticks"] for x in rows) == i["readable_ticks"], "the rows do not sum to the ticks")
        kept, rest = divmod(i["source_text_bytes"], 600000 - 50)
        check(20 <= kept <= 27 and i["source_text_bytes"] <= 16 << 20, "%d bytes of text" % i["source_text_bytes"])
        check(i["lost"]["text-cut"] == 41 - kept, "text-cut is %d with %d of 41 texts" % (i["lost"]["text-cut"], kept))
        check(re.search(r"note: %d sources whose text" % (41 - kept), r.err), "the summary does not say it: " + r.err)
        check("x = x + i % 7" in r.text("--annotate", "--min", "0"), "no text is shown")
