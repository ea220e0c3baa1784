#!/usr/bin/env python3
"""Tests the published sweep over A64FX nodes: its spec has the published arguments, and hvdliterun
gives each rank the cores that Open MPI itself gives it for these words, on as many nodes as were
published. Neither needs an A64FX: hvdliterun plans for a topology that it is told, Open MPI maps
ranks to nodes that it simulates.

usage: published_a64fx_test.py SCALING_SWEEP HVDLITERUN     status 77 if mpirun is not Open MPI 4
"""

import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
SPEC = os.path.join(ROOT, "tools", "scaling_sweep", "specs", "a64fx_scaling.txt")
SWEEP = LAUNCHER = None  # of the command line

NODES = [1, 2, 4, 8, 16, 32, 64, 128]
DOMAINS, CORES = 4, 12
AS_ROOT = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
A64FX = f"pack:1 numa:{DOMAINS}(memory=8000000000) l2:1(size=8388608) core:{CORES} pu:1"
# The published arguments of mpirun and variables, ranks per node, threads per rank.
PUBLISHED = [
    ("ppr:1:node:pe=48", "XOS_MMM_L_HPAGE_TYPE=none", 1, 48),
    ("ppr:1:numa:pe=12", "XOS_MMM_L_PAGING_POLICY=demand:demand", 4, 12)]


def hwloc_xml():
    """Returns the same machine as hwloc's XML, which Open MPI reads."""
    def sets(first, count, domains):
        cpus = f"0x{(1 << first + count) - (1 << first):x}"
        words = ",".join(f"0x{int(cpus, 16) >> shift & 0xffffffff:08x}" for shift in (32, 0))
        nodes = f"0x{sum(1 << domain for domain in domains):08x}"
        return " ".join(f'{prefix}cpuset="{words}" {prefix}nodeset="{nodes}"' for prefix in ("", "complete_"))
    everything = sets(0, DOMAINS * CORES, range(DOMAINS))
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', '<topology version="2.0">',
             f'<object type="Machine" os_index="0" {everything} '
             f'{everything.replace("complete_", "allowed_").split(" ", 2)[2]} gp_index="1">',
             f'<object type="Package" os_index="0" {everything} gp_index="2">']
    for domain in range(DOMAINS):
        first = domain * CORES
        lines += [f'<object type="L2Cache" {sets(first, CORES, [domain])} gp_index="{100 + domain}" '
                  'cache_size="8388608" depth="2" cache_linesize="64" cache_associativity="0" cache_type="0">',
                  f'<object type="NUMANode" os_index="{domain}" {sets(first, CORES, [domain])} '
                  f'gp_index="{200 + domain}" local_memory="8000000000"/>']
        for core in range(first, first + CORES):
            lines += [f'<object type="{kind}" os_index="{core}" {sets(core, 1, [domain])} gp_index="{base + core}">'
                      for kind, base in (("Core", 300), ("PU", 400))] + ["</object>"] * 2
        lines.append("</object>")
    return "\n".join(lines + ["</object>", "</object>", "</topology>", ""])


def dry_run():
    """Returns the commands of the spec: {(--map-by, nodes): (arguments, ranks)}."""
    text = subprocess.run([SWEEP, SPEC, "--dry-run"], capture_output=True, text=True, check=True).stdout
    found = {}
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        words = shlex.split(line)
        nodes = len(words[words.index("-H") + 1].split(","))
        found[words[words.index("--map-by") + 1], nodes] = words
    return found


