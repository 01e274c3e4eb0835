#!/usr/bin/python3
"""tests/check_includes.py: each of its rules can fail. A small tree that is right, and one fault at a time."""
import contextlib
import importlib.util
import io
import os
import tempfile
import unittest

PATH = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "check_includes.py")
spec = importlib.util.spec_from_file_location("check_includes", PATH)
check_includes = importlib.util.module_from_spec(spec)
spec.loader.exec_module(check_includes)

ROOMS = {"low": ("", ""), "low/wire": ("", ""), "high": ("low", "part.h"), "formats/wire": ("", "")}
FILES = {
    "low/base.h": "struct ls_base { int a; };\n/* ls_in_comment(int a); */\nint ls_base_get(const struct ls_base *b);\n",
    "low/base.c": "#include \"low/base.h\"\nint ls_base_get(const struct ls_base *b)\n{\n        return b->a;\n}\n",
    "low/wire/wire.h": "static inline int ls_wire(void) { return 1; }\n",
    "high/high.h": "int ls_high(void);\nint ls_deep(void);\n",
    "high/high.c": "#include \"high/high.h\"\n#include \"low/base.h\"\n#include <popt.h>\nint ls_high(void)\n{\n        return 0;\n}\n",
    "high/deep.c": "#include \"high/high.h\"\n#include \"high/part.h\"\nint ls_deep(void)\n{\n        return ls_part();\n}\n"
                   "int ls_part(void)\n{\n        return 0;\n}\n",
    "high/part.h": "int ls_part(void);\n",
    "formats/wire/record.h": "#include <stdint.h>\n",
    "tests/odd.c": "#include \"high/odd.h\"\n",
}


class Rules(unittest.TestCase):
    def run_with(self, files=(), rooms=ROOMS, known=(), provided=()):
        """What the check says of the small tree with these files in it (None: without)."""
        tree = {**FILES, **dict(files)}
        with tempfile.TemporaryDirectory() as root:
            for path, text in tree.items():
                if text is not None:
                    os.makedirs(os.path.join(root, os.path.dirname(path)), exist_ok=True)
                    with open(os.path.join(root, path), "w") as f:
                        f.write(text)
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                bad = check_includes.Check(root, rooms, set(provided)).run(dict(known))
        self.assertEqual(bad, len(out.getvalue().splitlines()))
        return out.getvalue()

    def refused(self, sentence, *args, **kwargs):
        self.assertIn(sentence, self.run_with(*args, **kwargs))

    def test_a_tree_that_is_right_passes(self):
        self.assertEqual(self.run_with(), "")

    def test_an_edge_that_is_not_in_the_row(self):
        self.refused("edge: low/more.c:1: low must not use high/part.h", {"low/more.c": '#include "high/part.h"\n'})

    def test_what_is_a_folders_own(self):
        for kind in ("parts", "private"):
            self.refused("inside: high/more.c:1: low/x_%s.h is of its folder alone" % kind,
                         {"low/x_%s.h" % kind: "", "high/more.c": '#include "low/x_%s.h"\n' % kind})
            self.assertEqual(self.run_with({"low/x_%s.h" % kind: "", "low/x.c": '#include "low/x_%s.h"\n' % kind}), "")

    def test_a_table_that_includes(self):
        self.refused("table: low/x.def:1: includes low/base.h", {"low/x.def": '#include "low/base.h"\n'})

    def test_a_folder_below_has_a_row_of_its_own(self):
        self.refused("edge: low/more.c:1: low must not use low/wire/wire.h", {"low/more.c": '#include "low/wire/wire.h"\n'})

    def test_an_edge_that_is_allowed_and_not_used(self):
        self.refused("edge: low: may use low/wire, and does not", rooms={**ROOMS, "low": ("low/wire", "")})

    def test_a_folder_without_a_row(self):
        self.refused("edge: new: has no row", {"new/a.c": "\n"})

    def test_a_row_without_a_folder(self):
        self.refused("edge: gone: has a row and no sources", rooms={**ROOMS, "gone": ("", "")})

    def test_a_header_that_is_not_named_from_the_root(self):
        self.refused('edge: low/more.c:1: "base.h" is not a path from the root', {"low/more.c": '#include "base.h"\n'})

    def test_a_circle_of_files(self):
        self.refused("circle: low/a: in a circle: low/a low/b",
                     {"low/a.h": '#include "low/b.h"\n', "low/b.c": '#include "low/a.h"\n', "low/b.h": "\n"})

    def test_a_circle_of_folders(self):
        self.refused("circle: low: in a circle: high low", {"low/more.c": '#include "high/part.h"\n'},
                     rooms={**ROOMS, "low": ("high", "")})

    def test_too_many_modules(self):
        many = {"low/wire/m%d.c" % i: "\n" for i in range(24)}
        self.assertEqual(self.run_with(many), "")
        many["low/wire/wire.c"] = "\n"                  # of a module that is there
        self.assertEqual(self.run_with(many), "")
        self.refused("modules: low/wire: 26 modules, 25 at most", {**many, "low/wire/last.h": "\n"})

    def test_a_prototype_outside_of_its_pair(self):
        self.refused("prototype: low/base.h: ls_other is in low/other.c",
                     {"low/base.h": FILES["low/base.h"] + "int ls_other(\n        int a);\n",
                      "low/other.c": "int ls_other(int a)\n{\n        return a;\n}\n"})

    def test_a_door_is_of_its_own_folder_only(self):
        self.refused("prototype: high/high.h: ls_low is in low/low.c",
                     {"high/high.h": FILES["high/high.h"] + "int ls_low(void);\n",
                      "low/low.c": "int ls_low(void)\n{\n        return 0;\n}\n"})

    def test_a_prototype_without_a_function(self):
        self.refused("prototype: low/base.h: ls_none is in no file",
                     {"low/base.h": FILES["low/base.h"] + "int ls_none(void);\n"})

    def test_a_door_that_needs_to_be_none(self):
        self.refused("prototype: high/part.h: is a door, and needs to be none",
                     {"high/part.c": "int ls_part(void)\n{\n        return 0;\n}\n"})

    def test_what_others_provide_is_declared(self):
        none = {"low/base.h": FILES["low/base.h"] + "int ls_none(void);\n"}
        self.assertEqual(self.run_with(none, provided=["ls_none"]), "")
        self.refused("prototype: ls_none: is declared nowhere", provided=["ls_none"])

    def test_a_library_in_what_enters_other_processes(self):
        self.refused("library: formats/wire/record.h:1: uses <zstd.h>", {"formats/wire/record.h": "#include <zstd.h>\n"})

    def test_what_is_known_may_be_no_more(self):
        none = {"low/base.h": FILES["low/base.h"] + "int ls_none(void);\nint ls_nobody(void);\n"}
        self.assertEqual(self.run_with(none, known={"low": {"prototype": 2}}), "")
        self.refused("prototype: low/base.h: ls_nobody is in no file", none, known={"low": {"prototype": 1}})

    def test_what_is_known_may_be_no_less(self):
        self.refused("prototype: KNOWN says 1 of low, there are 0: lower it", known={"low": {"prototype": 1}})


if __name__ == "__main__":
    unittest.main()
