#!/usr/bin/python3
"""Integration tests of diff and merge: run.py [--quick] [--list] [NAME...]

Most use traces with chosen content (made.py), so that what must differ is known exactly; two record real programs. Needs the
build directory in LUASAMPLE_BUILD (default build/)."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(os.path.dirname(HERE))]
import support
import differences
import merges
import outputs
import page

suite = support.Suite("diff")
for module in (differences, outputs, page, merges):
    module.add_to(suite)

if __name__ == "__main__":
    sys.exit(suite.main())