class PublishedA64fxTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="a64")  # short: sockets lie in it
        self.addCleanup(directory.cleanup)
        self.directory = directory.name
        self.topology = os.path.join(self.directory, "a64fx.xml")
        with open(self.topology, "w", encoding="utf-8") as file:
            file.write(hwloc_xml())

    def mapped_by_open_mpi(self, words, nodes, ranks):
        """Returns (node, CPUs) of each rank."""
        # On a busy machine mpirun sometimes fails before it has printed the whole map.
        for _ in range(5):
            text = self.map_of_open_mpi(words, nodes)
            found = self.ranks_of(text[:text.rfind("\n") + 1])
            if len(found) == nodes * ranks:
                return found
        return self.fail(text)

    def map_of_open_mpi(self, words, nodes):
        environment = {**AS_ROOT, "TMPDIR": self.directory}
        # mpirun fails, because it starts nothing, but it prints the map before.
        return subprocess.run(
            ["mpirun", "--mca", "ras_simulator_num_nodes", str(nodes), "--mca", "ras_simulator_slots", "48",
             "--mca", "ras_simulator_topo_files", self.topology, "--map-by", words, "--bind-to", "core",
             "--display-devel-map", "--do-not-launch", "true"],
            capture_output=True, text=True, env=environment, timeout=100, check=False).stdout

    def ranks_of(self, text):
        ranks, node = {}, None
        for line in text.splitlines():
            if match := re.search(r"Data for node: \w*?(\d+)\s", line):
                node = int(match.group(1))
            elif match := re.search(r"Data for proc: \[\[\d+,1\],(\d+)\]", line):
                rank = int(match.group(1))
            elif match := re.search(r"Binding: (?:\[(.*)\])?", line):
                # mpirun does not bind a rank that has all cores of its node.
                cores = (match.group(1) or "/".join("B" * DOMAINS * CORES)).split("/")
                self.assertEqual(len(cores), DOMAINS * CORES)
                ranks[rank] = (node, [cpu for cpu, mark in enumerate(cores) if mark == "B"])
        return [ranks[rank] for rank in sorted(ranks)]

    def planned(self, words):
        """Returns hvdliterun's plan for these arguments on A64FX nodes."""
        self.assertEqual(words[0], "hvdliterun")
        text = subprocess.run([LAUNCHER, "--dry-run=json", "--topology", A64FX, "--launcher", "openmpi"] + words[1:],
                              capture_output=True, text=True, env=AS_ROOT, check=False)
        self.assertEqual(text.returncode, 0, text.stderr)
        return json.loads(text.stdout)

    def test_the_spec_runs_the_published_arguments_on_1_to_128_nodes(self):
        commands = dry_run()
        self.assertEqual(sorted(commands), sorted((words, nodes) for words, _, _, _ in PUBLISHED for nodes in NODES))
        for map_by, variable, ranks, threads in PUBLISHED:
            for nodes in NODES:
                words = commands[map_by, nodes]
                hosts = ",".join(f"node{node}:{ranks}" for node in range(1, nodes + 1))
                self.assertEqual(words[:9], ["hvdliterun", "-np", str(nodes * ranks), "-H", hosts,
                                             "--threads", str(threads), "--set", variable])
                at = words.index("--map-by")
                self.assertEqual(words[at:at + 2], ["--map-by", map_by])
                program = words[words.index("train_resnet50"):]
                for flag, value in (("--batch-size-per-rank", "512"), ("--stem", "imagenet"),
                                    ("--data-dir", "data/cifar10")):
                    self.assertEqual(program[program.index(flag) + 1], value)

    def test_ranks_have_the_cores_that_open_mpi_gives_them(self):
        commands = dry_run()
        for map_by, variable, ranks, threads in PUBLISHED:
            for nodes in NODES:
                with self.subTest(map_by, nodes=nodes):
                    plan = self.planned(commands[map_by, nodes])
                    group, = plan["hosts"]
                    self.assertEqual(group["names"], [f"node{node}" for node in range(1, nodes + 1)])
                    ours = [(node, rank["cpus"]) for node in range(nodes) for rank in group["ranks"]]
                    self.assertEqual(ours, self.mapped_by_open_mpi(map_by, nodes, ranks))
                    self.assertIn(variable, [f"{one['name']}={one['value']}" for one in plan["environment"]])
                    for rank in group["ranks"]:
                        self.assertEqual(len(rank["cpus"]), threads)
                        self.assertEqual(rank["threads"], threads)
                        self.assertIsNone(rank["coordinator_cpu"])
                        self.assertFalse(rank["oversubscribed"])
                        names = {one["name"]: one["value"] for one in rank["environment"]}
                        self.assertEqual(names["OMP_NUM_THREADS"], str(threads))


def has_open_mpi_4():
    try:
        text = subprocess.run(["mpirun", "--version"], capture_output=True, text=True, check=False).stdout
    except FileNotFoundError:
        return False
    return re.search(r"\(Open MPI\) 4\.", text) is not None


if __name__ == "__main__":
    if not has_open_mpi_4():
        print("skipped: mpirun is not Open MPI 4, which can map ranks to nodes that do not exist")
        sys.exit(77)
    SWEEP, LAUNCHER = map(os.path.abspath, sys.argv[1:3])
    del sys.argv[1:3]
    unittest.main()
