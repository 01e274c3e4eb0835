"""The browser and its terminal: sizes, colours, signals, and input that is out of the ordinary. Imported by run.py."""
import glob
import os
import re
import signal

import support as s
from support import check
from screen import GOLDEN, Screen, browsed, tui

SANE = "stty -a | grep -o '[-]*echo ' ; stty -a | grep -o '[-]*icanon'; "


def is_sane(w):
    w.wait(r"^echo")
    w.wait(r"^icanon")


def add_to(suite):
    t = suite.test

    @t("resize", "80x24, 20x5, 12x3, 120x40: the same cursor, as many rows as fit", quick=True)
    def _():
        with tui(browsed()) as w:
            w.wait("by function, sorted by self +1/")
            w.keys("Down", "Down", until=r" 3/\d+ *$")
            w.resize(20, 5)
            w.wait(r"^ function +3/\d+$")
            check(len(w.text().rstrip("\n").split("\n")) <= 5, "more than 5 lines")
            w.keys("t", until="call tree")
            w.keys("t", until="function")
            w.resize(12, 3)
            w.wait("^needs 20x5")
            w.keys("Down")
            w.resize(120, 40)
            w.wait(r"by function, sorted by self +4/\d+ *$")
            w.wait(r"Source *$")
            w.keys("q", until="^status 0")

    @t("color", "heat in colours; none with NO_COLOR, --color never or a terminal that has none", quick=True)
    def _():
        colored = re.compile(r"\x1b\[[0-9;]*3[1-7][;m]")
        for args, env, want in (((), {}, True), ((), {"NO_COLOR": "1"}, False), (("--color", "never"), {}, False),
                                ((), {"TERM": "vt100"}, False), (("--color", "always"), {"NO_COLOR": "1"}, True)):
            with tui(browsed(), *args, env=env) as w:
                w.wait("by function")
                w.wait("help")
                check(bool(colored.search(w.text(escapes=True))) == want, "%r %r: colours: %r" % (args, env, not want))
                w.keys("t", until="call tree")
                w.keys("q", until="^status 0")

    @t("ascii", "a locale without UTF-8 gets ASCII only")
    def _():
        with tui(browsed(), env={"LC_ALL": "C"}) as w:
            w.wait("by function")
            w.type("/main", until=r"[+] main chunk")
            w.keys("Enter", "G", until=r"(\d+)/\1 *$")
            check(w.text().isascii(), "not ASCII: %r" % w.text())

    @t("quit", "quit and Ctrl-C give the terminal back as it was", quick=True)
    def _():
        for key in ("q", "Q", "C-c"):
            with tui(browsed(), then=SANE) as w:
                w.wait("by function")
                w.keys(key, until="^status 0")
                is_sane(w)
                check("by function" not in w.text(), "the browser is still there")

    @t("signals", "SIGTERM and SIGHUP give it back too, and end the browser by that signal", quick=True)
    def _():
        for sig in (signal.SIGTERM, signal.SIGHUP):
            with tui(browsed(), then=SANE) as w:
                w.wait("by function")
                os.kill(w.pid(), sig)
                w.wait("^status %d" % (128 + sig))
                is_sane(w)

    @t("stop-pager", "report in a pager, of a file and of a store: Ctrl-Z gives the shell back, while it is written and when only the pager is left; "
       "fg goes on; Ctrl-C ends it in the pager's way")
    def _():
        s.need("less")
        store = s.tmpfile("-store")
        day = os.path.join(store, "services", "web", "2026-01-02")
        os.makedirs(day)
        os.chmod(store, 0o700)
        with open(os.path.join(store, "version"), "w", encoding="utf-8") as f:
            f.write("luasample store 1\n")
        s.shutil.copy(browsed(), os.path.join(day, "000000.000-60000-7-0.luasample"))
        for of in "-i " + browsed(), "--store %s --service web" % store:
            with Screen(["bash", "--norc", "--noprofile", "-i"], height=6, env={"PS1": "$ ", "LESS": "-X", "PAGER": "less"}) as w:
                w.wait(r"^\$")
                w.type("%s report %s\n" % (s.luasample(), of), until="^:")
                for _ in range(2):
                    w.keys("C-z", until="Stopped")
                    w.type("clear; jobs; echo s''hell\n", until="^shell")
                    w.type("clear; fg\n", until="^:")
                w.keys("Space")
                w.keys("C-c")
                for _ in range(100):            # less drops what is typed before it has seen Ctrl-C
                    w.keys("q")
                    s.time.sleep(0.2)
                    if re.search(r"^\$ q*\s*\Z", w.text(), re.M):
                        break
                w.keys("C-u")
                w.type("echo status $?\n", until="^status (0|130)")
                w.type("clear; jobs; echo j''obs\n", until="^jobs")
                check("luasample" not in w.text(), "left: " + w.text())

    @t("stop", "Ctrl-Z gives it back, fg brings the screen back")
    def _():
        with Screen(["bash", "--norc", "--noprofile", "-i"], env={"PS1": "$ "}) as w:
            w.wait(r"^\$")
            w.type("%s tui -i %s\n" % (s.luasample(), browsed()), until="by function, sorted by self +1/")
            w.keys("Down", until=r" 2/\d+ *$")
            w.keys("C-z", until="Stopped")
            w.type("clear; %s\n" % SANE)
            is_sane(w)
            w.type("fg\n", until=r"by function, sorted by self +2/\d+ *$")
            w.resize(100, 30)
            w.keys("Down", until=r" 3/\d+ *$")
            w.keys("q")
            w.type("echo status $?\n", until="^status 0")

    @t("hangup", "who loses the terminal ends")
    def _():
        with tui(browsed()) as w:
            w.wait("by function")
            pid = w.pid()
        wait_for_end(pid)

    @t("hostile", "10,000 frames, names of 64 KiB, bytes that are no text", quick=True)
    def _():
        with tui(browsed()) as w:
            w.wait("by function")
            for key in "sss":
                w.keys(key)
            w.keys("G", until=r"(\d+)/\1 *$")
            w.type("/xff", until=r"\\xff\\xfe\\x80")
            w.keys("Enter")
            w.type("/\u6f22", until="\u6f22\u5b57")
            w.keys("Enter")
            w.type("/nnnnnn", until=r"nnnn\.\.\.")
            w.keys("Enter", "Enter", "a")
            w.wait("Cannot annotate|no source|line")
            check("\x1b[2J" not in w.text(escapes=True), "a name cleared the screen")
            w.keys("q", "t", until="call tree")
            w.type("/browse.lua:3", until="levels|browse.lua:3")
            w.keys("Enter", "*", "G", until=r"(\d+)/\1 *$")
            w.keys("Q", until="^status 0")
        with tui(browsed(), "--tree", "--by", "line", "--min", "0") as w:     # 10,000 levels, not folded
            w.wait("call tree by line")
            w.keys("g", "*", "G", until=r"(\d+)/\1 *$")
            w.keys("i", until="callers of what ran")
            w.keys("*", "G", until=r"(\d+)/\1 *$")
            w.keys("Q", until="^status 0")

    @t("empty", "an empty trace, one with regions only, one of one frame", quick=True)
    def _():
        with tui(os.path.join(GOLDEN, "nosamples.data")) as w:
            w.wait("No samples collected")
            for key in ("t", "i", "t", "s", "b", "Enter", "a", "Enter", "h", "z", "o", "q", "G", "n", "?", "q", "r"):
                w.keys(key)
            w.type("/x")
            w.keys("Enter")
            w.wait("No samples collected")
            w.keys("Q", until="^status 0")
        with tui(os.path.join(GOLDEN, "regions.data"), "--region", "nosuch") as w:
            w.wait("no such region")
        one = s.tmpfile(".data")
        s.run([os.path.join(s.build_dir(), "tests", "gen", "gen_trace"), "-o", one, "--samples", "100", "--functions", "1",
               "--stacks", "1", "--depth", "2", "--threads", "1"]).ok()
        with tui(one) as w:
            w.wait(r"1/1 *$")
            w.keys("Enter", until="no callers and no callees")
            w.keys("t", until=r"100\.00%.*100\.00%")
            w.keys("*", "h", "i", "a", "Q", until="^status 0")

    @t("damaged", "traces that lie or are cut: a screen, or one line that says why not")
    def _():
        files = sorted(glob.glob(os.path.join(s.TESTS, "golden", "rejected", "*.lst")) +
                       glob.glob(os.path.join(s.TESTS, "golden", "traces", "*.lst")))
        check(len(files) > 20, "%d files" % len(files))
        opened = 0
        windows = [tui(f, "--tree", "--min", "0") for f in files]
        for w, f in zip(windows, files):
            if w.wait(r"call tree|^luasample: tui: .*\n?.*|^status").group().startswith("call"):
                opened += 1
                w.keys("*", "G", "i", "*", "a", "t", "Enter", "G", "Enter", "a", "t", "o", "q", "b", "Enter", "s", "Q")
        for w, f in zip(windows, files):
            status = int(w.wait(r"^status (\d+)").group(1))
            check(status in (0, 1), "%s: status %d" % (f, status))
            w.__exit__()
        check(opened > 3, "%d were opened" % opened)

    @t("no-terminal", "without a terminal there is a line and a status", quick=True)
    def _():
        for cmd, status, words in ((["tui", "-i", browsed()], 1, "needs a terminal"),
                                   (["report", "-t", "-i", browsed()], 1, "needs a terminal"),
                                   (["top", "--", "true"], 1, "needs a terminal"),
                                   (["report", "-t", "--json"], 129, "--tui shows on the terminal"),
                                   (["tui", "--by", "nosuch"], 129, "is not known"),
                                   (["tui", "x.data"], 129, "unexpected argument"),
                                   (["top"], 129, "nothing to watch"),
                                   (["top", "-p", "1", "--", "true"], 129, "not both")):
            r = s.run([s.luasample(), *cmd])
            check(r.status == status and words in r.err and r.err.count("\n") == 1, "%r: %d %r" % (cmd, r.status, r.err))
        with Screen([s.luasample(), "tui", "-i", browsed()], env={"TERM": "nosuch"}) as w:
            w.wait("terminal 'nosuch' is not known")
            w.wait("^status 1")
        with Screen(["sh", "-c", "%s tui -i - < %s" % (s.luasample(), browsed())]) as w:
            w.wait("by function")           # the trace on stdin, keys from the terminal
            w.keys("Down", until=r" 2/\d+ *$")
            w.keys("q", until="^status 0")


def wait_for_end(pid, timeout=20):
    end = s.time.monotonic() + timeout
    while os.path.exists("/proc/%d" % pid) and " Z " not in open("/proc/%d/stat" % pid).read():
        check(s.time.monotonic() < end, "process %d has not ended" % pid)
        s.time.sleep(0.02)
