#!/usr/bin/python3
"""tests/check_width.py: what is too wide is found, broken where that is possible, and may not become more."""
import collections
import contextlib
import importlib.util
import io
import os
import unittest

PATH = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "check_width.py")
spec = importlib.util.spec_from_file_location("check_width", PATH)
check_width = importlib.util.module_from_spec(spec)
spec.loader.exec_module(check_width)

WORDS = "/* " + "word " * 30 + "*/"
CALL = "        call(" + ", ".join(["argument"] * 12) + ");"


class Width(unittest.TestCase):
    def test_a_tab_is_eight_columns(self):
        self.assertEqual(check_width.wide_code("\t" * 12 + "ab;;\n"), [])
        self.assertEqual(check_width.wide_code("\t" * 12 + "abc;;\n"), [1])

    def test_code_and_comments_are_told_apart(self):
        text = "\n".join([WORDS, CALL, "int a;", "int b;" + " " * 90 + "/* beside it */", "x();"])
        self.assertEqual(check_width.wide_lines(text), [1, 4])
        self.assertEqual(check_width.wide_code(text), [2])

    def test_a_comment_in_a_string_is_code(self):
        text = "puts(\"" + WORDS + "\");"
        self.assertEqual((check_width.wide_lines(text), check_width.wide_code(text)), ([], [1]))

    def test_a_comment_is_broken_without_a_change_of_words(self):
        new = check_width.mend(WORDS + "\nint a;\n")
        self.assertEqual((check_width.wide_lines(new), new.count("word"), new.count("*/")), ([], 30, 1))
        self.assertEqual(check_width.mend(new), new)

    def test_lists_stay(self):
        text = "/* of these:\n * - " + "word " * 30 + "\n * - b */\n"
        self.assertEqual(check_width.mend(text), text)

    def wrong(self, lines, known):
        before, check_width.CODE = check_width.CODE, known
        try:
            with contextlib.redirect_stdout(io.StringIO()) as out:
                return check_width.wrong_code(collections.defaultdict(list, lines)), out.getvalue()
        finally:
            check_width.CODE = before

    def test_there_may_not_be_more_of_code(self):
        bad, said = self.wrong({"a": ["a/x.c:1", "a/x.c:2"], "b": ["b/y.c:3"]}, {"a": 1, "b": 1})
        self.assertEqual(bad, 1)
        self.assertIn("a/x.c:2: goes beyond column 100", said)

    def test_a_folder_that_is_not_known_has_none(self):
        self.assertEqual(self.wrong({"new": ["new/x.c:1"]}, {})[0], 1)

    def test_fewer_are_said(self):
        bad, said = self.wrong({"a": ["a/x.c:1"]}, {"a": 2})
        self.assertEqual((bad, said), (0, "CODE says 2 of a, there are 1: lower it\n"))


if __name__ == "__main__":
    unittest.main()
