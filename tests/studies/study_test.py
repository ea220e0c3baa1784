#!/usr/bin/env python3
"""Tests studies/study with fake programs and studies."""

import contextlib
import io
import json
import os
import pathlib
import re
import shutil
import stat
import sys
import tempfile
import unittest
import xml.etree.ElementTree as xml

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT))
from studies.runner import chart, command, data, page as pages, specs, study as studies  # noqa: E402

PREAMBLE = "from studies.runner.study import Machine, Study\n"
DECLARED = ('\nSTUDY = Study(name="{name}", title="A study, of fakes", citation="A. Author, 2020",\n'
            '    machine=Machine({machine}, processor="a big one"), experiment="Fakes are run.",\n'
            '    programs=("trainer",), differs=("It is a fake.",), differs_small=("It is small.",),\n'
            '    run=run)\n')
TRAINER = """#!/usr/bin/env python3
import json, os, sys
arguments = dict(zip(sys.argv[1::2], sys.argv[2::2]))
print("arguments", sys.argv[1:], os.environ.get("A_VARIABLE"))
if "--fail" in arguments:
    print("what went wrong", file=sys.stderr)
    sys.exit(3)
if "--report" in arguments:
    with open(arguments["--report"], "w") as file:
        json.dump({"images_per_second": {"median": 7, "intervals": [1.0, 40.0, 50.0, 60.0]},
                   "machine": {"host": "secret", "LibTorch": "1.2.3"}}, file)
if "--make" in arguments:
    with open(os.path.join(arguments["--make"], "digits"), "w") as file:
        file.write("generated")
"""
SWEEP = """#!/usr/bin/env python3
import os, sys
spec, _, output = sys.argv[1:]
os.makedirs(output)  # fails if there are results
with open(os.path.join(output, "table.csv"), "w") as file:
    file.write("setting,ranks,speed_up\\nplain,1,1\\nplain,2,1.9\\n,3,\\n")
"""


class StudyTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.root = pathlib.Path(directory.name)
        self.studies = self.root / "studies"
        self.studies.mkdir()
        (self.root / "bin").mkdir()
        self.program("trainer", TRAINER)
        self.program("scaling_sweep", SWEEP)

    def program(self, name, text):
        file = self.root / "bin" / name
        file.write_text(text)
        file.chmod(file.stat().st_mode | stat.S_IXUSR)

    def write_study(self, body, name="fake", machine="cores=10**6, numa_nodes=1"):
        text = PREAMBLE + "def run(bench, page):\n" + "".join(
            "    " + line + "\n" for line in body.strip().split("\n"))
        (self.studies / f"{name}.py").write_text(text + DECLARED.format(name=name, machine=machine))

    def study(self, *arguments, status=0):
        """Returns the output of studies/study. Results go to studies/results below the root."""
        output = io.StringIO()
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
            try:
                ended = command.main([*arguments, "--build", str(self.root), "--output", str(self.root / "out"),
                                      "--pages", str(self.root / "studies/results")], self.studies)
            except SystemExit as end:
                ended = end.code
        self.assertEqual(ended, status, output.getvalue())
        return output.getvalue()

    def page(self):
        return (self.root / "studies/results/fake.md").read_text()

    def result(self, name="fake"):
        return json.loads((self.root / f"studies/results/{name}.json").read_text())

    # ---- Scales and names.

    def test_scale_is_published_if_the_machine_is_large_enough(self):
        large = studies.Study("x", "", "", studies.Machine(40, 2, ""), "", None)
        self.assertEqual(command.scale_for(large, "auto", 40, 2, "x86_64"), "published")
        self.assertEqual(command.scale_for(large, "auto", 64, 1, "x86_64"), "small")
        self.assertEqual(command.scale_for(large, "auto", 39, 2, "x86_64"), "small")
        self.assertEqual(command.scale_for(large, "auto", 48, 4, "aarch64"), "small")
        self.assertEqual(command.scale_for(large, "tiny", 64, 4, "x86_64"), "tiny")

    def test_numbers_follow_the_scale(self):
        self.write_study("page.compare('steps', 100, bench.pick(4, 100, tiny=1))\n"
                         "page.compare('ranks', 2, bench.pick(3, 2))")
        for scale, numbers in {"small": [4, 3], "published": [100, 2], "tiny": [1, 3]}.items():
            self.study("fake", "--scale", scale)
            self.assertEqual([row["here"] for row in self.result()["comparisons"]], numbers)

    def test_unknown_study_error_lists_the_studies(self):
        self.write_study("pass")
        said = self.study("faker", status=2)
        self.assertIn("unknown study 'faker'", said)
        self.assertIn("the studies are fake", said)

    def test_module_without_its_study_is_an_error(self):
        (self.studies / "other.py").write_text(PREAMBLE)
        self.assertIn("other.py needs STUDY", self.study("--list", status=2))

    def test_missing_programs_are_named_with_the_command_that_builds_them(self):
        self.write_study("pass")
        (self.root / "bin/trainer").unlink()
        said = self.study("fake", status=1)
        self.assertIn("trainer not in", said)
        self.assertRegex(said, "cmake --build .* --target .*trainer")

    def test_failed_study_does_not_keep_others_from_running(self):
        self.write_study("bench.run('x', ['trainer', '--fail', '1'])", name="bad")
        self.write_study("page.compare('it ran', None, 1)", name="good")
        said = self.study("all", status=1)
        self.assertRegex(said, "(?s)bad: trainer --fail 1.*status 3.*what went wrong")
        self.assertEqual(self.result("good")["comparisons"][0]["here"], 1)
        self.assertFalse((self.root / "studies/results/bad.json").exists())

    # ---- Programs.

    def test_program_is_found_by_its_name_and_its_output_is_kept(self):
        self.write_study("done = bench.run('2 ranks', ['trainer', '--report', '{report}', '--x', 5],"
                         " {'A_VARIABLE': 'in {directory}'})\n"
                         "page.compare('speed', None, done.speed('images', warmup=1))\n"
                         "page.text(done.output)")
        said = self.study("fake")
        shown = "A_VARIABLE='in 2_ranks' trainer --report 2_ranks/report.json --x 5"
        self.assertIn(shown, said)
        self.assertEqual(self.result()["runs"][0]["command"], shown)
        self.assertEqual(self.result()["comparisons"][0]["here"], 50)
        kept = (self.root / "out/fake/2_ranks/stdout").read_text()
        self.assertIn("in 2_ranks", kept)
        self.assertEqual(self.result()["blocks"][0]["text"], kept)

    def test_facts_come_from_reports_without_the_host(self):
        self.write_study("bench.run('a', ['trainer', '--report', '{report}'])")
        self.study("fake")
        facts = self.result()["machine"]
        self.assertEqual(facts["LibTorch"], "1.2.3")
        self.assertIn("kernel", facts)
        self.assertNotIn("secret", (self.root / "studies/results/fake.md").read_text())

    def test_study_can_check_for_programs(self):
        self.write_study("page.text(repr([bench.has('trainer'), bench.has('no-such-program'),"
                         " bench.knows('trainer', '--help'), bench.knows('trainer', '--no-such-flag'),"
                         " bench.has_library('c'), bench.has_library('no-such-library')]))")
        self.study("fake")
        self.assertEqual(self.result()["blocks"][0]["text"], "[True, False, True, False, True, False]")

    def test_rows_of_a_sweep_are_numbers_and_old_results_are_removed(self):
        self.write_study("rows = bench.sweep('scaling', 'ranks: 1')\n"
                         "page.compare('speed-up', 1.71, rows[1]['speed_up'])\n"
                         "page.compare('none', 1, rows[2]['speed_up'])")
        for _ in range(2):
            self.study("fake")
        self.assertEqual([row["here"] for row in self.result()["comparisons"]], [1.9, None])
        self.assertEqual(self.result()["sweeps"][0]["spec"], "ranks: 1")

    def test_resumed_study_repeats_only_commands_that_differ(self):
        body = "bench.run('a', ['trainer', '--report', '{report}'])\nbench.run('b', ['trainer', '--x', %s])"
        self.write_study(body % 1)
        self.study("fake")
        marks = [self.root / f"out/fake/{name}/stdout" for name in "ab"]
        for mark in marks:
            mark.write_text("not run again")
        self.write_study(body % 2)
        self.study("fake", "--resume")
        self.assertEqual(marks[0].read_text(), "not run again")
        self.assertIn("arguments", marks[1].read_text())

    # ---- Data.

    WITH_DATA = ("found = bench.data('mnist', ['digits'], ['trainer', '--make', '{directory}'])\n"
                 "page.text(open(bench.directory / found.directory / 'digits').read())")

    def test_generated_data_replace_missing_data_with_a_note(self):
        self.write_study(self.WITH_DATA)
        said = self.study("fake")
        self.assertIn("not the real data", said)
        digest = data.checksum(self.root / "out/fake/data/mnist/digits")
        self.assertIn(digest, said)
        text = (self.root / "studies/results/fake.md").read_text()
        self.assertIn("not the real data", text)
        self.assertIn(digest, text)
        self.assertIn("\n\ngenerated\n", text)

    def test_real_files_are_used_under_the_same_names(self):
        self.write_study(self.WITH_DATA)
        real = self.root / "real/mnist"
        real.mkdir(parents=True)
        (real / "digits").write_text("handwritten")
        for _ in range(2):
            said = self.study("fake", "--data", str(self.root / "real"))
        self.assertNotIn("not the real data", said)
        self.assertEqual(self.result()["blocks"][0]["text"], "handwritten")
        self.assertEqual((real / "digits").read_text(), "handwritten")
        self.assertIn("studies/study fake --data DIRECTORY\n", self.page())
        self.study("fake")
        self.assertNotIn("--data", self.page())
        self.assertEqual(self.result()["blocks"][0]["text"], "generated")
        self.assertEqual((real / "digits").read_text(), "handwritten")

    def test_study_can_require_generated_files(self):
        self.write_study(self.WITH_DATA.replace("'{directory}'])", "'{directory}'], real=False)"))
        (self.root / "digits").write_text("handwritten")
        self.assertIn("not the real data", self.study("fake", "--data", str(self.root)))
        self.assertEqual(self.result()["blocks"][0]["text"], "generated")

    def test_study_can_remark_that_files_are_not_the_real_ones(self):
        self.write_study(self.WITH_DATA + "\nfound.remark = 'not theirs'")
        (self.root / "digits").write_text("handwritten")
        self.study("fake", "--data", str(self.root))
        self.assertIn("taken as the real ones by their names; not theirs", self.page())

    def test_missing_part_of_the_real_files_is_an_error(self):
        self.write_study(self.WITH_DATA.replace("['digits']", "['digits', 'labels']"))
        (self.root / "digits").write_text("handwritten")
        self.assertIn("has digits of mnist, but not labels", self.study("fake", "--data", str(self.root), status=1))

    # ---- Pages.

    SHOWN = ("page.compare('speed-up | of two', 1.71, 1.8234, 'times', 'one socket', headline=True)\n"
             "page.compare('epoch', 235.6, None, 's')\n"
             "page.text('- a <b>\\n- `c | d`', heading='Remarks')\n"
             "page.table('More', ['name', 'value'], [['x', 1], ['y', 0.25]], note='A note.')\n"
             "page.bars('Speed & more', 'images/s', ['1 rank', '2 ranks'], {'here': [1, 2.5], 'there': [None, 3]})\n"
             "page.lines('Scaling', 'nodes', 's', {'here': [(1, 8), (2, 4)], 'ideal': [(1, 8), (4, 2)]},"
             " dashed=['ideal'], log_x=True, log_y=True)\n"
             "page.missing('the nodes', 'there is one.', 'studies/study fake')")

    def test_page_has_all_results(self):
        self.write_study(self.SHOWN)
        self.study("fake")
        text = (self.root / "studies/results/fake.md").read_text()
        self.assertIn("| speed-up \\| of two | 1.71 | 1.823 | times | one socket |", text)
        self.assertIn("| epoch | 235.6 | – | s |  |", text)
        for wanted in ("- It is a fake.", "## Remarks\n\n- a <b>\n- `c | d`\n", "A note.", "![Scaling](fake_2.svg)", "**the nodes**"):
            self.assertIn(wanted, text)
        for image in (1, 2):
            xml.parse(self.root / f"studies/results/fake_{image}.svg")

    def test_page_lists_the_differences_at_its_scale(self):
        self.write_study("pass")
        for scale, told in {"small": ["- It is a fake.", "- It is small."], "published": ["- It is a fake."]}.items():
            self.study("fake", "--scale", scale)
            text = (self.root / "studies/results/fake.md").read_text()
            self.assertEqual([line for line in text.split("\n") if line.startswith("- ")], told)
        self.study("--index")
        self.assertIn("What differs:\n\n- It is a fake.\n\nWhat else differs in small:\n\n- It is small.",
                      (self.root / "studies/results/README.md").read_text())

    def test_page_warns_if_other_programs_ran(self):
        self.write_study("bench.cores = 2\nrun = bench.run('x', ['true'])\nrun.seconds = 2\nrun.others = 0.5")
        self.study("fake")
        self.assertIn("other programs used 25% of the cores", (self.root / "studies/results/fake.md").read_text())
        self.write_study("bench.cores = 2\nrun = bench.run('x', ['true'])\nrun.seconds = 2\nrun.others = 0.1")
        self.study("fake")
        self.assertNotIn("Disturbed", (self.root / "studies/results/fake.md").read_text())

    def test_index_shows_headlines_and_studies_that_were_not_run(self):
        self.write_study(self.SHOWN)
        self.write_study("pass", name="idle")
        self.study("fake")
        self.study("--index")
        index = (self.root / "studies/results/README.md").read_text()
        row = next(line for line in index.split("\n") if line.startswith("| [A study, of fakes](#a-study-of-fakes) | 2"))
        self.assertIn("speed-up \\| of two: 1.71 times | speed-up \\| of two: 1.823 times | one socket |", row)
        self.assertNotIn("235.6", row)
        self.assertIn("| not run yet |", index)
        self.assertIn("studies/study idle", index)
        self.assertIn("**the nodes**: there is one.\n\n```sh\nstudies/study fake\n```", index)
        self.assertIn("(fake.md)", index)

    def test_index_writes_pages_again_with_corrected_texts(self):
        self.write_study(self.SHOWN)
        self.study("fake")
        file = self.studies / "fake.py"
        file.write_text(file.read_text().replace("Fakes are run.", "Mended."))
        self.study("--index")
        self.assertIn("Mended.", (self.root / "studies/results/fake.md").read_text())

    def test_tiny_run_does_not_change_the_results(self):
        self.write_study("pass")
        options = command.parser("").parse_args(
            ["fake", "--scale", "tiny", "--build", str(self.root), "--output", str(self.root / "out")])
        with contextlib.redirect_stdout(io.StringIO()):
            pages_directory = command.run(studies.load(self.studies)["fake"], options)
        self.assertEqual(pages_directory, self.root / "out/fake")


