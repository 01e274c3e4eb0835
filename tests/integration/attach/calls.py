"""System calls of a program, all shown by the kernel as they are made (seccomp's user notification), and let go on: while a debugger
traced it, nobody could attach to it."""
import array
import collections
import ctypes
import fcntl
import os
import re
import socket
import struct
import subprocess
import threading
import time

from support import Skip, need, run, tmpfile

RECEIVE, ANSWER = 0xc0502100, 0xc0182101        # SECCOMP_IOCTL_NOTIF_*
SENDMSG, SECCOMP = 46, 317


def install(libc, code, flags=0):
    buf = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *c) for c in code))
    prog = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(code), ctypes.addressof(buf)), 16)
    libc.prctl(38, 1, 0, 0, 0)
    return libc.syscall(SECCOMP, 1, flags, prog)


class Watched:
    """A program whose calls are counted in seen, {(number, args)}, from begin() on."""
    def __init__(self, cmd):
        self.seen, self.on = collections.Counter(), False
        self.slow_after, self.slow = None, 0    # a call, from which on those of its thread take 20 ms
        self.out = tmpfile(".out")
        ours, its = socket.socketpair()

        def setup():
            libc = ctypes.CDLL(None, use_errno=True)
            fd = install(libc, [(0x20, 0, 0, 0), (0x15, 0, 1, SENDMSG), (6, 0, 0, 0x7fff0000), (6, 0, 0, 0x7fc00000)], 8)
            its.sendmsg([b"%d" % (fd < 0)], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [max(fd, 0)]))])
        # Popen waits for exec, which waits for an answer
        threading.Thread(target=self.serve, args=(ours,), daemon=True).start()
        self.p = subprocess.Popen(cmd, stdin=subprocess.DEVNULL, stdout=open(self.out, "wb"), stderr=subprocess.DEVNULL,
                                  preexec_fn=setup, pass_fds=(its.fileno(),))
        its.close()

    def serve(self, ours):
        text, control, _, _ = ours.recvmsg(1, socket.CMSG_SPACE(4))
        if text != b"0":
            return
        self.fd = array.array("i", control[0][2])[0]
        while True:
            request = bytearray(80)
            try:
                fcntl.ioctl(self.fd, RECEIVE, request)
                number, tid, _, nr = struct.unpack_from("QIIi", request)
                args = struct.unpack_from("6Q", request, 32)
                if self.on:
                    self.seen[nr, args] += 1
                if tid == self.slow:
                    time.sleep(0.02)
                elif self.slow_after and self.slow_after(nr, args):
                    self.slow = tid
                fcntl.ioctl(self.fd, ANSWER, struct.pack("QqiI", number, 0, 0, 1))
            except FileNotFoundError:           # its thread has ended
                if self.p_ended():
                    return
            except OSError:
                return

    def p_ended(self):
        return hasattr(self, "p") and self.p.poll() is not None

    def wait_for_begin(self):
        while "begin" not in open(self.out).read():
            if self.p_ended():
                raise Skip("no notification of system calls here")

    def end(self):
        self.p.kill()
        self.p.wait()


def numbers():
    """{name: number} of this machine's system calls."""
    with open("/usr/include/x86_64-linux-gnu/asm/unistd_64.h") as f:
        return {m.group(1): int(m.group(2)) for m in re.finditer(r"#define __NR_(\w+) (\d+)", f.read())}


def table(root):
    """[(name, may fail)] of record/attach/calls.c."""
    with open(os.path.join(root, "record", "attach", "calls.c")) as f:
        return re.findall(r"\{ CALL\((\w+)\), [^,]+, (\w+),", f.read())


ROWS = r"""
#include "record/attach/calls.c"
#include <stdio.h>
int main(void)
{
        for (unsigned i = 0; i < ls_n_calls; i++) {
                printf("%ld %u", (long)ls_calls[i].nr, ls_calls[i].known);
                for (int k = 0; k < 6; k++)
                        printf(" %llu", (unsigned long long)ls_calls[i].args[k]);
                puts("");
        }
}
"""


def rows(root):
    """[(number, {argument: value that filters look at})] of the same table, as the compiler has it."""
    source, program = tmpfile(".c"), tmpfile()
    with open(source, "w") as f:
        f.write(ROWS)
    run([need("gcc"), "-D_GNU_SOURCE", "-I", root, "-o", program, source]).ok()
    out = []
    for line in run([program]).ok().out.splitlines():
        nr, known, *args = map(int, line.split())
        out.append((nr, {i: args[i] for i in range(6) if known >> i & 1}))
    return out
