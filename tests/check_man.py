#!/usr/bin/python3
"""Checks the manual against the option tables, both ways: check_man.py LUASAMPLE [MAN_SOURCE_DIR]

luasample --list-options prints the tables. Each option of a command must be in the OPTIONS section of its page, with the
same letter and the same argument, and each option there must be in the table. Also: every command has a page and is in
luasample(1), each -jp letter is in the table of luasample-report(1), each key and each exporter is described, the completion
scripts know every option, luasample(1) has every page, and --help shows every option and argument."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

SHELLS = ("bash", "zsh", "fish")
BASH_CASES = [
    ("rep", ["report"]),
    ("report --fo", ["--format="]),
    ("report --format = c", ["callgrind", "collapsed"]),
    ("export --format = p", ["pprof"]),
    ("export --per", ["--per-thread"]),
    ("report --by = ''", ["function", "vmstate"]),
    ("help d", ["dump", "doctor"]),
]


def output(*cmd):
    return subprocess.run(cmd, check=True, stdout=subprocess.PIPE, encoding="utf-8").stdout


def tables(luasample):
    """{command: {long name: (letter, argument, optional)}}"""
    commands = {}
    for line in output(luasample, "--list-options").splitlines():
        command, long, short, argument, flags, text = line.split("\t")
        if "hidden" in flags:
            continue
        commands.setdefault(command, {})[long] = (short, "" if argument == "-" else argument, "optional" in flags)
        assert text, "%s %s has no help text" % (command, long)
    return commands


def plain(text):
    """scdoc's marks taken off."""
    return re.sub(r"(?<![\w\\])[*_]|[*_](?!\w)|\\", "", text)


def page_options(path):
    """The same from the OPTIONS section of a page."""
    found = {}
    with open(path, encoding="utf-8") as f:
        text = f.read()
    section = re.search(r"^# OPTIONS\n(.*?)(?=^# )", text, re.M | re.S)
    for line in section.group(1).splitlines() if section else []:
        m = re.match(r"\*-", line)
        if not m:
            continue
        words = line.replace("*", "").replace("_", "").strip()
        m = re.match(r"(?:-(\w), )?(--[\w-]+)(\[)?(?:=?(.*?))\]?$", words)
        assert m, "%s: option not understood: %s" % (path, line)
        found[m.group(2)] = (m.group(1) or "-", (m.group(4) or "").lstrip("= "), bool(m.group(3)))
    return found


def check(luasample, man):
    wrong = []
    commands = tables(luasample)
    with open(os.path.join(man, "luasample.1.scd"), encoding="utf-8") as f:
        main_page = f.read()
    for command, options in commands.items():
        page = os.path.join(man, "luasample-%s.1.scd" % command)
        if "luasample-%s*(1)" % command not in main_page:
            wrong.append("luasample(1) does not name " + command)
        if not os.path.exists(page):
            wrong.append("%s has no page" % command)
            continue
        documented = page_options(page)
        for long, want in options.items():
            if long not in documented:
                wrong.append("%s %s is not in %s" % (command, long, os.path.basename(page)))
            elif documented[long] != want:
                wrong.append("%s %s is %s in the table, %s in the page" % (command, long, want, documented[long]))
        for long in documented:
            if long not in options:
                wrong.append("%s documents %s, which is not in the table" % (os.path.basename(page), long))
        help_text = output(luasample, command, "--help")
        for long, (_, argument, _) in options.items():
            if long not in help_text or argument not in help_text:
                wrong.append("%s --help does not show %s %s" % (command, long, argument))
        for shell in SHELLS:
            script = output(luasample, "--completion", shell)
            for long in options:
                if (long if shell != "fish" else "-l " + long[2:]) not in script:
                    wrong.append("the %s completion lacks %s %s" % (shell, command, long))
    wrong += check_index(man, main_page)
    wrong += check_completions(luasample)
    wrong += check_report(luasample, man, commands["report"])
    wrong += check_keys(luasample, man) + check_configuration(luasample, man)
    wrong += check_export(luasample, man, commands)
    return wrong


def check_index(man, main_page):
    """luasample(1) has an entry of each page, and man/meson.build makes each."""
    with open(os.path.join(man, "meson.build"), encoding="utf-8") as f:
        made = set(re.findall(r"'(luasample[\w.-]*\.\d)'", f.read()))
    entries = {"%s.%s" % m for m in re.findall(r"^\*(luasample-[\w.-]+)\*\((\d)\)\n\t\w", main_page, re.M)}
    pages = {name[:-4] for name in os.listdir(man) if name.endswith(".scd")}
    return (["luasample(1) has no entry of %s" % p for p in sorted(pages - entries - {"luasample.1"})] +
            ["luasample(1) has an entry of %s, which is no page" % p for p in sorted(entries - pages)] +
            ["man/meson.build does not make %s" % p for p in sorted(pages - made)])


def check_completions(luasample):
    """Each script is sound for its shell, where that is installed, and bash's completes commands, options and values."""
    wrong = []
    for shell in SHELLS:
        with tempfile.NamedTemporaryFile("w", suffix="." + shell) as f:
            f.write(output(luasample, "--completion", shell))
            f.flush()
            if shutil.which(shell) and subprocess.run([shell, "-n", f.name]).returncode:
                wrong.append("the %s completion is no %s script" % (shell, shell))
            for words, want in BASH_CASES if shell == "bash" and shutil.which("bash") else []:
                got = output("bash", "-c", "source %s; COMP_WORDS=(luasample %s); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); "
                             "_luasample 2> /dev/null; echo ${COMPREPLY[*]}" % (f.name, words)).split()
                if not set(want) <= set(got):
                    wrong.append("bash completes '%s' with %s" % (words, got))
    return wrong


