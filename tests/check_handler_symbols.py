#!/usr/bin/python3
"""Checks what signal-handler code calls: check_handler_symbols.py LIBRARY.a [NM]

Compares the undefined symbols of libsample/handler's static library with the list below: all of it is safe in a signal
handler. A symbol that is not here is an error, and so is a library without symbols."""
import subprocess
import sys

ALLOWED = {
    "memcpy": "plain memory",
    "memmove": "plain memory",
    "memset": "plain memory",
    "memchr": "plain memory",
    "memcmp": "plain memory",
    "bcmp": "plain memory: what clang makes of memcmp",
    "strlen": "plain memory",
    "strcmp": "plain memory",
    "clock_gettime": "on POSIX's list of async-signal-safe functions",
    "ls_agent": "the agent's own state (data): see libsample/agent.h",
    "__errno_location": "address of this thread's errno, to save and restore it",
    "syscall": "a bare system call",
    "_GLOBAL_OFFSET_TABLE_": "made by the compiler for position-independent code",
    "__stack_chk_fail": "made by the compiler's stack protector",
    "__tls_get_addr": "thread-local data of the agent, allocated before the first tick",
}
SANITIZERS = ("__asan_", "__ubsan_", "__tsan_", "__sanitizer_", "__msan_")


def symbols(library, nm, kind):
    out = subprocess.run([nm, kind, library], stdout=subprocess.PIPE, check=True, universal_newlines=True).stdout
    return {line.split()[-1] for line in out.splitlines() if line.split() and not line.endswith(":")}


def main():
    if len(sys.argv) < 2:
        print("usage: check_handler_symbols.py LIBRARY.a [NM]")
        return 129
    nm = sys.argv[2] if len(sys.argv) > 2 else "nm"
    defined = symbols(sys.argv[1], nm, "--defined-only")
    undefined = symbols(sys.argv[1], nm, "--undefined-only") - defined
    wrong = sorted(u for u in undefined if u not in ALLOWED and not u.startswith(SANITIZERS))
    if not defined:
        print("no symbols in " + sys.argv[1])
        return 1
    for symbol in wrong:
        print("%s: signal-handler code uses %s, which is not on the list" % (sys.argv[1], symbol))
    print("%d defined, %d undefined, %d not allowed" % (len(defined), len(undefined), len(wrong)))
    return 1 if wrong else 0


sys.exit(main())
