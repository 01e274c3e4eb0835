#!/usr/bin/python3
"""The page of report --html, in headless Chromium: run.py [--quick] [--list] [NAME...]

Its numbers are those of report --json; its parts work by mouse and keys; names stay text. Needs the build directory in
LUASAMPLE_BUILD (default build/), LuaJIT, and chromium. With LUASAMPLE_TEST_KEEP the pages and screenshots stay."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(os.path.dirname(HERE))]
import support
import bad_input
import compiler
import numbers_shown
import options
import shared
import use

suite = support.Suite("page")
for module in (options, numbers_shown, use, compiler, bad_input):
    module.add_to(suite)

if __name__ == "__main__":
    try:
        status = suite.main()
    finally:
        shared.close()
    sys.exit(status)