def check_report(luasample, man, options):
    wrong = []
    with open(os.path.join(man, "luasample-report.1.scd"), encoding="utf-8") as f:
        text = f.read()
    table = re.search(r"^# FROM -jp\n(.*?)(?=^# )", text, re.M | re.S)
    letters = set(re.findall(r"^\|\s+(.*)$", table.group(1), re.M)) if table else set()
    letters = set(re.findall(r"-?\w+", plain(" ".join(letters))))
    for letter in ("f", "F", "l", "N", "-N", "s", "-s", "p", "v", "z", "vf", "vl", "vF", "zf", "zl", "fv", "lv", "fz", "fl",
                   "Fl", "r", "a", "A", "G", "m", "i"):
        if letter not in letters:
            wrong.append("the -jp table of luasample-report(1) lacks %s" % letter)
    for option in re.findall(r"--[a-z-]+", table.group(1)) if table else []:
        if option not in options and option != "--":
            wrong.append("the -jp table names %s, which report does not have" % option)
    for key in options["--by"][1].split("|"):
        if not re.search(r"^\*%s\*\n\t" % re.escape(key), text, re.M):
            wrong.append("--by %s is not described" % key)
    return wrong


def check_export(luasample, man, commands):
    """--list, the values of --format and the manual have the same formats."""
    with open(os.path.join(man, "luasample-export.1.scd"), encoding="utf-8") as f:
        section = re.search(r"^# FORMATS\n(.*?)(?=^# )", f.read(), re.M | re.S)
    described = re.findall(r"^\*([\w-]+)\*\n\t", section.group(1), re.M) if section else []
    listed = [line.split()[0] for line in output(luasample, "export", "--list").splitlines()]
    wrong = []
    for what, got in (("FORMATS of luasample-export(1)", described),
                      ("export --format", commands["export"]["--format"][1].split("|")[1:]),
                      ("report --format", commands["report"]["--format"][1].split("|")[2:])):
        if got != listed:
            wrong.append("%s has %s, export --list %s" % (what, got, listed))
    return wrong


def check_keys(luasample, man):
    """The KEYS of luasample-tui(1) are those of the browser's table, in its order, with its words."""
    with open(os.path.join(man, "luasample-tui.1.scd"), encoding="utf-8") as f:
        section = re.search(r"^# KEYS\n(.*?)(?=^# )", f.read(), re.M | re.S)
    page = [tuple(re.sub(r"\\(.)", r"\1", part) for part in m)
            for m in re.findall(r"^\*(.+)\*\n\t(.*)\.$", section.group(1) if section else "", re.M)]
    table = [tuple(line.split("\t")) for line in output(luasample, "tui", "--list-keys").splitlines()]
    table = [(key, text[0].upper() + text[1:]) for key, text in table]
    if page != table:
        return ["KEYS of luasample-tui(1) has %s, the table %s" % pair for pair in
                zip(page + [None] * len(table), table + [None] * len(page)) if pair[0] != pair[1]]
    return [] if table else ["luasample tui --list-keys lists none"]


def check_configuration(luasample, man):
    """luasample-daemon.conf(5) has each key of the table in its section, with argument and default, and no other."""
    with open(os.path.join(man, "luasample-daemon.conf.5.scd"), encoding="utf-8") as f:
        sections = re.findall(r"^# \[(\w+).*?\]\n(.*?)(?=^# )", f.read(), re.M | re.S)
    texts = dict(sections)
    page = {(name, key) for name, text in sections for key in re.findall(r"^\*([\w-]+)\* = _", text, re.M)}
    table = {}
    for line in output(luasample, "daemon", "--list-keys").splitlines():
        section, key, argument, default, _ = line.split("\t")
        table[section, key] = argument, "" if default == "-" else default
    wrong = ["luasample-daemon.conf(5) lacks %s of [%s]" % (k[1], k[0]) for k in sorted(set(table) - page)]
    wrong += ["luasample-daemon.conf(5) has %s of [%s], which is no key" % (k[1], k[0]) for k in sorted(page - set(table))]
    for (section, key), (argument, default) in sorted(table.items()):
        entry = re.search(r"^\*%s\* = _(.*)_\n((?:\t.*\n)+)" % re.escape(key), texts.get(section, ""), re.M)
        if entry and entry.group(1) != argument:
            wrong.append("luasample-daemon.conf(5): %s takes %s, the table says %s" % (key, entry.group(1), argument))
        if entry and default and "Default: %s." % default not in entry.group(2):
            wrong.append("luasample-daemon.conf(5): the default of %s is %s" % (key, default))
    return wrong if table else ["luasample daemon --list-keys lists none"]


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    luasample = os.path.abspath(sys.argv[1])
    man = sys.argv[2] if len(sys.argv) > 2 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "man")
    wrong = check(luasample, man)
    for w in wrong:
        print(w)
    print("%d differences between option tables and manual" % len(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
