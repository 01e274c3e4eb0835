#!/usr/bin/python3
"""Checks which C libraries can load the agent: check_agent_versions.py LIBSAMPLE.so [READELF]

It is loaded into programs with other C libraries than it was built with (a container, a chroot): one that lacks a single
version that the agent names refuses to start the program. None is above NEWEST, and no library but the C library is needed.
libsample/old_libc.h has what newer headers would take instead."""
import re
import subprocess
import sys

NEWEST = (2, 17)
LIBRARIES = {"libc.so.6", "ld-linux-x86-64.so.2"}


def readelf(tool, option, library):
    return subprocess.run([tool, "-W", option, library], check=True, capture_output=True, text=True).stdout


def number(version):
    m = re.fullmatch(r"GLIBC_([0-9.]+)", version)
    return tuple(map(int, m.group(1).split("."))) if m else (99,)


def main(library, tool="readelf"):
    needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", readelf(tool, "-d", library)))
    versions = set(re.findall(r"Name: (\S+)  Flags", readelf(tool, "-V", library)))
    symbols = readelf(tool, "--dyn-syms", library)
    bad = ["it needs %s" % n for n in sorted(needed - LIBRARIES)]
    for version in sorted(versions, key=number):
        if number(version) > NEWEST:
            names = re.findall(r"UND (\S+)@%s\b" % re.escape(version), symbols)
            bad.append("%s: %s" % (version, " ".join(sorted(names)) or "by the linker"))
    if "libc.so.6" not in needed or "GLIBC_2.2.5" not in versions:
        bad.append("it has no versions of the C library's: is this the agent?")
    print("\n".join(bad) or "%s: %d versions, none above GLIBC_%d.%d" % ((library, len(versions)) + NEWEST))
    return 1 if bad else 0


sys.exit(main(*sys.argv[1:]))
