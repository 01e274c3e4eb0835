#!/usr/bin/python3
"""The daemon: run.py [--list] [--quick] [NAME...]

Each test has a daemon, a store and services of its own. Needs the build directory in LUASAMPLE_BUILD (default build/)."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import configuration    # noqa: F401
import cost             # noqa: F401
import ctl              # noqa: F401
import lending          # noqa: F401
import reading          # noqa: F401
import sinks            # noqa: F401
import supervise        # noqa: F401
import systemd          # noqa: F401
import triggers         # noqa: F401
from shared import suite

sys.exit(suite.main())
