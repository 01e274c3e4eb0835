"""examples/fleet, read by the programs that the files are for. For Alloy and Ansible there is none here: of the playbook it is
looked at that it is YAML, and that the files and commands that it names are there."""
import os
import shutil
import time

import yaml

import support as s
from shared import check, suite
from stores import ask, port, program, wait_for

FLEET = os.path.join(s.ROOT, "examples", "fleet")


@suite.test("fleet", "the daemon and promtool take the examples of a fleet")
def _():
    r = s.run([s.luasample(), "daemon", "--check", "--config", os.path.join(FLEET, "daemon.conf")]).ok()
    check("web" in r.out, r.out)
    s.run([s.need("promtool"), "check", "config", "--syntax-only", os.path.join(FLEET, "prometheus.yml")]).ok()


@suite.test("fleet-ansible", "the playbook is YAML, and copies files that are there; its check is a command that the daemon has")
def _():
    with open(os.path.join(FLEET, "playbook.yml")) as f:
        play, = yaml.safe_load(f)
    names, called = {h["name"] for h in play["handlers"]}, {t["notify"] for t in play["tasks"] if "notify" in t}
    check(called and called <= names, "%s are not handlers: %s" % (called - names, names))
    copies = [(t["ansible.builtin.copy"], t.get("loop", [""])) for t in play["tasks"] if "ansible.builtin.copy" in t]
    check(len(copies) >= 2, copies)
    for copy, items in copies:
        for item in items:
            path = os.path.join(FLEET, copy["src"].replace("{{ item }}", item))
            check(os.path.exists(path), "%s is not there" % path)
        if "validate" in copy:
            words = copy["validate"].replace("%s", os.path.join(FLEET, copy["src"])).split()
            s.run([s.luasample(), *words[1:]]).ok()


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
