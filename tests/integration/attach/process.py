"""What a process is like from outside: for comparisons before and after an attachment."""
import hashlib
import os
import re


def read(pid, name):
    with open("/proc/%d/%s" % (pid, name)) as f:
        return f.read()


def descriptors(pid):
    found = {}
    for fd in os.listdir("/proc/%d/fd" % pid):
        try:
            found[int(fd)] = os.readlink("/proc/%d/fd/%s" % (pid, fd))
        except FileNotFoundError:
            pass
    return found


def signals(pid):
    """Dispositions of the process, and each thread's mask. Signals 32 and 33 are the C library's: it takes the second when the
    first thread is made, by whomever."""
    lines = []
    for line in read(pid, "status").splitlines():
        if re.match("(SigIgn|SigCgt|ShdPnd)", line):
            key, mask = line.split()
            lines.append("%s %x" % (key, int(mask, 16) & ~(3 << 31)))
    for tid in sorted(os.listdir("/proc/%d/task" % pid)):
        lines += [tid + line for line in read(pid, "task/%s/status" % tid).splitlines() if re.match("(SigBlk|SigPnd)", line)]
    return lines


def code(pid):
    """{(page, path): hash} of all code that comes from files; a mapping may be in more pieces than before."""
    found = {}
    with open("/proc/%d/mem" % pid, "rb") as mem:
        for line in read(pid, "maps").splitlines():
            m = re.match(r"([0-9a-f]+)-([0-9a-f]+) r-xp \S+ \S+ \S+ +(/.*)", line)
            if m and "luasample" not in m.group(3):
                start, end = int(m.group(1), 16), int(m.group(2), 16)
                mem.seek(start)
                for page in range(start, end, 4096):
                    found[page, m.group(3)] = hashlib.sha256(mem.read(4096)).hexdigest()[:16]
    return found


def state(pid):
    return {"descriptors": descriptors(pid), "threads": sorted(os.listdir("/proc/%d/task" % pid)), "signals": signals(pid),
            "timers": read(pid, "timers"), "code": code(pid), "comm": read(pid, "comm"),
            "environment": read(pid, "environ")}


def differences(before, after):
    bad = ["%s: %r, was %r" % (key, after[key], before[key]) for key in before if before[key] != after[key] and key != "code"]
    pages = [page for page in before["code"].items() if after["code"].get(page[0]) != page[1]]
    if pages or len(after["code"]) != len(before["code"]):
        bad.append("code: %d pages of %d, now %d: %r" % (len(pages), len(before["code"]), len(after["code"]), pages[:2]))
    return bad


def writable_and_executable(pid):
    return [line for line in read(pid, "maps").splitlines() if " rwxp " in line]
