#!/usr/bin/python3
"""Tests of the terminal browser, luasample tui and top, in tmux: run.py [--quick] [--list] [NAME...]

Keys go in, screens come out. Needs the build directory in LUASAMPLE_BUILD (default build/)."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(os.path.dirname(HERE))]
import support
import browse
import compiler
import live
import terminal
from screen import stop_server

suite = support.Suite("tui")
for module in (browse, compiler, terminal, live):
    module.add_to(suite)

if __name__ == "__main__":
    try:
        status = suite.main()
    finally:
        stop_server()
    sys.exit(status)
