#!/usr/bin/env python3
"""Tests scaling_sweep as its users start it, with a fake launcher and a fake trainer that take no time.

usage: scaling_sweep_test.py PROGRAM [unittest's arguments]
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

HERE = os.path.dirname(os.path.abspath(__file__))
LAUNCHER = os.path.join(HERE, "fake_hvdliterun")
TRAINER = os.path.join(HERE, "fake_trainer")
sys.path.insert(0, os.path.join(HERE, "..", "..", "testing"))
import parallel_tests  # noqa: E402

PROGRAM = None  # of the command line

SPEC = """
name: "tiny"
command: ["%s", "--report", "{report}"]
ranks: [1, 2]
setting { name: "plain" threads: 1 }
setting { name: "crowd" threads: 64 ranks: 2 }
repeats: 3
scaling: STRONG
items: "images"
warmup_intervals: 1
items_per_epoch: 1000
%s
"""


class SweepTest(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory(prefix="sweep")
        self.addCleanup(self.directory.cleanup)
        self.calls = self.path("calls")

    def path(self, *names):
        return os.path.join(self.directory.name, *names)

    def environment(self, variables):
        return {**os.environ, "FAKE_CALLS": self.calls, **variables}

    def write_spec(self, name="spec.txt", more=""):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(SPEC % (TRAINER, more))
        return self.path(name)

    def run_program(self, *arguments, code=0, **variables):
        done = subprocess.run([PROGRAM, *arguments], env=self.environment(variables), text=True,
                              cwd=self.directory.name, capture_output=True, check=False)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def sweep(self, output, spec=None, code=0, flags=(), **variables):
        return self.run_program(spec or self.write_spec(), "--output", self.path(output),
                                "--launcher-program", LAUNCHER, *flags, code=code, **variables)

    def read(self, *names):
        with open(self.path(*names), encoding="utf-8") as file:
            return file.read()

    def lines(self, *names):
        return self.read(*names).splitlines()

    def samples(self, output):
        lines = [json.loads(line) for line in self.lines(output, "results.jsonl")]
        return [line for line in lines if "configuration" in line]

    def test_files_of_other_programs_are_not_replaced(self):
        os.mkdir(self.path("out"))
        with open(self.path("out", "table.csv"), "w", encoding="utf-8") as file:
            file.write("earlier")
        text = self.sweep("out", code=2)
        self.assertIn("it contains table.csv, but no results of scaling_sweep", text)
        self.assertEqual(os.listdir(self.path("out")), ["table.csv"])
        self.assertEqual(self.read("out", "table.csv"), "earlier")

    def test_a_sweep_keeps_every_sample_and_reports(self):
        text = self.sweep("out", OMP_PROC_BIND="close")
        samples = self.samples("out")
        self.assertEqual(len(samples), 9)
        self.assertEqual([sample["repeat"] for sample in samples], [0] * 3 + [1] * 3 + [2] * 3)
        worlds = [(sample["ranks"], sample["setting"]) for sample in samples]
        self.assertEqual(worlds[3:6], worlds[0:3][::-1])
        first = samples[0]
        self.assertEqual(first["items_per_second"], 100)
        self.assertEqual(first["command"][:3], [LAUNCHER, "-np", "1"])
        self.assertEqual(first["environment"]["OMP_PROC_BIND"], "close")
        self.assertTrue(os.path.exists(self.path("out", first["report"])))
        self.assertTrue(os.path.exists(self.path("out", first["trace"])))
        self.assertFalse(first["oversubscribed"])
        self.assertEqual([sample["oversubscribed"] for sample in samples if
                          sample["setting"] == "crowd"], [True] * 3)
        self.assertIn("--oversubscribe", samples[2]["command"])

        self.assertIn("95.0 %", text)       # efficiency of 2 ranks
        self.assertIn("50.0 %", text)       # communicating
        self.assertIn("60.0 %", text)       # exposed
        self.assertRegex(text, "crowd .* oversubscribed")
        self.assertLess(max(map(len, self.lines("out", "table.txt"))), 110)
        self.assertIn("strong: T1/(N*TN), N = ranks", text)
        rows = self.lines("out", "table.csv")
        self.assertEqual(len(rows), 4)
        self.assertIn("plain,,1,2,1,no,190,190,190,5.26315789,strong: T1/(N*TN),ranks,2,1,1.9,"
                      "0.95,0.95,0.95,0.1,0.5,0.6,3,0", rows)
        for name in ("items_per_second.svg", "speed_up.svg", "efficiency.svg"):
            xml.etree.ElementTree.parse(self.path("out", name))
        page = self.read("out", "report.html")
        self.assertIn(first["trace"], page)
        self.assertNotIn("http", page)
        self.assertIn("<th>kernel</th><td>" + os.uname().sysname, page)
        os.remove(self.path("out", "report.html"))
        self.run_program("report", self.path("out"))
        self.assertEqual(self.read("out", "report.html"), page)

    def test_an_interrupted_sweep_continues(self):
        os.mkfifo(self.path("pipe"))
        spec = self.write_spec()
        variables = {"FAKE_BLOCK_CALL": "2", "FAKE_PIPE": self.path("pipe")}
        with subprocess.Popen(
                [PROGRAM, spec, "--output", self.path("out"), "--launcher-program", LAUNCHER],
                env=self.environment(variables), text=True, stdout=subprocess.PIPE) as child:
            self.assertIn("first a run that shows", child.stdout.readline())
            self.assertIn("[1/9]", child.stdout.readline())
            self.assertEqual(self.read("pipe"), "here\n")  # the second run has begun
            self.assertEqual(len(self.samples("out")), 1)  # is on the disk already
            child.send_signal(signal.SIGINT)
            rest = child.stdout.read()
        self.assertEqual(child.returncode, 128 + signal.SIGINT)
        self.assertIn("interrupted", rest)
        self.assertEqual(len(self.samples("out")), 1)
        self.assertEqual(len(self.lines("calls")), 2)

        text = self.sweep("out", spec)
        self.assertNotIn("[1/9]", text)
        self.assertIn("[2/9]", text)
        self.assertEqual(len(self.samples("out")), 9)
        self.assertEqual(len(self.lines("calls")), 2 + 8)
        self.sweep("out", spec)
        self.assertEqual(len(self.lines("calls")), 2 + 8)

    def test_failures_are_samples_with_their_reasons(self):
        spec = self.write_spec("spec.txt", """
            setting { name: "fails" ranks: 1 argument: "--fail" }
            setting { name: "fails alone" ranks: 1 alone: true argument: "--fail" }""")
        text = self.sweep("out", spec, code=1)
        self.assertIn("ended with exit code 3; last output: it fails / see --help", text)
        self.assertIn("\nthese have no successful run (--retry-failed runs them again):\n"
                      "  1 rank, fails\n"
                      "  1 rank, fails alone\n", text)
        failed = [sample for sample in self.samples("out") if sample["setting"] == "fails"]
        self.assertEqual([sample["exit_code"] for sample in failed], [3, 3, 3])
        self.assertEqual(failed[0]["items_per_second"], None)
        self.assertEqual(self.read("out", failed[0]["log"]), "  | it fails\nsee --help\n")
        calls = len(self.lines("calls"))
        self.sweep("out", spec, code=1)
        self.assertEqual(len(self.lines("calls")), calls)
        self.sweep("out", spec, flags=["--retry-failed"], code=1)
        # Runs without the launcher do not call it.
        self.assertEqual(len(self.lines("calls")), calls + 3)

    def test_the_launcher_gives_the_reason_if_no_rank_does(self):
        for flag, cause in (("--lost", "ssh: no such host"), ("--later", "A host is lost.")):
            text = self.run_program(
                "run", "--ranks", "1", "--repeats", "1", "--launcher-program", LAUNCHER,
                "-o", self.path(flag), "--", TRAINER, "--lost", flag, code=1)
            self.assertIn("last output: " + cause + " / hvdliterun: mpirun ended with", text)

    def test_a_missing_program_is_not_started(self):
        for program, remedy in (("./mine", "correct the path"), ("no-such-program", "PATH")):
            text = self.run_program("run", "--ranks", "1,2", "--launcher-program", LAUNCHER,
                                    "--output", self.path("out"), "--", program, code=2)
            self.assertIn("scaling_sweep: there is no " + program, text)
            self.assertIn(remedy, text)
        self.assertEqual(self.samples("out"), [])
        self.assertFalse(os.path.exists(self.calls))

    def test_a_program_may_be_in_another_path(self):
        spec = self.write_spec("spec.txt", "environment { name: 'PATH' value: '%s:%s' }" % (
            os.path.dirname(TRAINER), os.environ["PATH"]))
        text = self.read("spec.txt").replace(TRAINER, os.path.basename(TRAINER))
        with open(spec, "w", encoding="utf-8") as file:
            file.write(text)
        self.sweep("out", spec)

    def test_a_run_that_takes_too_long_is_ended(self):
        with open(self.path("spec.txt"), "w", encoding="utf-8") as file:
            file.write("command: ['%s', '--hang', '{report}'] ranks: 1 repeats: 1 "
                       "scaling: WEAK time_limit_seconds: 0.2" % TRAINER)
        for text in (self.sweep("out", self.path("spec.txt"), code=1),
                     self.run_trainer("--hang", flags=("--time-limit", "0.2"))):
            self.assertIn("took longer than the limit of 0.2 s", text)
            self.assertIn("It printed nothing.\nReduce its work, or raise the limit (--time-limit", text)
        self.assertEqual(self.samples("out"), [])

    def run_trainer(self, *arguments, flags=("--ranks", "1,2,4"), code=1, **variables):
        return self.run_program("run", *flags, "--repeats", "2", "--launcher-program", LAUNCHER,
                                "-o", self.path("trained"), "--", TRAINER, *arguments, code=code, **variables)

    def test_a_program_that_does_not_work_is_tried_once(self):
        for flags, told in (
                (["--silent"], ["the program has written no report", "  | hello\n  | that was all\n"]),
                (["--report", "elsewhere", "{report}"], ["It printed nothing."])):
            with self.subTest(flags):
                text = self.run_trainer(*flags)
                self.assertIn("%s %s" % (TRAINER, flags[0]), text)
                self.assertIn("does not work here, so nothing else is run. 1 rank: ", text)
                self.assertIn("Correct the program or its arguments. Then run the command again", text)
                for part in told:
                    self.assertIn(part, text)
                self.assertEqual(len(self.lines("calls")), 1)
                self.assertEqual(self.samples("trained"), [])
                os.remove(self.calls)
        # Nothing remains that would prevent a working program from running.
        self.run_trainer(code=0)
        self.assertEqual(len(self.samples("trained")), 6)

    def test_a_program_that_crashes_is_tried_in_its_smallest_and_largest_world(self):
        text = self.run_trainer("--crash")
        self.assertIn("nothing else is run. 4 ranks: ended with exit code 139 (Segmentation fault)", text)
        self.assertIn("  | about to\n", text)
        self.assertEqual(len(self.lines("calls")), 2)

    def test_a_program_that_works_only_in_large_worlds_is_measured(self):
        self.run_trainer(FAKE_FAIL_BELOW="2")
        self.assertEqual([(sample["ranks"], bool(sample["items_per_second"])) for sample in self.samples("trained")],
                         [(1, False), (4, True), (2, True), (4, True), (2, True), (1, False)])

    def test_the_default_worlds_fit_this_machine(self):
        self.run_trainer(flags=(), code=0)
        ranks = sorted({sample["ranks"] for sample in self.samples("trained")})
        self.assertEqual(ranks[0], 1)
        self.assertEqual(ranks[:-1], [2 ** i for i in range(len(ranks) - 1)])
        self.assertIn("does not work here", self.run_program("run", "--", "true", code=1))

    def test_per_rank_trace_files_are_linked(self):
        self.sweep("out", FAKE_PARTS="1")
        sample = self.samples("out")[0]
        self.assertTrue(sample["trace"].endswith("trace.json.rank00000"))
        self.assertTrue(os.path.exists(self.path("out", sample["trace"])))
        self.assertIn('href="%s"' % sample["trace"], self.read("out", "report.html"))
        self.assertIn("50.0 %", self.read("out", "table.txt"))  # communicating

    def test_a_program_needs_no_spec(self):
        command = ["run", "--ranks", "1,2", "--repeats", "2", "-o", self.path("out"),
                   "--launcher-program", LAUNCHER]
        text = self.run_program(*command, "--", TRAINER, "--epochs", "3")
        samples = self.samples("out")
        self.assertEqual([sample["ranks"] for sample in samples], [1, 2, 2, 1])
        words = samples[0]["command"]
        self.assertEqual(words[-5:-1], [TRAINER, "--epochs", "3", "--report"])
        self.assertEqual(words[-1], self.path("out", samples[0]["report"]))
        self.assertEqual([sample["items_per_second"] for sample in samples], [100, 190, 190, 100])
        self.assertRegex(text, "190")
        self.assertIn("strong: T1/(N*TN)", text)
        self.assertTrue(os.path.exists(self.path("out", "report.html")))
        # More ranks continue the sweep, and no run is repeated.
        text = self.run_program(*command[:2], "1,2,4", *command[3:], "--", TRAINER, "--epochs", "3")
        self.assertEqual([sample["ranks"] for sample in self.samples("out")[4:]], [4, 4])
        self.assertRegex(text, r"(?m)^ *4 ")
        self.assertRegex(text, r"(?m)^ *2 ")
        # A program with its own {report} gets no --report. Other arguments are another command.
        own = ["--", TRAINER, "--report={report}", "--report", "{report}"]
        self.assertIn("another spec file or command", self.run_program(*command, *own, code=2))
        self.run_program("run", "--ranks", "1", "--weak", "--repeats", "1", "--launcher-program",
                         LAUNCHER, *own)
        sample = self.samples("fake_trainer.sweep")[0]
        self.assertEqual(sample["command"].count("--report"), 1)
        self.assertIn("weak: T1/TN", self.read("fake_trainer.sweep", "table.txt"))

    def test_a_programs_sweep_continues_with_more_repeats_on_other_hosts(self):
        def sweep(hosts, repeats, code=0):
            return self.run_program(
                "run", "--nodes", "1,2", "--ranks", "2", "--hosts", hosts, "--repeats", repeats,
                "-o", self.path("out"), "--launcher-program", LAUNCHER, "--", TRAINER, code=code)
        sweep("a1,a2", "1")
        sweep("b1,b2", "2")
        hosts = [sample["command"][sample["command"].index("-H") + 1]
                 for sample in self.samples("out")]
        self.assertEqual(hosts, ["a1:2", "a1:2,a2:2", "b1:2,b2:2", "b1:2"])
        # With fewer hosts, worlds that fit continue; others are left out.
        text = sweep("a1", "3")
        self.assertIn("left out: 1 configuration of 2 nodes; hosts named: 1.", text)
        self.assertEqual([sample["nodes"] for sample in self.samples("out")], [1, 2, 2, 1, 1])
        sweep("c1,c2", "3")
        self.assertEqual([sample["nodes"] for sample in self.samples("out")], [1, 2, 2, 1, 1, 2])

    def test_a_programs_threads_are_fixed_by_a_flag(self):
        def sweep(output, *flags):
            self.run_program("run", *flags, "--repeats", "1", "-o", self.path(output),
                             "--launcher-program", LAUNCHER, "--", TRAINER, FAKE_CORES="8")
            return [(sample["ranks"], sample["threads_used"]) for sample in self.samples(output)]

        worlds = ["--ranks", "1,2,4,8"]
        self.assertEqual(sweep("chosen", *worlds), [(1, 8), (2, 4), (4, 2), (8, 1)])
        self.assertEqual(sweep("fixed", *worlds, "--threads", "1"), [(1, 1), (2, 1), (4, 1), (8, 1)])
        for sample in self.samples("fixed"):
            self.assertIn(" --threads 1 ", " ".join(sample["command"]))
        self.assertEqual(len(sweep("both", *worlds, "--threads", "1,2")), 8)
        # This machine may have too few cores for 4 ranks, but each node has one.
        sweep("nodes", "--nodes", "1,2,4", "--hosts", "a,b,c,d", "--threads", "1")
        self.assertEqual([sample["nodes"] for sample in self.samples("nodes")], [1, 2, 4])

    def write_cluster_spec(self):
        with open(self.path("spec.txt"), "w", encoding="utf-8") as file:
            file.write("""
                name: "cluster" command: ["%s", "--report", "{report}"] repeats: 2 scaling: STRONG
                traces: FIRST_REPEAT items_per_epoch: 1000
                setting { name: "a" threads: 2 environment { name: "A" value: "x y" }
                  world { nodes: 1 ranks_per_node: 2 } world { nodes: 2 ranks_per_node: 2 }
                  world { nodes: 4 ranks_per_node: 2 } }
                setting { name: "alone" alone: true ranks: 1 environment { name: "B" value: "2" } }""" % TRAINER)
        return self.path("spec.txt")

    def test_a_dry_run_prints_every_command_and_runs_none(self):
        text = self.run_program(self.write_cluster_spec(), "--dry-run", "-o", "out")
        lines = text.splitlines()
        self.assertEqual(lines[0], "# 2 ranks x 2 threads, a")
        directory = os.path.realpath(self.path("out")) + "/runs/"
        start = "hvdliterun -np 2 -H node1:2 --threads 2 --set 'A=x y' --timeline " + directory
        self.assertEqual(lines[1][:len(start)], start)
        self.assertRegex(lines[1], r"/trace\.json %s --report %s[^ ]*/1/report\.json$" % (TRAINER, directory))
        self.assertTrue(lines[5].startswith("hvdliterun -np 8 -H node1:2,node2:2,node3:2,node4:2 "), lines[5])
        self.assertRegex(lines[7], "^B=2 HVDLITE_TIMELINE=[^ ]* %s --report " % TRAINER)
        self.assertEqual(lines[8:], ["# 8 runs: each command 2 times, at most 600 s"])
        self.assertFalse(os.path.exists(self.path("out")))
        self.assertFalse(os.path.exists(self.calls))
        named = self.run_program(self.path("spec.txt"), "--dry-run", "--hosts", "h1,h2")
        self.assertIn("-np 4 -H h1:2,h2:2 ", named)
        self.assertIn("left out: 1 configuration of 4 nodes; hosts named: 2.", named)
        self.assertNotIn("-np 8", named)

    def test_worlds_without_enough_hosts_run_in_a_later_command(self):
        spec = self.write_cluster_spec()
        self.assertIn("2 nodes need as many hosts; 0 are named", self.sweep("out", spec, code=2))
        text = self.sweep("out", spec, flags=["--hosts", "h1,h2"])
        self.assertIn("left out: 1 configuration of 4 nodes", text)
        self.assertEqual([sample["nodes"] for sample in self.samples("out")], [1, 1, 2, 1, 2, 1])
        self.assertIn("images processed at N nodes per node".replace("images", "items"), " ".join(text.split()))
        self.sweep("out", spec, flags=["--hosts", "a,b,c,d"])
        self.assertEqual([sample["nodes"] for sample in self.samples("out")][6:], [4, 4])
        self.assertEqual(len(self.lines("out", "table.csv")), 5)

    def test_wrong_arguments_are_answered_with_the_right_ones(self):
        for arguments, answer in (
                (["run", TRAINER, "epochs"], "scaling_sweep run -- %s epochs" % TRAINER),
                (["run", TRAINER], "scaling_sweep run -- " + TRAINER),
                (["run", "--ranks", "2", self.write_spec()], "set its worlds there"),
                (["run", "--weak", self.write_spec()], "in a spec file, write scaling: WEAK"),
                (["run", "--threads", "1", self.write_spec()], "in a spec file, write threads"),
                (["run", "--threads", "0", "--ranks", "1", "--", TRAINER], "such as 1,2,4, but is 0"),
                (["run", "--ranks", "1,two", "--", TRAINER], "such as 1,2,4, but is 1,two"),
                (["run", "--ranks", "2,2", "--", TRAINER], "occurs twice"),
                ([self.path("none")], "cannot read the spec file"),
                ([self.write_spec(), "--launcher-program", "/none"], "cannot start")):
            with self.subTest(arguments):
                self.assertIn(answer, self.run_program(*arguments, code=2))

    def test_compare_ends_with_3_if_something_became_slower(self):
        self.sweep("a")
        self.sweep("slow", FAKE_FACTOR="0.8")
        self.sweep("broken", code=1, FAKE_FAIL_BELOW="2")
        for first, second, flags, code, told in (
                ("a", "a", ["--fail-if", "-5%"], 0, "verdict: no significant difference"),
                ("a", "slow", ["--fail-if", "-5%"], 3, "verdict: FAILS -5.0 %"),
                ("a", "slow", ["--fail-if", "-25%"], 0, "verdict: slower"),
                ("slow", "a", ["--fail-if", "-5%"], 0, "verdict: faster"),
                ("a", "broken", ["--fail-if", "-5%"], 3, "no run succeeded in the second"),
                ("a:none", "slow", [], 2, "has no setting 'none'; it has "),
                ("a", "none", [], 2, "cannot read")):
            with self.subTest(first + " " + second):
                self.assertIn(told, self.run_program("compare", self.path(first), self.path(second), *flags,
                                                     code=code))

    def tune_command(self):
        spec = self.write_spec("spec.txt", """tune { candidates: 6 final_repeats: 3
            dimension { name: "blas" option { name: "default" }
              option { name: "fast" environment { name: "FAKE_BLAS" value: "fast" } } }
            dimension { name: "world" option { name: "1" ranks: 1 }
              option { name: "2" ranks: 2 threads: 1 } }
            dimension { name: "allocator" option { name: "default" }
              option { name: "jemalloc" launcher_flag: ["--alloc", "jemalloc"] }
              option { name: "tcmalloc" launcher_flag: ["--alloc", "tcmalloc"] } } }""")
        return ["tune", spec, "--output", self.path("out"), "--launcher-program", LAUNCHER]

    def test_tune_finds_the_settings_and_prints_the_command(self):
        command = self.tune_command()
        quiet = {"FAKE_OTHERS": "0.01 of 2 CPUs: quiet", "FAKE_MISSING": "tcmalloc"}
        text = self.run_program(*command, **quiet)
        self.assertIn("blas=fast, world=2 / hvdliterun's defaults: 3.800 [3.800, 3.800], faster (3 rounds)", text)
        self.assertIn("Recommended: blas=fast, world=2\nRun it with\n", text)
        self.assertIn("-np 2 --threads 1 --set FAKE_BLAS=fast %s --report report.json" % TRAINER,
                      text)
        self.assertRegex(text, r"[0-9]+ runs; 0 disturbed by other programs")
        # A missing allocator was never started, and the message says what to install.
        self.assertIn("allocator=tcmalloc: libtcmalloc.so is not on this machine (Debian: libtcmalloc2)", text)
        self.assertNotIn("tcmalloc", self.read("calls"))
        self.assertIn("jemalloc", self.read("calls"))
        # The defaults ran without the launcher.
        alone = [sample for sample in self.samples("out") if
                 sample["setting"] == "LibTorch's defaults"]
        self.assertEqual(alone[0]["command"][0], TRAINER)
        # Each of hvdliterun's defaults is removed in turn.
        less = [sample for sample in self.samples("out") if
                sample["setting"] == "blas=fast, world=2, without hvdliterun's threads"]
        self.assertEqual(len(less), 3)
        self.assertIn("env -u OMP_NUM_THREADS %s" % TRAINER, " ".join(less[0]["command"]))
        self.assertEqual(less[0]["threads_used"], 0)
        self.assertRegex(text, r"hvdliterun's threads \(OMP_NUM_THREADS=1\) +1.000 .* no signi")
        self.assertIn(self.read("out", "tuning.txt"), text)
        # The second time all results are there already.
        calls = len(self.lines("calls"))
        again = self.run_program(*command, **quiet)
        self.assertEqual(len(self.lines("calls")), calls)
        self.assertEqual(again[again.index("rank  "):], text[text.index("rank  "):])

    def test_an_interrupted_tune_reports_its_result(self):
        os.mkfifo(self.path("pipe"))
        command = self.tune_command()
        variables = {"FAKE_BLOCK_CALL": "16", "FAKE_PIPE": self.path("pipe"),
                     "FAKE_OTHERS": "0.01 of 2 CPUs: quiet"}
        for name, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            with self.subTest(name):
                if os.path.exists(self.calls):
                    os.remove(self.calls)
                directory = command[command.index("--output") + 1] = self.path(name.name)
                with subprocess.Popen([PROGRAM, *command],
                                      env=self.environment(variables), text=True,
                                      stdout=subprocess.PIPE) as child:
                    self.assertEqual(self.read("pipe"), "here\n")
                    child.send_signal(name)
                    text = child.stdout.read()
                self.assertEqual(child.returncode, code)
                self.assertRegex(text, r"(?m)^ +1  .*blas=fast")
                self.assertIn("The search is not finished", text)
                self.assertIn("interrupted; run the command again to continue", text)
                self.assertIn(self.read(directory, "tuning.txt"), text)

    def test_tune_without_time_for_one_run_asks_for_more_minutes(self):
        text = self.run_program("tune", "--minutes", "0.02", "--launcher-program", LAUNCHER, "--", TRAINER,
                                "--hang", code=2)
        self.assertRegex(text, r"took longer than the limit of [0-9.]+ s \(the rest of --minutes\); see .*log")
        self.assertIn("use more --minutes, or make the program do less", text)
        self.assertNotIn("--time-limit", text)

    def test_tune_accepts_a_program(self):
        text = self.run_program("tune", "--launcher-program", LAUNCHER, "--candidates", "1",
                                "--final-repeats", "2", "--", TRAINER)
        self.assertIn("preset=interleave", text)
        self.assertTrue(os.path.exists(self.path("tune_fake_trainer.sweep", "results.jsonl")))

    def test_tune_tries_worlds_of_all_hosts_that_are_named(self):
        text = self.run_program("tune", "--hosts", "h1,h2", "--launcher-program", LAUNCHER,
                                "--candidates", "2", "--final-repeats", "3", "--", TRAINER)
        hosts = set()
        for call in self.lines("calls"):
            self.assertRegex(call, "^-np [0-9]+ -H [^ ]+ ")
            hosts.add(tuple(call.split()[1:4:2]))
        self.assertIn(("1", "h1:1"), hosts)
        self.assertIn(("2", "h1:1,h2:1"), hosts)
        for ranks, names in hosts:
            slots = [name.partition(":")[::2] for name in names.split(",")]
            self.assertEqual([name for name, _ in slots], ["h1", "h2"][:len(slots)])
            self.assertEqual(sum(int(slot) for _, slot in slots), int(ranks))
        # More ranks are faster, and two hosts have twice as many as one.
        self.assertRegex(text, "1 +[^ ]*2 nodes of ")
        self.assertRegex(text, r"-np (\d+) -H h1:(\d+),h2:\2 ")

    def test_tune_fails_if_the_defaults_fail(self):
        self.assertIn("does not work here, so nothing else is run", self.run_program(
            "tune", "--launcher-program", LAUNCHER, "--candidates", "2", "--", TRAINER, "--fail",
            code=1))


if __name__ == "__main__":
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    parallel_tests.main(at_once=2)
