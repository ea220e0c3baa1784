#!/usr/bin/env python3
"""Tests of tools/changed_tests with a small tree of CTest's."""

import contextlib
import importlib.machinery
import importlib.util
import io
import os
import shutil
import subprocess
import tempfile
import unittest

TOOL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools",
                    "changed_tests")
loader = importlib.machinery.SourceFileLoader("changed_tests", os.path.abspath(TOOL))
spec = importlib.util.spec_from_loader("changed_tests", loader)
changed_tests = importlib.util.module_from_spec(spec)
loader.exec_module(changed_tests)


class ChangedTestsTest(unittest.TestCase):

    def setUp(self):
        self.root = os.path.realpath(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.root)
        self.tree = os.path.join(self.root, "build")
        self.write("tests/script.sh", "#!/bin/sh\ntrue\n", executable=True)
        self.write("lib/code.cc", "int main() {}\n")
        self.write("docs/page.md", "text\n")
        self.write("build/bin/program", "#!/bin/sh\ntrue\n", executable=True)
        self.write("build/bin/fails", "#!/bin/sh\nfalse\n", executable=True)
        self.write_tests(environment="A=1")

    def write(self, path, text, executable=False):
        path = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        if executable:
            os.chmod(path, 0o755)

    def write_tests(self, environment):
        program, script = f"{self.tree}/bin/program", f"{self.root}/tests/script.sh"
        self.write("build/CTestTestfile.cmake", f"""
add_test("program" "{program}")
set_tests_properties("program" PROPERTIES ENVIRONMENT "{environment}")
add_test("script_of_program" "{script}" "{program}")
add_test("script_of_folder" "{script}" "--bin={self.tree}/bin")
add_test("script" "{script}")
add_test("fails" "{self.tree}/bin/fails")
""")

    def selected(self):
        """The names of those that ctest runs of what is selected; runs them."""
        record, tests = f"{self.tree}/record.json", f"{self.tree}/list"
        status = changed_tests.select(self.tree, record, tests, self.root)
        if status == 3:
            return set()
        self.assertEqual(status, 0)
        junit = f"{self.tree}/junit.xml"
        run = subprocess.run(["ctest", "--test-dir", self.tree, "-I", tests, "--output-junit",
                              junit], capture_output=True, text=True, check=False)
        changed_tests.update(record, tests, junit)
        names = {line.split()[3] for line in run.stdout.splitlines() if "Test #" in line
                 and "sec" in line}
        return names

    def test_all_run_at_first_and_then_those_that_failed(self):
        everything = {"program", "script_of_program", "script_of_folder", "script", "fails"}
        self.assertEqual(self.selected(), everything)
        self.assertEqual(self.selected(), {"fails"})

    def test_a_program_that_was_built_anew_is_tested_with_all_that_run_it(self):
        self.selected()
        self.write("build/bin/program", "#!/bin/sh\ntrue again\n", executable=True)
        self.assertEqual(self.selected(),
                         {"program", "script_of_program", "script_of_folder", "fails"})

    def test_a_script_that_changed_concerns_all_scripts(self):
        self.selected()
        self.write("docs/page.md", "other text\n")
        self.assertEqual(self.selected(),
                         {"script_of_program", "script_of_folder", "script", "fails"})

    def test_code_alone_concerns_what_reads_it(self):
        self.selected()
        self.write("lib/code.cc", "int main() { return 0; }\n")
        self.assertEqual(self.selected(), {"script", "fails"})

    def test_another_environment_is_another_test(self):
        self.selected()
        self.write_tests(environment="A=2")
        self.assertEqual(self.selected(), {"program", "fails"})

    def test_nothing_is_selected_where_all_have_passed(self):
        self.write("build/bin/fails", "#!/bin/sh\ntrue\n", executable=True)
        self.selected()
        self.assertEqual(self.selected(), set())

    def test_what_failed_with_the_same_inputs_runs_again(self):
        self.selected()
        self.write("build/junit.xml", '<testsuite><testcase name="program" status="fail"/>'
                                      "</testsuite>")
        changed_tests.update(f"{self.tree}/record.json", f"{self.tree}/list",
                             f"{self.tree}/junit.xml")
        self.assertEqual(self.selected(), {"program", "fails"})

    def test_what_did_not_run_says_why_and_runs_again(self):
        self.selected()
        self.write("build/junit.xml", '<testsuite><testcase name="program" status="notrun">'
                                      "<system-out>Looking.\nNo namespaces here.\n"
                                      "</system-out></testcase></testsuite>")
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            changed_tests.update(f"{self.tree}/record.json", f"{self.tree}/list",
                                 f"{self.tree}/junit.xml")
        self.assertEqual(printed.getvalue(), "program did not run: No namespaces here.\n")
        self.assertEqual(self.selected(), {"program", "fails"})

    def compile(self, path, text, *arguments):
        path = os.path.join(self.root, path)
        subprocess.run(["c++", "-x", "c++", "-", "-o", path, *arguments], input=text, text=True,
                       check=True)

    def test_a_compiled_test_depends_on_the_paths_compiled_into_it(self):
        runs = f'#include <cstdlib>\nint main() {{ return system("{self.tree}/bin/helper"); }}'
        self.write("build/bin/helper", "#!/bin/sh\ntrue\n", executable=True)
        self.compile("build/bin/program", runs)
        self.selected()
        self.write("build/bin/helper", "#!/bin/sh\ntrue again\n", executable=True)
        self.assertIn("program", self.selected())

    def test_a_compiled_test_depends_on_our_shared_libraries(self):
        library = f"{self.tree}/bin/libours.so"
        self.compile("build/bin/libours.so", "int f() { return 0; }", "-shared", "-fPIC")
        self.compile("build/bin/program", "int f(); int main() { return f(); }", "-x", "none",
                     library, f"-Wl,-rpath,{self.tree}/bin")
        inputs = changed_tests.Inputs(self.root)
        self.assertEqual(inputs.libraries_of(f"{self.tree}/bin/program"), [library])
        self.selected()
        self.compile("build/bin/libours.so", "int f() { return 0; } int g;", "-shared", "-fPIC")
        self.assertIn("program", self.selected())


if __name__ == "__main__":
    unittest.main()
