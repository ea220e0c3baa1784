#!/usr/bin/env python3
"""Tests hvdliterun under this machine's mpirun: the environment of ranks, and how jobs end.

usage: hvdliterun_test.py HVDLITERUN
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "testing"))
import launchers  # noqa: E402
import parallel_tests  # noqa: E402
from launchers import in_rank  # noqa: E402

PROGRAM = None  # set by the command line
LAUNCHER = launchers.kind()

# A rank that prints its number, its CPUs and its memory policy.
SHOW = r"""
cpus=$(sed -n 's/^Cpus_allowed_list:\t//p' /proc/self/status)
policy=$(sed -n '1s/^[^ ]* \([^ ]*\) .*/\1/p' /proc/self/numa_maps 2>/dev/null)
echo "$RANK cpus=$cpus policy=$policy threads=$OMP_NUM_THREADS places=$OMP_PLACES"
"""


def cpus_of_this_machine():
    return sorted(os.sched_getaffinity(0))

# After a rank has failed, Open MPI waits this long, twice, before it kills the other ranks, even if
# there are none. For jobs in which all ranks end themselves.
NOTHING_TO_KILL = {"OMPI_MCA_odls_base_sigkill_timeout": "0"}


class HvdliterunTest(unittest.TestCase):
    def setUp(self):
        # The path is short, because mpirun limits the names of its sockets. Each job has its own directory,
        # because jobs run at the same time.
        self.directory = tempfile.mkdtemp(prefix="hvdl", dir="/tmp")
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)

    def environment(self, **variables):
        return launchers.environment(TMPDIR=self.directory, **variables)

    def write(self, name, text):
        """The path of a new executable file."""
        path = os.path.join(self.directory, name)
        with open(path, "w") as file:
            file.write(text)
        os.chmod(path, 0o755)
        return path

    def read(self, *names):
        with open(os.path.join(self.directory, *names)) as file:
            return file.read()

    def pipe(self):
        """The path of a new named pipe."""
        path = os.path.join(self.directory, "pipe")
        os.mkfifo(path)
        return path

    @staticmethod
    def release(job, pipe):
        """Ends a job with two ranks that each read a line of the pipe."""
        with open(pipe, "w") as end:
            end.write("\n\n")
            end.flush()
            job.communicate()

    def start(self, *words, **variables):
        return subprocess.Popen([PROGRAM, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                text=True, env=self.environment(**variables))

    def run_job(self, *words, **variables):
        job = self.start(*words, **variables)
        job.out, job.err = job.communicate()
        return job

    def succeed(self, *words, **variables):
        job = self.run_job(*words, **variables)
        self.assertEqual(job.returncode, 0, job.err)
        return job.out

    def ranks(self, text):
        """The output of SHOW by rank."""
        found = {}
        for line in text.splitlines():
            rank, _, rest = line.partition(" ")
            found[int(rank)] = dict(word.partition("=")[::2] for word in rest.split(" "))
        return found


class BindingTest(HvdliterunTest):
    def setUp(self):
        super().setUp()
        if len(cpus_of_this_machine()) < 2:
            self.skipTest("one CPU")

    def planned(self, *words):
        """The CPUs of each local rank in the dry run."""
        text = self.succeed("--dry-run", *words, "true")
        return {int(rank): cpus
                for rank, cpus in re.findall(r"local rank (\d+): CPUs ([\d,-]+),", text)}

    def test_ranks_have_the_planned_cpus(self):
        words = ("-np", "2", "--comm-core", "none")
        planned = self.planned(*words)
        seen = self.ranks(self.succeed(*words, *in_rank(SHOW)))
        self.assertEqual({rank: of["cpus"] for rank, of in seen.items()}, planned)
        self.assertEqual(set(planned), {0, 1})
        self.assertNotEqual(planned[0], planned[1])

    def test_one_rank_has_all_cpus_and_a_place_for_each_core(self):
        seen = self.ranks(self.succeed("-np", "1", "--comm-core", "none", *in_rank(SHOW)))
        self.assertEqual(seen[0]["cpus"], self.planned("-np", "1")[0])
        self.assertEqual(seen[0]["places"].count("{"), int(seen[0]["threads"]))

    def test_affinity_mask_of_hvdliterun_is_respected(self):
        last = cpus_of_this_machine()[-1]
        job = subprocess.run(["taskset", "-c", str(last), PROGRAM, "-np", "1", *in_rank(SHOW)],
                             capture_output=True, text=True, env=self.environment())
        self.assertEqual(job.returncode, 0, job.stderr)
        self.assertEqual(self.ranks(job.stdout)[0]["cpus"], str(last))
        job = subprocess.run(["taskset", "-c", str(last), PROGRAM, "-np", "2", "true"],
                             capture_output=True, text=True, env=self.environment())
        self.assertEqual(job.returncode, 2)

    def test_ranks_have_the_requested_memory_policy(self):
        if not os.path.exists("/proc/self/numa_maps"):
            self.skipTest("a kernel without NUMA")
        for flag, policy in (("bind", r"bind:\d"), ("interleave", r"interleave:\d"),
                             ("preferred", r"prefer:\d"), ("local", "local$"), ("bind=0", "bind:0$"),
                             ("interleave=0", "interleave:0$"), ("preferred=0", "prefer:0$")):
            with self.subTest(flag=flag):
                seen = self.ranks(self.succeed("-np", "2", "--mem", flag, *in_rank(SHOW)))
                for rank in (0, 1):
                    self.assertRegex(seen[rank]["policy"], "^" + policy)

    def test_oversubscribed_ranks_share_all_cpus(self):
        count = len(cpus_of_this_machine()) + 1
        job = self.run_job("-np", str(count), "true")
        self.assertEqual(job.returncode, 2)
        seen = self.ranks(self.succeed("-np", str(count), "--oversubscribe", *in_rank(SHOW)))
        self.assertEqual(len(seen), count)
        self.assertEqual(len({of["cpus"] for of in seen.values()}), 1)
        self.assertEqual(seen[0]["threads"], "1")

    def test_warning_names_what_binds_a_running_rank_elsewhere(self):
        # The ranks end after the warning about the binding.
        pipe = self.pipe()
        first, last = cpus_of_this_machine()[0], cpus_of_this_machine()[-1]
        job = self.start("-np", "2", "--comm-core", "none", *in_rank(
            "[ $RANK = 0 ] && taskset -cp %d $$ >/dev/null; read line < %s" % (last, pipe)),
            GOMP_CPU_AFFINITY="0")
        told = ""
        while "instead of" not in told:
            line = job.stderr.readline()
            self.assertTrue(line, told)
            told += line
        self.assertRegex(told, r"\S+ rank 0 pid \d+ hvdliterun warning\] \d+s after the start, "
                               r"thread \d+ of process \d+ runs on the CPUs %d instead of %d; "
                               % (last, first))
        self.assertIn("unset GOMP_CPU_AFFINITY", told)
        self.release(job, pipe)


class EnvironmentTest(HvdliterunTest):
    def variable(self, name, *words, **variables):
        return self.succeed("-np", "1", *words, "sh", "-c", "echo $" + name, **variables).strip()

    def test_settings_and_flags_reach_the_ranks(self):
        self.assertEqual(self.variable("A", "--set", "A=b c=d"), "b c=d")
        self.assertEqual(self.variable("HVDLITE_TIMELINE", "--timeline", "t.json"), "t.json")
        self.assertEqual(self.variable("MALLOC_TRIM_THRESHOLD_"), "-1")

    def test_user_settings_take_precedence(self):
        self.assertEqual(self.variable("OMP_PROC_BIND", OMP_PROC_BIND="spread"), "spread")
        self.assertEqual(self.variable("OMP_NUM_THREADS", OMP_NUM_THREADS="1,1"), "1,1")
        self.assertEqual(self.variable("MALLOC_TRIM_THRESHOLD_", MALLOC_TRIM_THRESHOLD_="7"), "7")

    def test_ranks_use_the_allocator(self):
        for name in ("jemalloc", "tcmalloc"):
            with self.subTest(allocator=name):
                job = self.run_job("-np", "1", "--alloc", name, "cat", "/proc/self/maps")
                if job.returncode == 2 and "is not on this machine" in job.err:
                    self.skipTest(name + " is not installed")
                self.assertEqual(job.returncode, 0, job.err)
                self.assertIn("lib" + name, job.out)

    def test_verbose_prints_the_plan_and_starts_the_job(self):
        job = self.run_job("-np", "1", "--verbose", "sh", "-c", "echo rank $A", A="there")
        self.assertEqual((job.returncode, job.out), (0, "rank there\n"), job.err)
        self.assertRegex(job.err, "command:\n  mpirun -np? 1 ")
        self.assertIn("local rank 0: CPUs ", job.err)
        self.assertIn("environment of every rank:\n", job.err)

    def test_flags_of_a_file_reach_the_ranks(self):
        path = self.write("job.toml", 'np = 2\nset = ["A=of the file"]\nnetwork-interface = "lo"\n')
        job = self.run_job("--config-file", path, "-np", "1", "sh", "-c",
                           "echo $A, $UCX_NET_DEVICES")
        self.assertEqual((job.returncode, job.out), (0, "of the file, lo\n"), job.err)

    def test_version_and_build_are_printed_without_a_job(self):
        version = self.run_job("--version")
        self.assertEqual(version.returncode, 0, version.err)
        self.assertRegex(version.out, r"^hvdliterun \d+\.\d+\.\d+\nlauncher: mpirun ")
        build = self.run_job("--check-build")
        self.assertEqual(build.returncode, 0, build.err)
        self.assertIn("\nkernels: ", build.out)

    def test_programs_can_read_the_dry_run(self):
        words = ("-np", "1", "--comm-core", "none", "true")
        plan = json.loads(self.succeed("--dry-run=json", *words))
        self.assertEqual((plan["format"], plan["ranks"], plan["openmp"]), (1, 1, "none"))
        self.assertEqual(plan["command"][-1], "true")
        [hosts] = plan["hosts"]
        [rank] = hosts["ranks"]
        self.assertEqual((hosts["names"], hosts["planned"]), (["localhost"], True))
        self.assertEqual(rank["cpus"], sorted(cpus_of_this_machine()))
        variables = {variable["name"]: variable["value"] for variable in rank["environment"]}
        self.assertEqual(variables["OMP_NUM_THREADS"], str(rank["threads"]))
        plan = json.loads(self.succeed("-np", "1", "--dry-run=json", "sh-that-is-not-there"))
        self.assertEqual(plan["openmp"], "unknown")


class BatchSystemTest(HvdliterunTest):
    def test_more_ranks_than_slots_of_a_batch_job(self):
        # Open MPI reads Grid Engine's job itself and refuses more ranks than slots.
        if len(cpus_of_this_machine()) < 2:
            self.skipTest("one CPU")
        host = os.uname().nodename
        job = dict(SGE_ROOT="/", ARC="x", JOB_ID="5",
                   PE_HOSTFILE=self.write("pe", host + " 1 all.q UNDEFINED\n"))
        words = ("-np", "2", "-H", host + ":2", *in_rank(SHOW))
        self.assertEqual(set(self.ranks(self.succeed(*words, **job))), {0, 1})

    def test_ranks_of_other_launchers_have_the_planned_cpus(self):
        # Fake launchers: each starts two ranks with its own variables.
        if len(cpus_of_this_machine()) < 2:
            self.skipTest("one CPU")
        hydras = ("mpirun", "mpiexec", "mpiexec.hydra")  # replaces those of this machine
        for kind, names, version, variables in (
                ("srun", ("srun",), "slurm 23.02.1", "SLURM_PROCID=$r SLURM_LOCALID=$r "
                 "SLURM_NODEID=0 SLURM_STEP_TASKS_PER_NODE=2"),
                ("mpich", hydras, "HYDRA build details:",
                 "PMI_RANK=$r MPI_LOCALRANKID=$r MPI_LOCALNRANKS=2"),
                ("mpich", hydras, "of PALS",
                 "PALS_RANKID=$r PALS_LOCAL_RANKID=$r PALS_LOCAL_SIZE=2")):
            with self.subTest(launcher=kind, variables=variables):
                launcher = """#!/bin/sh
