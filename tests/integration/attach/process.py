"""What a process is like from outside: for comparisons before and after an attachment."""
import hashlib
import os
import re


def read(pid, name):
    with open("/proc/%d/%s" % (pid, name)) as f:
        return f.read()


def of_threads(pid, name):
    """[(id, content)] of a file of each thread. One that ends meanwhile has none: there may be one while it is being attached to."""
    found = []
    for tid in sorted(os.listdir("/proc/%d/task" % pid)):
        try:
            found.append((tid, read(pid, "task/%s/%s" % (tid, name))))
        except (FileNotFoundError, ProcessLookupError):
            if not os.path.exists("/proc/%d/task" % pid):
                raise                   # the process has ended
    return found


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
    for tid, text in of_threads(pid, "status"):
        lines += [tid + line for line in text.splitlines() if re.match("(SigBlk|SigPnd)", line)]
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


def status(pid):
    """What else the kernel has of the process and its threads, but for what passes by itself. Locked memory: whether any is."""
    lines = read(pid, "limits").splitlines()
    for tid, text in of_threads(pid, "status"):
        for line in text.splitlines():
            key, value = line.split(":", 1)
            if re.match("(Umask|Uid|Gid|Groups|TracerPid|NStgid|Cap|NoNewPrivs|Seccomp|Speculation|Cpus_allowed|Name)", key):
                lines.append(tid + line)
            elif key == "VmLck":
                lines.append("%slocked %d" % (tid, value != "\t       0 kB"))
    return lines + [read(pid, "oom_score_adj"), read(pid, "personality") if os.geteuid() == 0 else ""]


def mappings(pid):
    """[(start, end, permissions, path)] of files and the stack, pieces that lie together as one; the stack's end alone."""
    found = []
    for line in read(pid, "maps").splitlines():
        m = re.match(r"([0-9a-f]+)-([0-9a-f]+) (\S+) \S+ \S+ \S+ *(/.*|\[(?:stack|vdso|vvar.*|vsyscall)\])$", line)
        if not m or "luasample" in m.group(4):
            continue
        start, end, perms, path = int(m.group(1), 16), int(m.group(2), 16), m.group(3), m.group(4)
        if found and found[-1][1:] == (start, perms, path):
            start = found.pop()[0]
        found.append((0 if path == "[stack]" else start, end, perms, path))
    return found


def resident_kib(pid, key="VmRSS"):
    return int(re.search(key + r":\s+(\d+)", read(pid, "status")).group(1))


PARTS = {"status": status, "mappings": mappings, "descriptors": descriptors,
         "threads": lambda pid: sorted(os.listdir("/proc/%d/task" % pid)), "signals": signals,
         "timers": lambda pid: read(pid, "timers"), "code": code, "comm": lambda pid: read(pid, "comm"),
         "environment": lambda pid: read(pid, "environ")}


def state(pid, parts=PARTS):
    return {part: PARTS[part](pid) for part in parts}


def differences(before, after):
    bad = []
    for key in before:
        if before[key] == after[key] or key == "code":
            continue
        if isinstance(before[key], list):
            bad.append("%s: %r, was %r" % (key, [x for x in after[key] if x not in before[key]],
                                           [x for x in before[key] if x not in after[key]]))
        else:
            bad.append("%s: %r, was %r" % (key, after[key], before[key]))
    if "code" not in before:
        return bad
    pages = [page for page in before["code"].items() if after["code"].get(page[0]) != page[1]]
    if pages or len(after["code"]) != len(before["code"]):
        bad.append("code: %d pages of %d, now %d: %r" % (len(pages), len(before["code"]), len(after["code"]), pages[:2]))
    return bad


def writable_and_executable(pid):
    return [line for line in read(pid, "maps").splitlines() if " rwxp " in line]
