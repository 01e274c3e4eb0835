#!/usr/bin/python3
"""Integration tests of programs with other C libraries than luasample was built with: run.py [--long] [--list] [NAME...]

They run in trees of other Debians (scripts/libc-tree), with chroot; luasample is outside. Needs the build directory in
LUASAMPLE_BUILD (default build/), root and unshare; a tree that is missing is a skip that is printed and counted. Each tree is
attached to 25 times, with --long 100 times."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "attach"), os.path.dirname(os.path.dirname(HERE))]
import support
import programs
import tree

if __name__ == "__main__":
    tree.enter_namespace()              # first: it begins again
    if "--long" in sys.argv:
        sys.argv.remove("--long")
        programs.ATTACHMENTS = 100
    suite = support.Suite("libcs")
    programs.add_to(suite)
    sys.exit(suite.main())
