#!/usr/bin/python3
"""Checks the rooms of the source, and their doors: check_includes.py [ROOT]

Each row of ROOMS is a folder with sources: the folders whose headers it may use, and its doors. A file may always use its
own folder; headers of the project are included by their path from the root. Checked are:

  edge       what is included stands in the row, and what the row allows is used
  inside     NAME_parts.h and NAME_private.h are their folder's alone
  table      NAME.def includes nothing, so that it can be in no circle
  circle     neither folders nor files (NAME.c and NAME.h are one) include each other
  modules    a folder has at most 25 of them: NAME.c, NAME.h or both; or a table, NAME.def
  prototype  one of a header, ls_..., has its function in the file of the same name; or the header is a door of the function's
             folder: NAME/NAME.h, or one that the row names, which is needed
  library    what enters other processes includes headers of the C library only

KNOWN says how many of these are known and not mended yet, by the first folder of the path. There may not be more; when there
are fewer, the number goes down with them."""
import collections
import os
import re
import sys

#   folder: (folders whose headers it may use, doors beside NAME/NAME.h)
ROOMS = {
    ".": ("cli daemon daemon/http push record record/worker record/writer report report/coverage report/diff report/heap report/jit report/options report/tui store", ""),
    "formats/wire": ("", ""),
    "formats": ("formats/wire", ""),
    "formats/jit": ("formats formats/wire", ""),
    "formats/trace": ("formats formats/jit formats/wire", "reader.h reader_parts.h writer.h writer_parts.h"),
    "formats/exact": ("formats/wire", ""),
    "formats/export": ("formats formats/jit formats/wire", "firefox.h"),
    "formats/merge": ("formats formats/trace formats/wire", ""),
    "cli": ("formats formats/wire", "command.h"),
    # the agent: from the bottom up
    "libsample": ("formats/wire", ""),
    "libsample/inject": ("formats/wire libsample", ""),
    "libsample/handler": ("formats/wire libsample", ""),
    "libsample/libc": ("libsample libsample/handler libsample/inject", ""),
    "libsample/recording": ("formats/wire libsample libsample/handler libsample/inject libsample/libc", ""),
    "libsample/jit": ("libsample libsample/handler libsample/inject", ""),
    "libsample/exact": ("formats/wire libsample libsample/handler libsample/inject libsample/jit", "private.h update.h"),
    "libsample/alloc": ("formats/wire libsample libsample/handler libsample/recording", ""),
    "libsample/vm": ("formats/wire libsample libsample/alloc libsample/exact libsample/handler libsample/jit libsample/recording", ""),
    "libsample/attach": ("formats/wire libsample libsample/handler "
        "libsample/inject libsample/libc libsample/recording libsample/vm", ""),
    "libsample/api": ("formats/wire libsample libsample/attach "
        "libsample/handler libsample/libc libsample/recording libsample/vm", ""),
    "libsample/interpose": ("libsample libsample/alloc libsample/api libsample/attach libsample/handler "
        "libsample/inject libsample/jit libsample/libc libsample/recording libsample/vm", ""),
    "libsample/start": ("libsample libsample/attach libsample/handler libsample/inject "
        "libsample/interpose libsample/libc libsample/recording libsample/vm", ""),
    # the recorder
    "record/watch": ("formats/wire libsample libsample/handler libsample/vm", "outside.h suspended_private.h"),
    "record/worker": ("formats/wire libsample/inject record/watch", ""),
    "record/native": ("formats/trace formats/wire record/process record/worker", ""),
    "record/translate": ("formats/exact formats/jit formats/trace formats/wire record/native record/process record/worker", ""),
    "record/process": ("cli formats/wire record/worker", ""),
    "record/tick": ("formats/wire libsample/inject record/process", ""),
    "record/attach": ("cli formats formats/wire libsample/inject record/process record/worker", "subject.h"),
    "record/control": ("cli record/process", ""),
    "record/writer": ("formats formats/trace formats/wire record/native record/process record/translate record/worker", ""),
    "record": ("cli daemon/client formats formats/wire libsample/inject record/attach record/control "
        "record/process record/tick record/translate record/watch record/worker record/writer", ""),
    # the report
    "report/model": ("cli formats formats/export formats/trace formats/wire", ""),
    "report/options": ("cli formats formats/export formats/trace formats/wire report/model store", ""),
    "report/view": ("cli formats formats/trace formats/wire report/model", ""),
    "report/page": ("cli formats formats/trace formats/wire report/jit report/model report/view", ""),
    "report/tui": ("cli formats formats/trace formats/wire report/jit report/model report/options report/view", ""),
    "report/coverage": ("cli formats formats/trace formats/wire report/model report/options", ""),
    "report/heap": ("cli formats formats/wire", ""),
    "report/jit": ("cli formats formats/jit formats/trace formats/wire report/model report/options report/view", ""),
    "report/diff": ("cli formats formats/export formats/merge "
        "formats/trace report/model report/options report/page report/view", ""),
    "report": ("cli formats formats/export formats/merge formats/trace "
        "formats/wire report/model report/options report/tui report/view", ""),
    "push": ("cli formats formats/export formats/trace record/worker report report/model report/options", ""),
    # the daemon
    "store": ("cli formats formats/merge formats/trace formats/wire", ""),
    "daemon/client": ("cli formats/wire", ""),
    "daemon/http": ("cli formats formats/export formats/wire record/worker record/writer store", ""),
    "daemon/host": ("formats/wire record/process", ""),
    "daemon": ("cli daemon/client daemon/host daemon/http formats formats/wire push record/worker record/writer store", ""),
}
KNOWN = {}
# declared where others are to have the function: seen.h, for a process that reads another one's memory
PROVIDED = {"ls_seen_at", "ls_seen_copy"}
MODULES_MOST = 25
LIBC_ONLY = ["formats/wire", "libsample"]       # what enters other processes: no other library's headers
LIBRARIES = re.compile(r"^(popt|zstd|xxhash|uthash|elfutils|gelf|libelf|lua|lauxlib|luajit|curses)", re.I)
SKIP = {"tests", "subprojects", "examples"}


