#!/usr/bin/env python3
"""Tests hvdliterun on several hosts, which are namespaces (dev/testbed).

usage: hvdliterun_testbed_test.py HVDLITERUN
"""

import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "testing"))
from launchers import environment, in_rank, kind  # noqa: E402

TESTBED = os.path.join(HERE, "..", "..", "..", "dev", "testbed")
PROGRAM = None  # set by the command line


def run(*words, **variables):
    return subprocess.run([TESTBED, "2", "--head", "--", PROGRAM, *words],
                          capture_output=True, text=True, env=environment(**variables))


class TestbedTest(unittest.TestCase):
    def test_ranks_are_distributed_to_hosts_and_bound_on_each(self):
        job = run("-np", "2", "-H", "host0:1,host1:1", "--set", "A=b c", *in_rank(
            "echo $RANK $(hostname) $LOCAL_RANK "
            "$(sed -n 's/^Cpus_allowed_list:.//p' /proc/self/status) $A $HVDLITE_PROBE"),
            HVDLITE_LOG_LEVEL="info")
        self.assertEqual(job.returncode, 0, job.stderr)
        cpus = ",".join(map(str, sorted(os.sched_getaffinity(0))))
        lines = sorted(job.stdout.splitlines())
        self.assertEqual([line.split()[:3] for line in lines],
                         [["0", "host0", "0"], ["1", "host1", "0"]])
        for line in lines:
            self.assertEqual(line.split()[4:], ["b", "c"])
            first, _, last = line.split()[3].replace(",", "-").partition("-")
            self.assertEqual(first, cpus.split(",")[0])
            self.assertEqual(last.split("-")[-1] or first, cpus.split(",")[-1])

    def test_failure_on_another_host_is_reported(self):
        job = run("-H", "host0:1,host1:1", "sh", "-c",
                  "if [ $(hostname) = host1 ]; then echo no luck >&2; exit 6; fi; "
                  "exec sleep infinity")
        self.assertEqual(job.returncode, 6, job.stderr)
        self.assertIn("rank 1 on host1 failed first, with exit code 6", job.stderr)
        self.assertIn("  | no luck\n", job.stderr)

    def test_lost_host_is_not_used_in_the_next_start(self):
        # host1 counts as lost when the file `lost` exists.
        with tempfile.TemporaryDirectory(dir="/tmp") as directory:
            lost, agent = os.path.join(directory, "lost"), os.path.join(directory, "agent")
            with open(agent, "w") as file:
                file.write("#!/bin/sh\n"
                           "case \" $* \" in *\" host1 \"*) [ -e %s ] && exit 255; esac\n"
                           "exec /run/testbed/enter \"$@\"\n" % lost)
            os.chmod(agent, 0o755)
            job = run("-np", "2", "--min-np", "1", "--max-restarts", "1", "-H", "host0:1,host1:1",
                      *in_rank("if [ $(hostname) = host1 ]; then touch %s; exit 6; fi; "
                               "[ $HVDLITE_RESTARTS = 1 ] || exec sleep infinity; "
                               "echo $SIZE on $(hostname)" % lost),
                      OMPI_MCA_plm_rsh_agent=agent, PRTE_MCA_plm_ssh_agent=agent,
                      HYDRA_LAUNCHER_EXEC=agent)
        self.assertEqual(job.returncode, 0, job.stderr)
        self.assertEqual(job.stdout, "1 on host0\n", job.stderr)
        self.assertIn("no program can be started any more on host1\n", job.stderr)

    def test_all_hosts_reach_the_commit_store(self):
        job = run("-np", "2", "-H", "host0:1,host1:1", "--commit-memory", "bash", "-c",
                  "a=${HVDLITE_COMMIT_STORE%/*}; exec 3<>/dev/tcp/${a%:*}/${a#*:} && echo reached")
        self.assertEqual(job.returncode, 0, job.stderr)
        self.assertEqual(job.stdout, "reached\n" * 2, job.stderr)

    def test_slurm_allocation_is_recognized(self):
        # The launcher is named, because "auto" would choose srun instead of MPICH's launcher here.
        launcher = "openmpi" if kind() == "Open MPI" else "mpich"
        job = run("--launcher", launcher, "sh", "-c", "hostname", SLURM_JOB_ID="7",
                  SLURM_JOB_NODELIST="host[0-1]", SLURM_NTASKS="2", SLURM_TASKS_PER_NODE="1(x2)")
        self.assertEqual(job.returncode, 0, job.stderr)
        self.assertEqual(sorted(job.stdout.split()), ["host0", "host1"])


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    check = subprocess.run([TESTBED, "2", "--check"], capture_output=True, text=True)
    if check.returncode == 77:
        print(check.stderr)
        sys.exit(77)
    unittest.main()
