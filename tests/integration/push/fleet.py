"""examples/fleet, read by the programs that the files are for. For Alloy and Ansible there is none here."""
import os
import shutil
import time

import support as s
from shared import check, suite
from stores import ask, port, program, wait_for

FLEET = os.path.join(s.ROOT, "examples", "fleet")


@suite.test("fleet", "the daemon and promtool take the examples of a fleet")
def _():
    r = s.run([s.luasample(), "daemon", "--check", "--config", os.path.join(FLEET, "daemon.conf")]).ok()
    check("web" in r.out, r.out)
    s.run([s.need("promtool"), "check", "config", "--syntax-only", os.path.join(FLEET, "prometheus.yml")]).ok()


@suite.test("fleet-parca", "Parca takes its example, and would fetch CPU profiles only")
def _():
    binary, dir, at = program("parca"), s.tmpfile(".fleet"), port()
    os.mkdir(dir)
    shutil.copy(os.path.join(FLEET, "parca.yaml"), dir)
    st = s.Started([binary, "--config-path=parca.yaml", "--http-address=127.0.0.1:%d" % at, "--debuginfod-upstream-servers="], cwd=dir)
    url, end = "http://127.0.0.1:%d/api/targets" % at, time.monotonic() + 60
    text = wait_for(url, st).decode()
    while "6061" not in text:                   # it looks for them after a while
        check(time.monotonic() < end, text[:600])
        time.sleep(0.5)
        text = ask(url).decode()
    check("%2Fdebug%2Fpprof%2Fprofile" in text or "/debug/pprof/profile" in text, text[:600])
    check("service" in text and not any(word in text for word in ("allocs", "goroutine", "mutex", "block")), text[:900])