class SpecsTest(unittest.TestCase):
    def test_every_change_of_a_spec_is_made_or_an_error(self):
        changed = specs.changed("resnet50_six_times.txt", {"repeats: 3": "repeats: 1"})
        self.assertIn("repeats: 1", changed)
        self.assertNotIn("repeats: 3", changed)
        with self.assertRaisesRegex(studies.Wrong, "does not have 'repeats: 4' exactly once"):
            specs.changed("resnet50_six_times.txt", {"repeats: 4": ""})
        with self.assertRaisesRegex(studies.Wrong, "'setting {' exactly once"):
            specs.changed("resnet50_six_times.txt", {"setting {": ""})


class ChartTest(unittest.TestCase):
    def test_ticks_are_round_and_enclose_the_values(self):
        self.assertEqual(chart.ticks(0, 7), [0, 2, 4, 6, 8])
        self.assertEqual(chart.ticks(0, 0.9)[-1], 1.0)

    def test_no_two_series_of_a_chart_have_the_same_colour(self):
        self.assertEqual(len({chart.colour_of(index) for index in range(40)}), 40)

    def test_numbers_have_four_digits_at_most(self):
        self.assertEqual([pages.number(value) for value in (None, 3, 137.94, 1.7134, 0.052, 12345.6, "a")],
                         ["–", "3", "137.9", "1.713", "0.052", "12346", "a"])


