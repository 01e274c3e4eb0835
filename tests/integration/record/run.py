#!/usr/bin/python3
"""Integration tests of `luasample record` and `luasample doctor` as processes: run.py [--quick] [--list] [NAME...]

What the program, the shell, the terminal and other processes see of record. What a trace says about Lua code is tested
in tests/integration/main and tests/truth. Needs the build directory in LUASAMPLE_BUILD (default build/)."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(os.path.dirname(HERE))]
import support
import launch
import memory
import output
import signals
import terminal
import threads
import timers
import machine

suite = support.Suite("record")
for module in (launch, memory, output, signals, terminal, threads, timers, machine):
    module.add_to(suite)

if __name__ == "__main__":
    sys.exit(suite.main())