def folder_of(path):
    return os.path.dirname(path) or "."


def module_of(path):
    """NAME.c and NAME.h are one; a table NAME.def is one of its own."""
    return path if path.endswith(".def") else os.path.splitext(path)[0]


def sources(root):
    """Path from the root -> text."""
    found = {}
    for base, dirs, names in os.walk(root):
        dirs[:] = [d for d in dirs if d not in SKIP and not d.startswith((".", "build"))]
        for name in names:
            if name.endswith((".c", ".h", ".def")):
                path = os.path.join(base, name)
                with open(path, encoding="utf-8", errors="replace") as f:
                    found[os.path.normpath(os.path.relpath(path, root))] = f.read()
    return found


def circles(graph):
    """The sets of nodes from which each other one can be reached (Tarjan)."""
    index, low, stack, found = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for to in sorted(graph.get(node, ())):
            if to not in index:
                visit(to)
            if to in stack:
                low[node] = min(low[node], low[to])
        if low[node] == index[node]:
            circle = stack[stack.index(node):]
            del stack[stack.index(node):]
            if len(circle) > 1:
                found.append(sorted(circle))

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return found


def declarations(text):
    """What stands outside of braces, each up to its ; or {."""
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    text = re.sub(r"^[ \t]*#(?:\\\n|.)*$", "", text, flags=re.M)
    text = re.sub(r"'(\\.|[^'\\\n])'|\"(\\.|[^\"\\\n])*\"", " ", text)
    depth, begin, found = 0, 0, []
    for m in re.finditer(r"[{};]", text):
        if m.group() == "}":
            depth -= 1
            begin = m.end() if depth == 0 else begin
            continue
        if depth == 0:
            found.append((" ".join(text[begin:m.start()].split()), m.group()))
            begin = m.end()
        depth += m.group() == "{"
    return found


def functions(files, suffix, end):
    """Names of the functions ls_... that files of this suffix declare (end ;) or define (end {) -> their files."""
    found = collections.defaultdict(list)
    for path, text in files.items():
        for words, mark in declarations(text) if path.endswith(suffix) else ():
            name = re.search(r"\b(ls_\w+) ?\(", words)
            if name and mark == end and "=" not in words and not re.match(r"(static|typedef)\b", words):
                found[name.group(1)].append(path)
    return found