class RealStudiesTest(unittest.TestCase):
    """The studies of this repository."""

    def test_all_load_and_have_their_texts(self):
        found = studies.load()
        self.assertTrue(found)
        for study in found.values():
            for text in (study.title, study.citation, study.experiment, study.machine.processor):
                self.assertTrue(text, study.name)

    def test_links_of_the_index_exist(self):
        results = ROOT / "studies/results"
        for link in re.findall(r"\]\(([^)#]+)", (results / "README.md").read_text(encoding="utf-8")):
            if "://" not in link:
                self.assertTrue((results / link).exists(), link)

    def test_index_and_pages_are_up_to_date(self):
        kept = ROOT / "studies/results"
        with tempfile.TemporaryDirectory() as directory:
            made = pathlib.Path(directory)
            for name in studies.load():
                if (kept / f"{name}.json").exists():
                    shutil.copy(kept / f"{name}.json", made)
            command.write_index(studies.load(), made)
            for file in sorted(file for file in made.rglob("*") if file.is_file()):
                path = file.relative_to(made)
                self.assertTrue((kept / path).exists(), f"studies/results/{path}: run studies/study --index")
                self.assertEqual((kept / path).read_text(encoding="utf-8"), file.read_text(encoding="utf-8"),
                                 f"studies/results/{path}: run studies/study --index")


if __name__ == "__main__":
    unittest.main()
