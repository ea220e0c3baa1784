#!/usr/bin/env python3
"""Tests hvdliterun in jobs of its own SLURM, with two nodes on this machine.

usage: hvdliterun_slurm_test.py HVDLITERUN HVDLITE_DOCTOR

Exits with 77 (skipped) if SLURM is not installed (tools/setup --slurm) or may not be started. The
daemons end with the test, their files are in a temporary directory, their ports on loopback.
"""

import getpass
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "testing"))
import launchers  # noqa: E402

HVDLITERUN = None  # set by the command line
HVDLITE_DOCTOR = None
DAEMONS = ("munged", "slurmctld", "slurmd")
CLIENTS = ("salloc", "srun", "sinfo")
NODES = ("n1", "n2")
PATH = os.environ["PATH"] + ":/usr/sbin:/sbin"
WHERE = "echo $SLURMD_NODENAME $(sed -n 's/^Cpus_allowed_list:.//p' /proc/self/status)"


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def hardware():
    """This machine in SLURM's notation: "CPUs=2 Boards=1 ..."."""
    text = subprocess.run(["slurmd", "-C"], capture_output=True, text=True, env=dict(os.environ, PATH=PATH),
                          check=True).stdout.splitlines()[0]
    return " ".join(word for word in text.split() if not word.startswith("NodeName="))


class Slurm:
    """Context manager: runs the daemons of SLURM."""

    def __enter__(self):
        self.directory = tempfile.mkdtemp(prefix="slurm")
        self.munge_socket = f"--socket={self.directory}/munge.socket"
        self.processes = []
        try:
            self._write_configuration()
            files = [f"--{name}-file={self.directory}/munge.{name}" for name in ("key", "log", "pid", "seed")]
            subprocess.run(["munged", "--force", self.munge_socket, *files], env=dict(os.environ, PATH=PATH),
                           check=True, capture_output=True)
            self._start("Running as primary controller", "slurmctld", "-D", "-i", "-f", self.conf)
            for node in NODES:
                self._start("slurmd started", "slurmd", "-D", "-f", self.conf, "-N", node)
        except Exception:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for process in reversed(self.processes):
            process.terminate()
        for process in reversed(self.processes):
            process.wait()
        subprocess.run(["munged", "--stop", self.munge_socket], env=dict(os.environ, PATH=PATH), check=False,
                       capture_output=True)
        shutil.rmtree(self.directory, ignore_errors=True)

    def _write_configuration(self):
        self.conf = os.path.join(self.directory, "slurm.conf")
        controller, *ports = free_ports(1 + len(NODES))
        with open(os.path.join(self.directory, "munge.key"), "wb") as file:
            os.fchmod(file.fileno(), 0o600)
            file.write(os.urandom(128))
        machine = hardware()
        lines = [
            "ClusterName=test", "SlurmctldHost=localhost(127.0.0.1)", f"SlurmctldPort={controller}",
            f"SlurmUser={getpass.getuser()}", f"SlurmdUser={getpass.getuser()}", "AuthType=auth/munge",
            f"AuthInfo=socket={self.directory}/munge.socket", f"StateSaveLocation={self.directory}",
            f"SlurmdSpoolDir={self.directory}/%n", f"SlurmctldPidFile={self.directory}/slurmctld.pid",
            f"SlurmdPidFile={self.directory}/%n.pid", "ProctrackType=proctrack/linuxproc", "TaskPlugin=task/affinity",
            "SelectType=select/cons_tres", "SelectTypeParameters=CR_Core", "ReturnToService=2",
            f"PartitionName=all Nodes={','.join(NODES)} Default=YES MaxTime=10 State=UP"
        ]
        lines += [
            f"NodeName={node} NodeHostname=localhost NodeAddr=127.0.0.1 Port={port} {machine}"
            for node, port in zip(NODES, ports)
        ]
        with open(self.conf, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")

    def _start(self, ready, *command):
        """Starts a daemon, and returns when it has logged `ready`."""
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                   env=dict(os.environ, PATH=PATH))
        self.processes.append(process)
        seen = []
        for line in process.stderr:
            seen.append(line)
            if ready in line:
                # The pipe must not fill up.
                subprocess.Popen(["cat"], stdin=process.stderr, stdout=subprocess.DEVNULL)
                return
        raise RuntimeError(f"{command[0]} ended: {''.join(seen)}")

    def start(self, *words):
        """Starts a command of SLURM. It waits for the nodes."""
        environment = launchers.environment(SLURM_CONF=self.conf, PATH=PATH)
        return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)

    def job(self, *words):
        process = self.start(*words)
        output, errors = process.communicate(timeout=120)
        return subprocess.CompletedProcess(words, process.returncode, output, errors)


