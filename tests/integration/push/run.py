#!/usr/bin/python3
"""luasample push: run.py [--list] [--quick] [NAME...]

fake.py is a store that says what came and answers as it is told. Needs the build directory in LUASAMPLE_BUILD (default build/)."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(os.path.dirname(HERE))]
import faults           # noqa: F401
import bodies           # noqa: F401
from shared import suite

sys.exit(suite.main())
