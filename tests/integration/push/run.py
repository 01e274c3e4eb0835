#!/usr/bin/python3
"""luasample push: run.py [--list] [--quick] [NAME...]

fake.py is a store that says what came and answers as it is told; stores.py has real ones (scripts/stores, Debian's clickhouse-server).
Needs the build directory in LUASAMPLE_BUILD (default build/)."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(os.path.dirname(HERE))]
import faults           # noqa: F401
import bodies           # noqa: F401
import stores           # noqa: F401
import fleet            # noqa: F401
import windows          # noqa: F401
from shared import suite

sys.exit(suite.main())
