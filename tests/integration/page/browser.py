"""Headless Chromium, driven over its debugging pipe (the DevTools protocol: one JSON message after the other, ended by a
zero byte). The tests of the page need a dozen of its calls, so no driver is installed for them."""
import base64
import json
import os
import select
import shutil
import subprocess
import time

import support as s

FLAGS = ["--headless=new", "--remote-debugging-pipe", "--no-first-run", "--disable-extensions", "--disable-gpu",
         "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars",
         "--force-color-profile=srgb"]
READY = "!!globalThis.luasamplePage"
HANG = 60                               # seconds: for what does not end


def missing(why):
    """A skip that is printed, or a failure where all must be there."""
    raise s.Fail(why) if os.environ.get("CI") else s.Skip(why)


class Browser:
    """One tab. problems: uncaught errors, console messages; requests: addresses that it asked for."""
    def __init__(self, width=1440, height=900):
        program = shutil.which("chromium")
        if not program:
            missing("chromium is not installed")
        self.home = s.tmpfile(".chromium")
        os.mkdir(self.home)
        to_read, self.write_end = os.pipe()
        self.read_end, to_write = os.pipe()
        flags = FLAGS + (["--no-sandbox"] if os.geteuid() == 0 else [])

        def descriptors():              # Chromium reads commands from 3 and writes to 4
            a, b = os.dup(to_read), os.dup(to_write)
            os.dup2(a, 3)
            os.dup2(b, 4)
        self.process = subprocess.Popen([program, *flags, "--user-data-dir=" + self.home,
                                         "--window-size=%d,%d" % (width, height), "about:blank"],
                                        preexec_fn=descriptors, close_fds=False, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        env=dict(os.environ, HOME=self.home))
        os.close(to_read)
        os.close(to_write)
        self.serial, self.unread, self.session = 0, b"", None
        self.problems, self.requests, self.loaded = [], [], 0
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Runtime", "Page", "Log", "Network"):
            self.call(domain + ".enable")
        self.resize(width, height)

    def message(self, timeout=HANG):
        end = time.monotonic() + timeout
        while b"\0" not in self.unread:
            s.check(select.select([self.read_end], [], [], max(0, end - time.monotonic()))[0], "Chromium does not answer")
            data = os.read(self.read_end, 1 << 20)
            s.check(data, "Chromium ended")
            self.unread += data
        text, self.unread = self.unread.split(b"\0", 1)
        return json.loads(text)

    def note(self, m):
        method, params = m.get("method"), m.get("params", {})
        if method in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"):
            self.problems.append(json.dumps(params)[:500])
        elif method == "Page.javascriptDialogOpening":
            self.problems.append("a dialog: " + params.get("message", ""))
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method == "Page.loadEventFired":
            self.loaded += 1

    def call(self, method, **params):
        self.serial += 1
        m = {"id": self.serial, "method": method, "params": params}
        if self.session:
            m["sessionId"] = self.session
        os.write(self.write_end, json.dumps(m).encode() + b"\0")
        while True:
            answer = self.message()
            if answer.get("id") == m["id"]:
                s.check("error" not in answer, "%s: %s" % (method, answer.get("error")))
                return answer["result"]
            self.note(answer)

    def resize(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def prefer(self, scheme):
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme},
                                                          {"name": "prefers-reduced-motion", "value": "reduce"}])

    def open(self, path):
        """Opens a page and returns how long that took, in seconds, until it was drawn."""
        self.problems, self.requests = [], []
        loaded, start = self.loaded, time.monotonic()
        self.call("Page.navigate", url="file://" + os.path.abspath(path))
        while self.loaded == loaded:
            self.note(self.message())
        self.settle()
        return time.monotonic() - start

    def js(self, expression):
        r = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        s.check("exceptionDetails" not in r, "%.200s: %.400s" % (expression, json.dumps(r.get("exceptionDetails"))))
        return r["result"].get("value")

    def settle(self):
        """Waits for two pictures: what was changed is drawn then."""
        self.js("new Promise(r => requestAnimationFrame(() => requestAnimationFrame(() => r(1))))")

    def wait(self, condition, timeout=HANG):
        end = time.monotonic() + timeout
        while not self.js("!!(%s)" % condition):
            s.check(time.monotonic() < end, "not within %d s: %s" % (timeout, condition))
            time.sleep(0.02)

    def mouse(self, kind, x, y, buttons=0, clicks=1):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left" if kind != "mouseMoved" else "none",
                  buttons=buttons, clickCount=clicks if kind != "mouseMoved" else 0)

    def click(self, x, y):
        self.mouse("mouseMoved", x, y)
        self.mouse("mousePressed", x, y, 1)
        self.mouse("mouseReleased", x, y)
        self.settle()

    def drag(self, x0, x1, y):
        self.mouse("mouseMoved", x0, y)
        self.mouse("mousePressed", x0, y, 1)
        for step in range(1, 5):
            self.mouse("mouseMoved", x0 + (x1 - x0) * step / 4, y, 1)
        self.mouse("mouseReleased", x1, y)
        self.settle()

    def place(self, selector):
        """x, y, width, height of an element."""
        return self.js("(e => { const b = e.getBoundingClientRect(); return [b.x, b.y, b.width, b.height]; })"
                       "(document.querySelector(%s))" % json.dumps(selector))

    def press(self, selector):
        """A click in the middle of an element."""
        x, y, w, h = self.place(selector)
        self.click(x + w / 2, y + h / 2)

    def key(self, key):
        text = {"text": key} if len(key) == 1 else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)
        self.settle()

    def type(self, text):
        self.call("Input.insertText", text=text)
        self.settle()

    def screenshot(self, path):
        with open(path, "wb") as f:
            f.write(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def close(self):
        os.close(self.write_end)        # it ends when nobody talks to it
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.read_end)
        shutil.rmtree(self.home, ignore_errors=True)