class Check:
    def __init__(self, root, rooms, provided):
        self.files = sources(root)
        self.root, self.rooms, self.provided = root, rooms, provided
        self.wrong = []                 # (rule, first folder, sentence)

    def say(self, rule, path, sentence):
        self.wrong.append((rule, path.split("/")[0], sentence))

    def target(self, path, number, name):
        """The project's file of this name, or None."""
        if name in self.files:
            return name
        if "/" not in name and os.path.join(os.path.dirname(path), name) in self.files:
            self.say("edge", path, "%s:%d: \"%s\" is not a path from the root" % (path, number, name))
        return None                     # made by the build

    def includes(self):
        self.of_files, self.of_folders = collections.defaultdict(set), collections.defaultdict(set)
        for path, text in self.files.items():
            folder = folder_of(path)
            for number, line in enumerate(text.split("\n"), 1):
                m = re.match(r'\s*#\s*include\s+(?:"([^"]+)"|<([^>]+)>)', line)
                if m and m.group(2):
                    if LIBRARIES.match(m.group(2)) and any((folder + "/").startswith(l + "/") for l in LIBC_ONLY):
                        self.say("library", path, "%s:%d: uses <%s>" % (path, number, m.group(2)))
                    continue
                to = self.target(path, number, m.group(1)) if m else None
                if m and path.endswith(".def"):
                    self.say("table", path, "%s:%d: includes %s" % (path, number, m.group(1)))
                if to and module_of(to) != module_of(path):
                    self.of_files[module_of(path)].add(module_of(to))
                if to and folder_of(to) != folder:
                    if to.endswith(("_parts.h", "_private.h")):
                        self.say("inside", path, "%s:%d: %s is of its folder alone" % (path, number, to))
                    self.of_folders[folder].add(folder_of(to))
                    if folder_of(to) not in self.rooms.get(folder, ("", ""))[0].split():
                        self.say("edge", path, "%s:%d: %s must not use %s" % (path, number, folder, to))

    def rows(self):
        folders = {folder_of(path) for path in self.files}
        for folder in folders - set(self.rooms):
            self.say("edge", folder, "%s: has no row" % folder)
        for folder, (uses, doors) in self.rooms.items():
            if folder not in folders:
                self.say("edge", folder, "%s: has a row and no sources" % folder)
                continue
            for unused in set(uses.split()) - self.of_folders[folder]:
                self.say("edge", folder, "%s: may use %s, and does not" % (folder, unused))
            modules = {module_of(path) for path in self.files if folder_of(path) == folder}
            if len(modules) > MODULES_MOST:
                self.say("modules", folder, "%s: %d modules, %d at most" % (folder, len(modules), MODULES_MOST))

    def rounds(self):
        for circle in circles(self.of_files) + circles(self.of_folders):
            for node in circle:
                self.say("circle", node, "%s: in a circle: %s" % (node, " ".join(circle)))

    def prototypes(self):
        declared, defined = functions(self.files, ".h", ";"), functions(self.files, ".c", "{")
        needed = set()
        for name, headers in declared.items():
            for header in headers:
                at = defined.get(name, [])
                if any(module_of(f) == module_of(header) for f in at) or name in self.provided:
                    continue
                folder = folder_of(header)
                row = self.rooms.get(folder, ("", ""))
                if any(folder_of(f) == folder for f in at):
                    if os.path.basename(header) in row[1].split() or \
                            os.path.basename(folder) + ".h" == os.path.basename(header):
                        needed.add(header)
                        continue
                self.say("prototype", header, "%s: %s is in %s" % (header, name, ", ".join(at) or "no file"))
        for folder, (_, doors) in self.rooms.items():
            for door in doors.split():
                if os.path.join(folder, door) not in needed:
                    self.say("prototype", folder, "%s/%s: is a door, and needs to be none" % (folder, door))
        for name in self.provided - set(declared):
            self.say("prototype", name, "%s: is declared nowhere" % name)

    def run(self, known):
        """Prints what is wrong, and returns how much."""
        self.includes()
        self.rows()
        self.rounds()
        self.prototypes()
        count = collections.Counter((rule, top) for rule, top, _ in self.wrong)
        bad = 0
        for rule, top, sentence in sorted(self.wrong):
            if count[rule, top] > known.get(top, {}).get(rule, 0):
                print("%s: %s" % (rule, sentence))
                bad += 1
        for top, rules in known.items():
            for rule, n in rules.items():
                if count[rule, top] < n:
                    print("%s: KNOWN says %d of %s, there are %d: lower it" % (rule, n, top, count[rule, top]))
                    bad += 1
        return bad


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    check = Check(root, ROOMS, PROVIDED)
    bad = check.run(KNOWN)
    print("%d files, %d folders, %d wrong, %d known" % (len(check.files), len(ROOMS), bad, len(check.wrong) - bad))
    return 1 if bad or not check.files else 0


if __name__ == "__main__":
    sys.exit(main())
