#!/usr/bin/python3
"""The daemon: run.py [--list] [--quick] [--long] [NAME...]

Each test has a daemon, a store and services of its own. Needs the build directory in LUASAMPLE_BUILD (default build/).
--long: `kills` kills 200 times in place of 20. LUASAMPLE_DAEMON_MINUTES=30: a day in small, `steady`."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import configuration    # noqa: F401
import cost             # noqa: F401
import ctl              # noqa: F401
import http_            # noqa: F401
import lending          # noqa: F401
import reading          # noqa: F401
import sinks            # noqa: F401
import steady           # noqa: F401
import supervise        # noqa: F401
import systemd          # noqa: F401
import triggers         # noqa: F401
from shared import suite

if "--long" in sys.argv:
    sys.argv.remove("--long")
    supervise.KILLS = 200
sys.exit(suite.main())
