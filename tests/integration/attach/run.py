#!/usr/bin/env python3
"""Integration tests of `luasample record -p`: run.py [--quick] [--list] [NAME...]

basic.py attaches to programs that run and compares them before and after; ends.py ends attachments in all ways; namespaces.py
has programs in containers, refusals.py a process for each reason not to attach, hostile.py programs that lie. Needs the build directory in LUASAMPLE_BUILD (default build/).
LUASAMPLE_ATTACHMENTS is how often `again` attaches (default 20)."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(os.path.dirname(HERE))]
import support
import basic
import ends
import hostile
import namespaces
import refusals

suite = support.Suite("attach")
for module in (basic, ends, namespaces, refusals, hostile):
    module.add_to(suite)

if __name__ == "__main__":
    sys.exit(suite.main())
