#!/usr/bin/python3
"""Integration tests of the main job, on real LuaJIT runs: run.py [--quick] [--list] [NAME...]

jit_p.py, jit_zone.py and jit_profile.py have a row for each line of what LuaJIT's own profilers do, with its number (JP01 to
PF11) as tag; the other files hold what else recording and reporting promise. Needs the build directory in LUASAMPLE_BUILD
(default build/) and, for all tests, scripts/luajit-trees."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(os.path.dirname(HERE))]
import support
import jit_p
import jit_profile
import jit_zone
import interval
import kinds
import ends
import engine
import unseen
import inputs
import reasons
import stacks
import states
import threads
import traces
import viewers
import views

suite = support.Suite("integration")
for module in (jit_p, jit_zone, jit_profile, interval, kinds, ends, engine, unseen, inputs, reasons, stacks, states, threads,
               traces, viewers, views):
    module.add_to(suite)

if __name__ == "__main__":
    sys.exit(suite.main())
