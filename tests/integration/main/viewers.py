"""Viewers that are programs with windows: they open what report exports. Imported by run.py."""
import os
import re
import time

import support as s
from support import check


# A session bus that starts no services.
BUS = """<busconfig><type>session</type><listen>unix:dir=%s</listen><policy context="default">
<allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy></busconfig>
"""


class Screen:
    """An X server without a screen and a session bus, for as long as a test."""
    def __enter__(self):
        config, place = s.tmpfile(".conf"), s.tmpfile(".bus")
        os.mkdir(place, 0o700)
        with open(config, "w") as f:
            f.write(BUS % place)
        self.bus = s.Started([s.need("dbus-daemon"), "--config-file=" + config, "--nofork", "--print-address"])
        self.bus.wait_for("\n")
        self.server = s.Started([s.need("Xvfb"), "-displayfd", "1", "-screen", "0", "1280x800x24", "-nolisten", "tcp",
                                 "-noreset"])       # else it starts anew when xwininfo leaves, and who comes then is turned away
        self.server.wait_for("\n")
        self.display = ":" + s.Started.read(self.server.out).strip()
        return self

    def __exit__(self, *_):
        for started in (self.server, self.bus):
            started.p.terminate()
            started.p.wait()

    def titles(self):
        """Titles of all windows."""
        tree = s.run([s.need("xwininfo"), "-display", self.display, "-root", "-tree"], env=dict(os.environ, LC_ALL="C.UTF-8"))
        return re.findall(r'^ *0x[0-9a-f]+ "(.*)": ', tree.out, re.M)

    def open(self, cmd, pattern, home):
        """Starts a program and waits for a window with such a title. Returns the title and the program's stderr."""
        env = dict(os.environ, DISPLAY=self.display, HOME=home, XDG_CONFIG_HOME=home, XDG_RUNTIME_DIR=home,
                   QT_QPA_PLATFORM="xcb", LC_ALL="C.UTF-8", DBUS_SESSION_BUS_ADDRESS=s.Started.read(self.bus.out).strip())
        app = s.Started(cmd, env=env)
        end = time.monotonic() + 60
        try:
            while True:
                found = [t for t in self.titles() if re.search(pattern, t)]
                if found:
                    return found[0], app.read(app.err)
                check(app.p.poll() is None, "%s ended: %s" % (cmd[0], app.read(app.err)[-300:]))
                check(time.monotonic() < end, "no window like %s after 60 s, but %s" % (pattern, self.titles()))
                time.sleep(0.1)
        finally:
            app.p.terminate()
            app.p.wait()


def add_to(suite):
    t = suite.test

    @t("viewers.kcachegrind", "kcachegrind opens --format callgrind")
    def kcachegrind():
        tool, home = s.need("kcachegrind"), s.tmpfile(".d")
        os.mkdir(home, 0o700)
        with open(os.path.join(home, "kcachegrindrc"), "w") as f:
            f.write("[TipOfDay]\nRunOnStart=false\n")
        with Screen() as screen:
            # What cannot be read gets a box with an error, so a title with the file and the command is no accident.
            wrong = s.tmpfile(".callgrind")
            with open(wrong, "w") as f:
                f.write("this is no profile\n")
            title, _ = screen.open([tool, wrong], r"^Error|callgrind \[", home)
            check(title.startswith("Error"), "it opens anything: " + title)
            for script, args in (("calls.lua", []), ("builtins.lua", ["0.3"]), ("mixedsource.lua", ["0.3"])):
                r = s.record_lua(script, "-q", args=args).ok()
                path = s.tmpfile(".callgrind")
                s.report(r.trace, "--format", "callgrind", "-o", path).ok()
                title, err = screen.open([tool, path], r"^Error|callgrind \[", home)
                check(os.path.basename(path) in title and script in title, "the title is %r" % title)
                check(err == "", "kcachegrind says: " + err[-400:])
