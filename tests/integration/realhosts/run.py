#!/usr/bin/python3
"""Integration tests on programs that embed LuaJIT and that others wrote: run.py [--quick] [--list] [NAME...]

They are Debian's, in a tree that scripts/host-tree makes once. Needs the build directory in LUASAMPLE_BUILD (default
build/), root and unshare; a host that is missing is a skip that is printed and counted."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(os.path.dirname(HERE))]
import support
import hosts
import nginx

suite = support.Suite("realhosts")
for module in (hosts, nginx):
    module.add_to(suite)

if __name__ == "__main__":
    sys.exit(suite.main())
