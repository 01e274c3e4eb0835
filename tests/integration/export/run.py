#!/usr/bin/python3
"""Exports, each opened by the tool that it is for: run.py [--quick] [--list] [NAME...]

A module for each format or topic: it adds its tests in add_to(suite). Traces that several share are in shared.py. Needs
the build directory in LUASAMPLE_BUILD (default build/); tools that are missing (scripts/install-deps test and npm) are
skips."""
import importlib
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(os.path.dirname(HERE))]
import support

MODULES = [
    "command",
    "callgrind",
    "pprof",
    "rows",
    "text",
    "speedscope",
    "perf_map",
    "firefox",
    "collector",
    "otlp",
    "bad_input",
    "big",
]

suite = support.Suite("export")
for name in MODULES:
    importlib.import_module(name).add_to(suite)

if __name__ == "__main__":
    sys.exit(suite.main())
