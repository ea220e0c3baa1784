#!/usr/bin/env python3
"""tools/house counts a small tree right, and its tables fit this tree."""

import glob
import importlib.machinery
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TOOL = os.path.join(ROOT, "tools", "house")


def load():
    sys.dont_write_bytecode = True
    loader = importlib.machinery.SourceFileLoader("house", TOOL)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("house", loader))
    loader.exec_module(module)
    return module


house = load()


class HouseTest(unittest.TestCase):
    def measure(self, files, groups=None, stages=None):
        """The figures of a tree made of {path: text}."""
        with tempfile.TemporaryDirectory() as root:
            for path, text in files.items():
                os.makedirs(os.path.join(root, os.path.dirname(path)), exist_ok=True)
                with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                    file.write(text)
            return house.measure(root, groups or {}, stages or {})

    def definitions(self, text):
        return list(house.definitions(text))

    # ---- Counts.

    def test_files_are_counted_by_kind_and_tests_apart(self):
        result = self.measure({
            "base/a.h": "\n" * 10, "base/a.cc": "\n" * 30, "base/b.cc": "\n" * 500,
            "base/loops-inl.h": "\n" * 40, "net/wire.proto": "\n" * 60,
            "tests/base/a_test.cc": "\n" * 451,
            "base/CMakeLists.txt": "\n", "build/dev/c.cc": "\n", ".cache/c.cc": "\n",
        })
        source = result["source"]
        self.assertEqual((source["all"]["files"], source["all"]["lines"]), (5, 640))
        self.assertEqual(source["all"]["median_lines"], 40)
        self.assertEqual({kind: source[kind]["lines"] for kind in house.KINDS},
                         {".h": 10, "-inl.h": 40, ".cc": 530, ".proto": 60})
        self.assertEqual(source["all"]["short"], ["base/a.h"])
        self.assertEqual(source["all"]["long"], ["base/b.cc"])
        self.assertEqual(result["tests"]["all"]["long"], ["tests/base/a_test.cc"])

    def test_only_folders_with_many_files_of_their_own_are_full(self):
        result = self.measure({**{f"base/f{i}.h": "" for i in range(31)},
                               **{f"net/f{i}.h": "" for i in range(30)},
                               "net/deep/one.h": ""})
        folders = result["source"]["folders"]
        self.assertEqual(folders["full"], {"base": 31})
        self.assertEqual((folders["folders"], folders["median_files"]), (3, 30))

    def test_areas_have_their_tests_and_scripts_and_groups_are_summed_up(self):
        result = self.measure({
            "base/a.h": "\n" * 2, "tools/bench/a.cc": "\n" * 3, "tools/other.cc": "\n" * 5,
            "tools/bench/plot.py": "\n" * 7, "tools/run": "#!/bin/sh\n", "tools/notes": "text\n",
            "tests/tools/bench/a_test.cc": "\n" * 11, "tests/base/a_test.cc": "\n" * 13,
        }, groups={"measuring": ["base", "tools/bench"]})
        self.assertEqual(result["areas"]["tools"], {
            "files": 2, "lines": 8, "test_files": 1, "test_lines": 11, "script_lines": 8})
        self.assertEqual(result["areas"]["measuring (group)"], {
            "files": 2, "lines": 5, "test_files": 2, "test_lines": 24, "script_lines": 7})
        self.assertEqual(result["errors"], [])

    def test_a_folder_of_a_group_that_is_gone_is_an_error(self):
        errors = self.measure({"base/a.h": ""}, groups={"core": ["base", "wood"]})["errors"]
        self.assertEqual(len(errors), 1, errors)
        self.assertIn("'wood' of 'core'", errors[0])

    # ---- Headers.

    def test_a_headers_users_are_neither_its_own_cc_nor_tests(self):
        headers = self.measure({
            "base/none.h": "", "base/none.cc": '#include "base/none.h"\n',
            "tests/base/none_test.cc": '#include "base/none.h"\n',
            "base/one.h": '#include "base/two.h"\n', "base/two.h": "",
            "net/user.cc": '#include "base/one.h"\n# include "base/two.h"  // and more\n',
            "torch_plugin/include/hvdlite/public.h": "",
        })["headers"]
        self.assertEqual(headers, {"counted": 3, "without_user": ["base/none.h"],
                                   "with_one_user": {"base/one.h": "net/user.cc"}})

    def test_an_include_line_in_a_comment_uses_nothing(self):
        headers = self.measure({"a/a.h": "", "b/b.cc": '/*\n#include "a/a.h"\n*/\n'})["headers"]
        self.assertEqual(headers["without_user"], ["a/a.h"])

    # ---- Circles.

    def test_a_circle_of_folders_is_named_with_what_makes_it(self):
        circles = self.measure({
            "a/x.h": '#include "b/x.h"\n', "b/x.h": "", "b/y.h": '#include "c/x.h"\n',
            "c/x.h": '#include "a/y.h"\n', "a/y.h": "", "d/x.h": '#include "a/x.h"\n',
        })["circles"]
        self.assertEqual(circles["folders"], [{
            "nodes": ["a", "b", "c"], "way": ["a", "b", "c", "a"],
            "because": ["a/x.h includes b/x.h", "b/y.h includes c/x.h", "c/x.h includes a/y.h"]}])
        self.assertEqual(circles["areas"], circles["folders"])
        self.assertEqual(circles["modules"] + circles["files"], [])

    def test_a_header_and_its_cc_make_circles_together(self):
        circles = self.measure({
            "a/x.h": "", "a/x.cc": '#include "a/x.h"\n#include "a/y.h"\n',
            "a/y.h": '#include "a/x.h"\n',
        })["circles"]
        self.assertEqual([circle["nodes"] for circle in circles["modules"]], [["a/x", "a/y"]])
        self.assertEqual(circles["files"] + circles["folders"], [])

    def test_headers_that_include_one_another_are_a_circle_of_files(self):
        circles = self.measure({"a/x.h": '#include "a/y.h"\n', "a/y.h": '#include "a/x.h"\n',
                                "tests/a/x.h": '#include "tests/a/y.h"\n',
                                "tests/a/y.h": '#include "tests/a/x.h"\n'})["circles"]
        self.assertEqual([circle["way"] for circle in circles["files"]],
                         [["a/x.h", "a/y.h", "a/x.h"]])

    # ---- Hops.

    def test_definitions_have_qualified_names_and_what_is_in_bodies_is_none(self):
        self.assertEqual(self.definitions("""
            namespace one::two {
            namespace {
            constexpr int kTable[] = {1, 2};
            int Twice(int x = 2) { if (x) { return Other(x); } return 'x' + 1'000; }  // { Not()
            }  // namespace
            class Ahead;
            template <class T = Map<int, char>>
            class ABSL_CAPABILITY("mutex") Box final : public Base<T> {
             public:
              Box() = default;
              virtual absl::StatusOr<T> Get(std::function<void()> f) const = 0;
              bool operator()(int x) { return x > 0; }
              struct Part { int x = 0; };
             private:
              int member_ = 0;
            };
            void Box<int>::Set(const Options& options = {}) : x_(1) { Call(); }
            Box<int>::Box(int x) : x_({.a = x}, x), y_(x) { Call(); }
            int Last() { return 0; }
            }
        """), [
            ("one::two::(unnamed)::Twice", True), ("one::two::Box", True),
            ("one::two::Box::Box", False), ("one::two::Box::Get", False),
            ("one::two::Box::operator()", True), ("one::two::Box::Part", True),
            ("one::two::Box::Set", True), ("one::two::Box::Box", True),
            ("one::two::Last", True)])

    HOPS_TREE = {
        "a/hook.h": "namespace n { class Hook { void Run(); }; void Free(); }\n",
        "a/hook.cc": "namespace n { void Hook::Run() { Free(); } }\n",
        "b/free.cc": "namespace n { void Free() {} }\n",
        "b/wire.proto": "package n.wire;\nmessage Report {\n}\n",
        "c/caller.cc": "void Caller() { n::Free(); }\n",
        "tests/a/hook_test.cc": "class Hook { void Run() {} };\n",
    }

    def test_hops_are_the_files_that_define_the_symbols(self):
        result = self.measure(self.HOPS_TREE, stages={"in": ["Hook::Run", "Free"],
                                                      "out": ["wire::Report"]})
        hops = result["hops"]
        self.assertEqual(result["errors"], [])
        self.assertEqual(hops["files"], ["a/hook.cc", "b/free.cc", "b/wire.proto"])
        self.assertEqual(hops["stages"]["in"]["headers"], ["a/hook.h"])
        self.assertEqual(len(hops["files_with_headers"]), 4)
        self.assertEqual(hops["modules"], ["a/hook", "b/free", "b/wire"])

    def test_a_symbol_that_is_defined_nowhere_is_an_error(self):
        errors = self.measure(self.HOPS_TREE, stages={"in": ["Hook::Walk"]})["errors"]
        self.assertEqual(len(errors), 1, errors)
        self.assertIn("'Hook::Walk' is defined nowhere", errors[0])

    def test_a_symbol_that_is_defined_twice_is_an_error(self):
        errors = self.measure({"a/a.h": "class Box {};\n",
                               "b/b.h": "namespace b { class Box {}; }\n"},
                              stages={"in": ["Box"], "out": ["b::Box"]})["errors"]
        self.assertEqual(len(errors), 1, errors)
        self.assertIn("'Box' is defined in a/a.h, b/b.h", errors[0])

    # ---- The program.

    def test_the_tables_fit_this_tree_and_the_json_file_has_what_is_printed(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "house.json")
            run = subprocess.run([sys.executable, "-B", TOOL, "--json", path],
                                 capture_output=True, text=True, check=False)
            self.assertEqual((run.returncode, run.stderr), (0, ""))
            with open(path, encoding="utf-8") as file:
                result = json.load(file)
        self.assertGreater(len(result["hops"]["files"]), 20)
        self.assertIn(f"hops of a gradient: {len(result['hops']['files'])} files", run.stdout)
        self.assertIn(str(result["source"]["all"]["lines"]), run.stdout)

    def test_what_contributing_names_as_places_to_add_to_is_there(self):
        with open(os.path.join(ROOT, "CONTRIBUTING.md"), encoding="utf-8") as file:
            table = file.read().split("## Where to add what\n")[1].split("\n## ")[0]
        paths = [path for path in re.findall(r"`([\w*./]+/[\w*./]+)`", table)
                 if os.path.isdir(os.path.join(ROOT, path.split("/")[0]))]
        self.assertGreater(len(paths), 10)
        for path in paths:
            there = os.path.join(ROOT, path.replace("NAME", "*"))
            self.assertTrue(glob.glob(there) or glob.glob(there + ".*"), path)

    def test_a_tree_that_the_tables_do_not_fit_ends_with_a_status(self):
        with tempfile.TemporaryDirectory() as folder:
            run = subprocess.run([sys.executable, "-B", TOOL, "--root", folder],
                                 capture_output=True, text=True, check=False)
        self.assertEqual(run.returncode, 1)
        self.assertIn("GROUPS: 'base' of 'core' is not there", run.stderr)


if __name__ == "__main__":
    unittest.main()