class SlurmTest(unittest.TestCase):
    slurm = None

    def places(self, job):
        """The sorted nodes of the ranks."""
        self.assertEqual(job.returncode, 0, job.stderr)
        lines = [line.split() for line in job.stdout.splitlines() if re.match(r"n\d ", line)]
        return sorted(node for node, _ in lines)

    def test_both_launchers_start_the_ranks_of_the_job(self):
        for launcher in ("auto", "srun"):
            with self.subTest(launcher):
                job = self.slurm.job("salloc", "-N2", "--ntasks-per-node=1", "--exclusive", HVDLITERUN, "--launcher",
                                     launcher, "sh", "-c", WHERE)
                self.assertEqual(self.places(job), ["n1", "n2"])

    def test_hosts_may_have_more_ranks_than_tasks(self):
        for launcher in ("auto", "srun"):
            with self.subTest(launcher):
                job = self.slurm.job("salloc", "-N2", "--ntasks-per-node=1", "--exclusive", HVDLITERUN, "-H",
                                     "n1:2,n2:1", "--launcher", launcher, "sh", "-c", WHERE)
                self.assertEqual(self.places(job), ["n1", "n1", "n2"])

    def test_ranks_of_a_node_have_different_cpus(self):
        if os.cpu_count() < 2:
            self.skipTest("one CPU")
        job = self.slurm.job("salloc", "-N1", "--ntasks-per-node=2", "--exclusive", HVDLITERUN, "--launcher", "srun",
                             "sh", "-c", WHERE)
        self.assertEqual(self.places(job), ["n1", "n1"])
        self.assertEqual(len({line.split()[1] for line in job.stdout.splitlines()}), 2, job.stdout)

    def test_job_step_uses_its_own_hosts(self):
        for launcher in ("auto", "srun"):
            with self.subTest(launcher):
                job = self.slurm.job("salloc", "-N2", "--ntasks-per-node=1", "--exclusive", "srun", "-N1", "-n1",
                                     HVDLITERUN, "--launcher", launcher, "sh", "-c", WHERE)
                self.assertEqual(self.places(job), ["n1"])
                self.assertIn("SLURM_OVERLAP", job.stderr)

    def test_first_failure_is_reported(self):
        job = self.slurm.job("salloc", "-N2", "--ntasks-per-node=1", "--exclusive", HVDLITERUN, "--launcher", "srun",
                             "sh", "-c", "[ $SLURM_PROCID = 0 ] || { echo no luck >&2; exit 6; }; exec sleep infinity")
        self.assertEqual(job.returncode, 6, job.stderr)
        self.assertIn("rank 1 on ", job.stderr)
        self.assertIn("failed first, with exit code 6", job.stderr)
        self.assertIn("  | no luck\n", job.stderr)

    def test_signal_to_the_step_reaches_the_program(self):
        pipe = os.path.join(self.slurm.directory, "ready")
        os.mkfifo(pipe)
        job = self.slurm.start("salloc", "-N2", "--ntasks-per-node=1", "--exclusive", HVDLITERUN, "--launcher", "srun",
                               "sh", "-c", "trap 'echo saved; exit 0' TERM; echo ready > %s; "
                               "while :; do sleep 0.1; done" % pipe)
        # It is also opened for writing, so that it does not end between the two ranks.
        with os.fdopen(os.open(pipe, os.O_RDWR), encoding="utf-8") as ready:
            for _ in NODES:
                self.assertEqual(ready.readline(), "ready\n")
        number = self.slurm.job("squeue", "--noheader", "--format=%i").stdout.strip()
        self.slurm.job("scancel", "--signal=TERM", number + ".0")
        output, errors = job.communicate(timeout=120)
        self.assertEqual(output.count("saved"), len(NODES), errors)

    def test_interactive_step_needs_the_number_of_ranks(self):
        # salloc starts a shell in this way with use_interactive_step.
        job = self.slurm.job("salloc", "-N2", "--exclusive", "srun", "--interactive", "--preserve-env",
                             HVDLITERUN, "--dry-run", "true")
        self.assertEqual(job.returncode, 2, job.stdout)
        self.assertIn("use -np N", job.stderr)

    def test_mpi_under_srun_sees_all_ranks(self):
        # The interfaces of Debian's Open MPI and MPICH.
        kind = "pmix" if launchers.kind() == "Open MPI" else "pmi2"
        if kind not in self.slurm.job("srun", "--mpi=list").stdout:
            self.skipTest("SLURM without " + kind)
        job = self.slurm.job("salloc", "-N1", "--ntasks-per-node=2", "--exclusive", HVDLITERUN, "--launcher", "srun",
                             "--launcher-args=--mpi=" + kind, HVDLITE_DOCTOR, "--check", "mpi", "--json", "-")
        self.assertEqual(json.loads(job.stdout)["ranks"], 2, job.stdout + job.stderr)


if __name__ == "__main__":
    HVDLITERUN, HVDLITE_DOCTOR = sys.argv[1:3]
    missing = [name for name in DAEMONS + CLIENTS if shutil.which(name, path=PATH) is None]
    if missing or os.geteuid() != 0:
        print("skipped:", f"without {', '.join(missing)}; tools/setup --slurm installs SLURM"
              if missing else "only root may run this SLURM")
        sys.exit(77)
    # This is shorter than ctest's time limit, which would leave the daemons running.
    signal.signal(signal.SIGALRM, lambda *_: sys.exit("SLURM does not start or a job does not end"))
    signal.alarm(300)
    with Slurm() as SlurmTest.slurm:
        result = unittest.main(argv=sys.argv[:1], exit=False).result
    sys.exit(not result.wasSuccessful())
