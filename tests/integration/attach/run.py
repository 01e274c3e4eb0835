#!/usr/bin/python3
"""Integration tests of `luasample record -p`: run.py [--quick] [--list] [--long] [NAME...]

basic.py attaches to programs that run and compares them before and after; ends.py ends attachments in all ways; namespaces.py
has programs in containers, refusals.py a process for each reason not to attach, risks.py those that an attachment could harm,
hostile.py programs that lie, unusual.py a program in which all is set to something unusual, storm.py many attachments to many
kinds of program under load, steps.py disturbances at each step of an attachment. Needs the build directory in LUASAMPLE_BUILD
(default build/). LUASAMPLE_ATTACHMENTS is how often `again` attaches (default 20); LUASAMPLE_STEPS which disturbances steps.py
makes; --long: `kinds` attaches 300 times to each kind of program, in place of 5."""
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
import risks
import steps
import storm
import unusual

suite = support.Suite("attach")
for module in (basic, ends, namespaces, refusals, risks, hostile, unusual, steps, storm):
    module.add_to(suite)

if __name__ == "__main__":
    if "--long" in sys.argv:
        sys.argv.remove("--long")
        storm.attachments = storm.LONG
    sys.exit(suite.main())