[ "$1" = --version ] && echo '%s' && exit
while [ "$1" != '%s' ]; do shift; done
for r in 0 1; do env %s SHOWN=$r "$@" & done
wait
""" % (version, os.path.realpath(PROGRAM), variables)
                launchers = [self.write(name, launcher) for name in names]
                out = self.succeed("-np", "2", "--launcher", kind, "--comm-core", "none",
                                   "sh", "-c", "RANK=$SHOWN; " + SHOW,
                                   PATH=self.directory + ":" + os.environ["PATH"])
                cpus = cpus_of_this_machine()
                seen = {rank: of["cpus"] for rank, of in self.ranks(out).items()}
                self.assertEqual(set(seen), {0, 1})
                self.assertEqual(seen[0].split("-")[0].split(",")[0], str(cpus[0]))
                self.assertNotEqual(seen[0], seen[1])
                for launcher in launchers:
                    os.remove(launcher)

    def test_fujitsus_mpiexec_may_start_ranks_unevenly(self):
        self.write("mpiexec", """#!/bin/sh
[ "$1 $2" = "-n 3" ] || exit 9
shift 2
for at in 0:0 1:1 2:0; do PMIX_RANK=${at%:*} PLE_RANK_ON_NODE=${at#*:} "$@" || exit; done
""")
        out = self.succeed("-np", "3", "--comm-core", "none", "sh", "-c",
                           "echo $PMIX_RANK $OMP_NUM_THREADS",
                           PATH=self.directory + ":" + os.environ["PATH"], PJM_JOBID="9",
                           PJM_NODE="1x2x1", PJM_PROC_BY_NODE="2")
        threads = [line.split() for line in out.splitlines()]
        self.assertEqual([rank for rank, _ in threads], ["0", "1", "2"])
        self.assertEqual(len({of for _, of in threads}), 1)


class HydraTest(HvdliterunTest):
    """Tests the handling of Hydra's behaviour, with a fake Hydra."""

    def setUp(self):
        super().setUp()
        self.write("mpirun", """#!/bin/sh
[ "$1" = --version ] && echo 'HYDRA build details:' && exit
while [ "$1" != '%s' ]; do shift; done
trap 'kill $ranks 2>/dev/null || :' TERM
for r in 0 1; do PMI_RANK=$r MPI_LOCALRANKID=$r MPI_LOCALNRANKS=2 "$@" & ranks="$ranks $!"; done
wait; wait
echo ============================================================
echo '=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES'
echo ============================================================
""" % os.path.realpath(PROGRAM))

    def start(self, *words, **variables):
        return super().start("-np", "2", "--oversubscribe", "--launcher", "mpich", *words,
                             PATH=self.directory + ":" + os.environ["PATH"], **variables)

    def test_job_with_a_failed_rank_ends_although_hydra_waits_for_the_others(self):
        job = self.run_job("sh", "-c", "[ $PMI_RANK = 1 ] && exit 5; echo there; exec sleep infinity")
        self.assertEqual(job.returncode, 5, job.err)
        self.assertRegex(job.err, r"rank 1 on \S+ failed first, with exit code 5")
        self.assertNotIn("still runs", job.err)
        self.assertEqual(job.out, "there\n")
        self.assertIn("3 more lines of mpirun", job.err)

    def test_signal_that_would_terminate_hydra_is_not_passed_on(self):
        pipe = self.pipe()
        job = self.start("sh", "-c", "echo there; read line < " + pipe)
        for _ in range(2):
            self.assertEqual(job.stdout.readline(), "there\n")
        job.send_signal(signal.SIGUSR2)
        self.assertIn("SIGUSR2 is not passed on: it would terminate mpirun", job.stderr.readline())
        self.release(job, pipe)
        self.assertEqual(job.returncode, 0)


class RestartTest(HvdliterunTest):
    # Fails on rank 1 in the first start.
    FAILS_ONCE = in_rank("[ $HVDLITE_RESTARTS$RANK = 01 ] && exit 7; "
                         "echo $RANK of $SIZE after $HVDLITE_RESTARTS")

    def test_failed_job_is_started_again(self):
        logs = os.path.join(self.directory, "logs")
        job = self.run_job("-np", "2", "--oversubscribe", "--max-restarts", "1", "--output-dir",
                           logs, *self.FAILS_ONCE)
        self.assertEqual(job.returncode, 0, job.err)
        self.assertIn("0 of 2 after 1\n", job.out)
        self.assertIn("starting again (1 of 1 restarts after failures): 2 ranks\n", job.err)
        self.assertRegex(job.err, r"the job was started 2 times:\n"
                                  r"  1: 2 ranks on localhost, .*: rank 1 on \S+ failed first, "
                                  r"with exit code 7\n"
                                  r"  2: 2 ranks on localhost, .*: done\n")
        self.assertEqual(self.read("logs", "restart.1", "rank.1.log"), "1 of 2 after 1\n")
        self.assertTrue(os.path.exists(os.path.join(logs, "rank.1.log")))

    def test_each_start_gets_the_time_of_the_first_start(self):
        before = int(time.time())
        job = self.run_job("-np", "1", "--max-restarts", "1", "sh", "-c",
                           "echo $HVDLITE_JOB_START; [ $HVDLITE_RESTARTS = 1 ]", **NOTHING_TO_KILL)
        self.assertEqual(job.returncode, 0, job.err)
        first, second = map(int, job.out.split())
        self.assertEqual(first, second)
        self.assertTrue(before <= first <= time.time())

    def test_failure_that_a_restart_cannot_fix_ends_the_job(self):
        for code, starts in ((2, 1), (85, 1), (3, 2)):
            with self.subTest(code=code):
                job = self.run_job("-np", "1", "--max-restarts", "1", "sh", "-c",
                                   "echo started; exit %d" % code, **NOTHING_TO_KILL)
                self.assertEqual(job.returncode, code, job.err)
                self.assertEqual(job.out, "started\n" * starts)

    def test_new_hosts_are_used(self):
        hosts = self.write("hosts", "localhost slots=1\n")
        began = self.pipe()
        job = self.start("-np", "1", "--max-np", "2", "--oversubscribe", "--host-discovery",
                         "cat " + hosts, *in_rank(
                             "trap 'exit 85' USR1; echo $SIZE after $HVDLITE_RESTARTS;"
                             "[ $HVDLITE_RESTARTS = 1 ] && exit 0; echo began >" + began +
                             "; while :; do sleep 0.05; done", shell="bash"))
        self.read(began)
        self.write("hosts", "localhost slots=2\n")
        out, err = job.communicate()
        self.assertEqual(job.returncode, 0, err)
        self.assertEqual(sorted(out.splitlines()), ["1 after 0", "2 after 1", "2 after 1"], err)
        self.assertIn("the hosts are now localhost:2: asking the job to stop", err)

    def test_commit_store_outlives_the_ranks(self):
        job = self.run_job("-np", "2", "--oversubscribe", "--max-restarts", "1",
                           "--commit-memory", "sh", "-c",
                           "echo $HVDLITE_COMMIT_STORE; [ $HVDLITE_RESTARTS = 1 ]", **NOTHING_TO_KILL)
        self.assertEqual(job.returncode, 0, job.err)
        addresses = set(job.out.split())
        self.assertEqual(len(addresses), 1)
        self.assertRegex(addresses.pop(), r"^127\.0\.0\.1:\d+/[0-9a-f]{32}$")
        with_secret = [line for line in job.err.splitlines() if "/" in line and "127.0.0.1" in line]
        self.assertEqual(with_secret, [])


class EndTest(HvdliterunTest):
    def test_exit_code_and_last_lines_of_a_failed_rank_are_printed(self):
        job = self.run_job("-np", "2", "--oversubscribe", *in_rank(
            "if [ $RANK = 1 ]; then echo it broke >&2; exit 5; fi; exec sleep infinity"))
        self.assertEqual(job.returncode, 5, job.err)
        self.assertRegex(job.err, r"rank 1 on \S+ failed first, with exit code 5; its last lines:\n"
                                  r"  \| it broke\n")
        self.assertNotIn("\x1e", job.err)
        # The launcher's messages about it are left out. Hydra prints none.
        if LAUNCHER == "Open MPI":
            self.assertRegex(job.err, r"  \d+ more lines of \S*mpirun: shown with --verbose\n")
        self.assertNotIn("exited with non-zero status", job.err)
        self.assertNotIn("Primary job", job.err)

    def test_launcher_messages_about_a_failure_are_shown_or_logged(self):
        if LAUNCHER != "Open MPI":
            self.skipTest("it prints no messages about failures: " + LAUNCHER)
        fails = in_rank("[ $RANK = 1 ] && exit 1; exec sleep infinity")
        told = self.run_job("-np", "2", "--oversubscribe", "--verbose", *fails).err
        self.assertIn("exited with non-zero status", told)
        self.assertNotIn(" more lines of ", told)
        logs = os.path.join(self.directory, "logs")
        told = self.run_job("-np", "2", "--oversubscribe", "--output-dir", logs, *fails).err
        self.assertIn("mpirun: %s/launcher.log\n" % logs, told)
        self.assertNotIn("exited with non-zero status", told)
        self.assertIn("exited with non-zero status", self.read("logs", "launcher.log"))

    def test_lost_report_is_no_failure_of_a_rank(self):
        for ranks in ("0", "01"):  # that exit with 74
            with self.subTest(ranks=ranks):
                job = self.run_job("-np", "2", "--oversubscribe", "--max-restarts", "1", *in_rank(
                    "case %s in *$RANK*) exit 74; esac" % ranks), **NOTHING_TO_KILL)
                self.assertEqual(job.returncode, 74, job.err)
                self.assertIn("hvdliterun: done, but a report could not be written "
                              "(exit code 74)\n", job.err)
                self.assertNotIn("failed", job.err)

    def test_signal_that_kills_a_rank_is_reported(self):
        job = self.run_job("-np", "2", "--oversubscribe", *in_rank(
            "[ $RANK = 0 ] && kill -SEGV $$; exec sleep infinity"))
        self.assertEqual(job.returncode, 128 + signal.SIGSEGV, job.err)
        self.assertIn("rank 0 on ", job.err)
        self.assertIn("by signal 11 (Segmentation fault)", job.err)

    def test_each_rank_has_a_log(self):
        logs = os.path.join(self.directory, "new", "logs")
        job = self.run_job("-np", "2", "--oversubscribe", "--output-dir", logs, *in_rank(
            "echo out $RANK; echo err $RANK >&2; [ $RANK = 0 ]"))
        self.assertEqual(job.returncode, 1)
        for rank in ("0", "1"):
            self.assertEqual(sorted(self.read(logs, "rank.%s.log" % rank).splitlines()),
                             ["err " + rank, "out " + rank])
        self.assertEqual(job.out, "out 0\n")
        self.assertIn("rank.1.log", job.err)
        self.assertIn("  | out 1\n", job.err)
        self.assertIn("command:", self.read(logs, "hvdliterun.txt"))

    def test_logs_of_an_earlier_job_are_not_replaced(self):
        logs = os.path.join(self.directory, "logs")
        words = ["-np", "2", "--oversubscribe", "--output-dir", logs]
        self.assertEqual(self.run_job(*words, *in_rank("echo first $RANK")).returncode, 0)
        job = self.run_job(*words, *in_rank("echo second $RANK"))
        self.assertEqual(job.returncode, 2, job.err)
        self.assertIn("contains logs of an earlier job, such as", job.err)
        self.assertEqual(self.read(logs, "rank.1.log"), "first 1\n")
        self.write("logs/notes.txt", "mine\n")
        os.mkdir(os.path.join(logs, "restart.1"))
        job = self.run_job("--overwrite", "-np", "1", "--output-dir", logs, "echo", "third")
        self.assertEqual(job.returncode, 0, job.err)
        self.assertEqual(sorted(os.listdir(logs)), ["hvdliterun.txt", "notes.txt", "rank.0.log"])

    def test_output_is_shown_if_the_disk_is_full(self):
        logs = os.path.join(self.directory, "full")
        os.makedirs(logs)
        os.symlink("/dev/full", os.path.join(logs, "rank.1.log"))
        job = self.run_job("-np", "2", "--oversubscribe", "--output-dir", logs,
                           *in_rank("echo out $RANK"))
        self.assertEqual(job.returncode, 0, job.err)
        self.assertEqual(sorted(job.out.splitlines()), ["out 0", "out 1"])
        self.assertRegex(job.err, r" rank 1 pid \d+ hvdliterun warning\] cannot write its log")
        self.assertIn("No space left on device; its output is shown here from now on", job.err)

    def test_program_or_launcher_that_cannot_start_is_a_wrong_argument(self):
        one = ("-np", "1")
        srun = dict(PATH="/nowhere")
        for words, told, variables in (
                *(((*one, program), program, {})
                  for program in ("/no/such/program", "no-such-program", "/tmp", "/etc/passwd")),
                ((*one, "--output-dir", "/dev/null/logs", "true"),
                 "cannot write /dev/null/logs/hvdliterun.txt", {}),
                (("--host-discovery", "echo no hosts today >&2; exit 4", "true"),
                 "ended with exit code 4: no hosts today", {}),
                ((*one, "--launcher", "srun", "true"), "there is no true in PATH", srun),
                ((*one, "--launcher", "srun", "/bin/true"),
                 "cannot start srun: No such file or directory: load your cluster's MPI module", srun)):
            with self.subTest(words=words):
                job = self.run_job(*words, **variables)
                self.assertEqual(job.returncode, 2)
                self.assertIn(told, job.err)
                self.assertNotIn("mpirun", job.err)

    def test_failure_of_the_launcher_itself_is_reported(self):
        job = self.run_job("-np", "1", "--launcher-args", "--nonsense", "true")
        self.assertNotEqual(job.returncode, 0)
        self.assertIn("hvdliterun: mpirun ended with exit code %d, and no rank reported a failure"
                      % job.returncode, job.err)

    def test_named_pipe_is_not_accepted_as_hostfile(self):
        job = self.run_job("--hostfile", self.pipe(), "true")
        self.assertEqual(job.returncode, 2)
        self.assertIn("it is a named pipe", job.err)
        # A file that the shell has opened is read: --hostfile <(...).
        reader, writer = os.pipe()
        os.write(writer, b"localhost slots=3\n")
        os.close(writer)
        with os.fdopen(reader):
            job = subprocess.run([PROGRAM, "--dry-run", "--oversubscribe", "--hostfile",
                                  "/dev/fd/%d" % reader, "true"], pass_fds=(reader,),
                                 env=self.environment(), stdout=subprocess.PIPE, text=True)
        self.assertIn("localhost: 3 ranks", job.stdout)

    # Ranks that print when they have started, and create a file when they get a signal. A file,
    # because mpirun may drop output while a job ends.
    LISTENER = ("trap 'kill $! 2>/dev/null; touch $TMPDIR/got$RANK; exit 0' %s; "
                "sleep infinity >/dev/null 2>&1 & echo there; wait")

    def started(self, name):
        # This gives ranks time to react on a busy machine.
        job = self.start("-np", "2", "--oversubscribe", *in_rank(self.LISTENER % name),
                         OMPI_MCA_odls_base_sigkill_timeout="5")
        for clean_up in (job.stdout.close, job.stderr.close, job.wait, job.kill):
            self.addCleanup(clean_up)  # the last one first
        for _ in range(2):
            self.assertEqual(job.stdout.readline(), "there\n")
        return job

    def check_all_got_it(self):
        for rank in ("0", "1"):
            os.remove(os.path.join(self.directory, "got" + rank))  # an error if the file is missing

    def test_session_directory_of_a_killed_launcher_is_removed(self):
        if LAUNCHER != "Open MPI":
            self.skipTest("it has no session directories: " + LAUNCHER)
        job = self.started("TERM")
        with open("/proc/%d/task/%d/children" % (job.pid, job.pid)) as file:
            launcher, = map(int, file.read().split())
        def sessions():
            return [directory for directory, _, _ in os.walk(self.directory) if str(launcher) in directory]

        self.assertNotEqual(sessions(), [])
        os.kill(launcher, signal.SIGKILL)
        job.communicate()
        self.assertEqual(job.returncode, 128 + signal.SIGKILL)
        self.assertEqual(sessions(), [])

    def test_signals_are_passed_on_to_the_ranks(self):
        for number, name, code in ((signal.SIGUSR1, "USR1", 0),
                                   (signal.SIGTERM, "TERM", 128 + signal.SIGTERM),
                                   (signal.SIGINT, "TERM", 128 + signal.SIGINT)):
            with self.subTest(signal=number):
                job = self.started(name)
                job.send_signal(number)
                _, err = job.communicate()
                self.check_all_got_it()
                self.assertEqual(job.returncode, code, err)
                self.assertEqual("; the program has not reported that it saved anything" in err,
                                 code != 0)

    def test_interrupted_ranks_have_not_failed(self):
        job = self.run_job("-np", "2", "--oversubscribe", "--max-restarts", "1", "sh", "-c",
                           "exit 130")
        self.assertEqual(job.returncode, 130, job.err)
        self.assertIn("hvdliterun: interrupted\n", job.err)
        self.assertNotIn("failed", job.err)
        self.assertNotIn("starting again", job.err)

    def test_ranks_with_a_handler_are_asked_to_stop_and_have_time_to_save(self):
        # Saving takes longer than the time that mpirun gives a rank after SIGTERM.
        jobs = {number: self.start("-np", "2", "--oversubscribe", "bash", "-c",
                                   "trap 'sleep 1.5; echo saved; exit 85' USR1; echo there; "
                                   "while :; do sleep 0.05; done")
                for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1)}
        for job in jobs.values():
            for clean_up in (job.stdout.close, job.stderr.close, job.wait, job.kill):
                self.addCleanup(clean_up)  # the last one first
        for number, job in jobs.items():
            for _ in range(2):
                self.assertEqual(job.stdout.readline(), "there\n")
            job.send_signal(number)
        for number, job in jobs.items():
            with self.subTest(signal=number):
                out, err = job.communicate()
                self.assertEqual(out, "saved\n" * 2, err)
                self.assertEqual(job.returncode, 130 if number == signal.SIGINT else 85, err)
                self.assertIn("hvdliterun: stopped early as requested and can be resumed\n", err)
                self.assertNotIn("failed first", err)

    def test_signals_at_the_same_time_are_one_request(self):
        # As timeout(1) does: it signals its child and then the process group.
        job = self.start("-np", "1", "bash", "-c",
                         "trap 'sleep 0.5; echo saved; exit 85' USR1; echo there; while :; do sleep 0.05; done")
        self.assertEqual(job.stdout.readline(), "there\n")
        job.send_signal(signal.SIGTERM)
        job.send_signal(signal.SIGINT)
        out, err = job.communicate()
        self.assertEqual(out, "saved\n", err)
        self.assertIn(job.returncode, (85, 130), err)  # depends on the signal that is read first

    def test_grace_time_ends(self):
        for words, reason in ((("--grace", "0.5"), "did not stop within 500ms"),
                              (("--grace", "1000"), "second request")):
            with self.subTest(words=words):
                job = self.start("-np", "1", *words, "bash", "-c",
                                 "trap 'echo asked; sleep 1.2; echo on' USR1; echo there; while :; do sleep 0.05; done")
                self.assertEqual(job.stdout.readline(), "there\n")
                job.send_signal(signal.SIGTERM)
                self.assertEqual(job.stdout.readline(), "asked\n")
                if reason == "second request":
                    self.assertEqual(job.stdout.readline(), "on\n")
                    job.send_signal(signal.SIGTERM)
                _, err = job.communicate()
                self.assertEqual(job.returncode, 128 + signal.SIGTERM, err)
                self.assertIn(reason, err)

    def test_nothing_is_left_when_hvdliterun_is_killed(self):
        job = self.start("-np", "1", "sh", "-c", "echo $$; exec sleep infinity")
        rank = os.pidfd_open(int(job.stdout.readline()))
        self.addCleanup(os.close, rank)
        job.kill()
        job.communicate()  # returns when no process has the pipes any more

    def test_wrapper_scripts_leave_nothing_when_their_launcher_is_killed(self):
        # $PPID is the process of hvdliterun beside the rank; its parent is mpirun. The child in the
        # background holds the pipe open. SIGTERM ends none of them.
        parent = "$(sed -n 's/^PPid:.//p' /proc/$PPID/status)"
        for victim in ("$PPID", parent):
            with self.subTest(victim=victim):
                pipe = self.pipe()
                job = self.start("-np", "1", "sh", "-c",
                                 "trap '' TERM; exec 9>%s; sleep infinity & "
                                 "echo %s >&9; wait" % (pipe, victim))
                with open(pipe) as text:
                    os.kill(int(text.readline()), signal.SIGKILL)
                    self.assertEqual(text.read(), "")  # when no process holds the pipe any more
                job.communicate()
                self.assertNotEqual(job.returncode, 0)
                os.remove(pipe)

    def test_ranks_are_asked_to_end_when_their_launcher_is_killed(self):
        # The pipe ends when neither the rank nor its child holds it any more.
        pipe = self.pipe()
        job = self.start("-np", "1", "sh", "-c",
                         "trap 'echo asked >&9; exit' TERM; exec 9>%s; sleep infinity & "
                         "sed -n 's/^PPid:.//p' /proc/$PPID/status >&9; wait" % pipe)
        with open(pipe) as text:
            os.kill(int(text.readline()), signal.SIGKILL)
            self.assertEqual(text.read(), "asked\n")
        job.communicate()
        self.assertNotEqual(job.returncode, 0)

    def test_ranks_with_blocked_logs_end_when_their_launcher_is_killed(self):
        # The process beside the rank waits forever for a reader of the log.
        pipe, log = self.pipe(), os.path.join(self.directory, "rank.0.log")
        os.mkfifo(log)
        reader = os.open(log, os.O_RDONLY | os.O_NONBLOCK)
        self.addCleanup(os.close, reader)
        job = self.start("-np", "1", "--output-dir", self.directory, "sh", "-c",
                         "trap '' TERM; exec 9>%s; "
                         "sed -n 's/^PPid:.//p' /proc/$PPID/status >&9; yes" % pipe)
        with open(pipe) as text:
            os.kill(int(text.readline()), signal.SIGKILL)
            self.assertEqual(text.read(), "")
        job.communicate()
        self.assertNotEqual(job.returncode, 0)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    if LAUNCHER is None:
        print("there is no mpirun")
        sys.exit(77)
    parallel_tests.main(at_once=6)
