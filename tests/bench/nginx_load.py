"""Part of the bench with a real server: what nginx answers under load, and what a request costs its workers, recorded and
not. Two servers stay up, one of them under record, and are loaded in turns, so that each round is a pair; then the
other is loaded with and without an attached recorder. Used by bench.py."""
import os
import sys
import time

import measure as m
import support as s

sys.path.insert(0, os.path.join(os.path.dirname(m.HERE), "integration", "realhosts"))
import nginx
import tree

TICK = os.sysconf("SC_CLK_TCK")


class Server:
    """nginx with two workers on a port of its own; before: the command that starts it, such as record."""
    def __init__(self, name, port, before=()):
        self.port, self.pidfile = port, name + ".pid"
        text = nginx.CONF % {"daemon": "off", "port": port}
        for file in ("nginx.pid", "nginx.err"):
            text = text.replace(file, file.replace("nginx", name))
        self.run = tree.start(*before, "nginx", "-c", tree.file(name + ".conf", text))
        nginx.wait_up(self.run, port=port)
        while not os.path.exists(tree.outside("/files/" + self.pidfile)):       # it listens before it writes that
            time.sleep(0.05)
        while True:
            self.workers = nginx.workers(self.master())
            if len(self.workers) == 2:
                break
            time.sleep(0.05)

    def master(self):
        with open(tree.outside("/files/" + self.pidfile)) as f:
            return int(f.read())

    def cpu(self):
        """CPU seconds of the workers."""
        total = 0
        for pid in self.workers:
            with open("/proc/%d/stat" % pid) as f:
                total += sum(int(n) for n in f.read().rsplit(")", 1)[1].split()[11:13])
        return total / TICK

    def load(self, seconds):
        """(answers a second, CPU seconds an answer)"""
        cpu = self.cpu()
        n = nginx.requests(seconds, connections=32, port=self.port)
        return n / seconds, (self.cpu() - cpu) / n

    def stop(self):
        if self.run.p.poll() is None:
            os.kill(self.master(), nginx.signal.SIGQUIT)
            self.run.wait()


def line(name, pairs):
    """pairs: ((answers, CPU) recorded, (answers, CPU) not)"""
    answers = [r[0] / p[0] for r, p in pairs]
    print("  %-10s answers a second, to those without: %s %s   CPU an answer: %s" % (
        name, m.spread(answers), "ok (target 0.97)" if m.statistics.median(answers) >= 0.97 else "below (target 0.97)",
        m.spread([r[1] / p[1] for r, p in pairs])), flush=True)


def with_attach(server, seconds):
    """One load while a recorder is attached."""
    recorder = tree.start(tree.BUILD + "/luasample", "record", "-p", ",".join(map(str, server.workers)),
                          "-o", tree.WORK + "/bench.data")
    time.sleep(0.5)
    got = server.load(seconds)
    recorder.signal(nginx.signal.SIGINT)
    if recorder.wait():
        sys.exit("bench: record -p: %s" % recorder.read(recorder.err)[-300:])
    return got


# Servers beside the one that is not recorded: what ticks cost that do nothing, and what the agent costs without any.
RECORDED = {"no ticks": ["--no-ticks"], "bare tick": ["--bare-tick"], "launched": []}


def part_nginx(_, a):
    """nginx under load, with and without a recorder: answers a second, CPU an answer"""
    try:
        tree.path()
    except s.Skip as e:
        print("nginx: %s: part left out\n" % e)
        return
    nginx.files()
    servers, seconds = {}, 2
    try:
        servers["plain"] = plain = Server("plain", 18101)
        for i, (name, options) in enumerate(RECORDED.items()):
            servers[name] = Server("recorded%d" % i, 18102 + i, (tree.BUILD + "/luasample", "record", "-q", *options, "-o",
                                                                 "%s/launch%d.data" % (tree.WORK, i), "--"))
        names, rounds = list(servers), []
        for server in servers.values():
            server.load(1)
        for r in range(a.rounds):
            turn = names[r % len(names):] + names[:r % len(names)]
            rounds.append({name: servers[name].load(seconds) for name in turn})
        print("  %.0f answers a second without" % m.statistics.median(r["plain"][0] for r in rounds))
        for name in RECORDED:
            line(name, [(r[name], r["plain"]) for r in rounds])
            servers[name].stop()
        line("attached", [(with_attach(plain, seconds), plain.load(seconds)) for _ in range(a.rounds)])
    finally:
        for server in servers.values():
            server.stop()
