#!/usr/bin/env python3
"""The source tree keeps the include rules, and the checker finds violations."""

import os
import tempfile
import unittest

import include_rules

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

MPI_HEADER = {"torch_plugin/include/hvdlite/mpi.h": "#include <mpi.h>\n",
              "torch_plugin/state/mpi.cc": "#include <hvdlite/mpi.h>\n"}

# Trees ({path: text}) that keep the rules.
KEPT = {
    "layers include lower layers": {
        "base/environment.cc": "auto v = getenv(name);\n",
        "base/clock.h": "#pragma once\n#include <cstdint>\n",
        "collective/mpi/mpi_check.h": "#include <mpi.h>\n",
        "collective/mpi/mpi_communicator.cc": '#include "collective/mpi/mpi_check.h"\n',
        "torch_plugin/include/hvdlite/work.h": "#include <torch/torch.h>\n#include <hvdlite/a.h>\n",
        "torch_plugin/ops/work.cc": '#include "hvdlite/work.h"\n#include "base/clock.h"\n',
        "trainers/main.cc": "#include <hvdlite/work.h>\n#include <torch/torch.h>\n",
        "tools/timeline_viewer/main.cc": '#include "timeline/read/reader.h"\n'},
    "all layers include the configuration": {
        "base/config/include/hvdlite/config.h": "#include <string>\n",
        "base/config/config_loader.h": '#include "hvdlite/config.h"\n',
        "negotiation/world/backend.h": '#include "hvdlite/config.h"\n'},
    "a later part of a layer includes an earlier one": {
        "negotiation/engine/a.h": '#include "negotiation/protocol/b.h"\n'},
    "trainers and programs include the shared code of programs": {
        "trainers/a.cc": '#include "support/chart.h"\n',
        "tools/doctor/a.cc": '#include "support/chart.h"\n',
        "bench/speed/a.cc": '#include "support/chart.h"\n#include "trainers/models/net.h"\n',
        "support/chart.cc": '#include "support/chart.h"\n#include "base/clock.h"\n'},
    "a program includes itself": {"tools/doctor/a.cc": '#include "tools/doctor/check.h"\n'},
    "programs include reports about the timeline": {
        "timeline/report/report.cc": '#include "support/text_table.h"\n',
        "tools/hvdliterun/a.cc": '#include "timeline/report/report.h"\n'},
    "directories of one component share confined headers": {
        "tools/sweep/run/spec.h": '#include "tools/sweep/sweep.pb.h"\n',
        "tools/sweep/tune/tuner.cc": '#include "tools/sweep/run/spec.h"\n',
        "negotiation/protocol/gate.h": '#include "negotiation/protocol/messages.pb.h"\n',
        "negotiation/engine/coordinator.cc": '#include "negotiation/protocol/gate.h"\n'},
    "the public header for MPI": MPI_HEADER,
    "comments contain forbidden words": {"trainers/b.cc": "// never getenv\n/* getenv\n getenv */\n"},
    "the table of launchers' variables": {
        "base/launcher_environment.cc": 'auto v = get("PMI_RANK");\n',
        "tests/a_test.cc": 'setenv("SLURM_PROCID", "1");\n',
        "tools/doctor/a.cc": '// "PALS_RANKID"\nauto job = get("SLURM_JOB_ID");\n'},
}

# (a tree that breaks one rule, parts of the message)
BROKEN = [
    ({"trainers/train_net.cc": '#include "base/clock.h"\n#include <hvdlite/hvdlite.h>\n'},
     "trainers/train_net.cc", "only public headers"),
    ({"timeline/read/a.cc": '#include "collective/communicator.h"\n'}, "timeline/read/a.cc",
     "collective/communicator.h"),
    ({"negotiation/a.cc": "#include <hvdlite/hvdlite.h>\n"}, "hvdlite/hvdlite.h"),
    ({"base/config/include/hvdlite/config.h": '#include "base/clock.h"\n'}, "is installed"),
    ({"negotiation/protocol/b.h": '#include "negotiation/engine/a.h"\n'}, "engine comes after protocol"),
    ({"timeline/a.cc": '#include "support/chart.h"\n'}, "timeline/a.cc", "support/"),
    ({"support/a.cc": '#include "timeline/reader.h"\n'}, "may include only base"),
    *[({path: '#include "tools/doctor/check.h"\n'}, path, "tools/doctor/")
      for path in ("trainers/a.cc", "support/a.cc", "tools/sweep/a.cc", "bench/speed/a.cc")],
    ({"timeline/diagnose/a.cc": '#include "timeline/report/report.h"\n'}, "report comes after diagnose"),
    ({"timeline/record/a.cc": '#include "timeline/read/trace.h"\n'}, "read comes after record"),
    ({"collective/a.cc": "# include <ATen/ATen.h>\n"}, "only torch_plugin"),
    ({"tools/timeline_viewer/a.cc": '#include "collective/communicator.h"\n'}, "may include only base, timeline"),
    ({"collective/mpi/session.h": "#include <mpi.h>\n",
      "torch_plugin/runtime.cc": '#include "collective/mpi/session.h"\n'},
     "collective/mpi/session.h", "mpi.h", "torch_plugin/runtime.cc"),
    (MPI_HEADER | {"torch_plugin/state/world.cc": "#include <hvdlite/mpi.h>\n"},
     "torch_plugin/state/world.cc", "only torch_plugin/state/mpi.cc"),
    (MPI_HEADER | {"torch_plugin/include/hvdlite/world.h": "#include <hvdlite/mpi.h>\n"},
     "hvdlite/world.h", "needs no MPI"),
    ({"negotiation/wire.h": '#include "negotiation/wire.pb.h"\n',
      "negotiation/channel.h": '#include "negotiation/wire.h"\n',
      "negotiation/mpi/a.cc": '#include "negotiation/channel.h"\n'}, "negotiation/wire.h", "wire.pb.h"),
    ({"torch_plugin/include/hvdlite/a.h": '#include "absl/status/status.h"\n'}, "is installed",
     "absl/status/status.h"),
    ({"torch_plugin/include/hvdlite/a.h": '#include "base/clock.h"\n'}, "is installed"),
    ({"trainers/a.cc": 'auto v = std::getenv("HOME");\n'}, "trainers/a.cc", "getenv"),
    ({"tools/doctor/a.cc": 'auto v = get("PALS_RANKID");\n'}, "PALS_RANKID", "base/launcher_environment.cc"),
]

PLAIN = "c++ -c "
WITH_TORCH = "c++ -isystem /opt/torch/include/torch/csrc/api/include -c "


class IncludeRulesTest(unittest.TestCase):
    def violations_of(self, files, with_torch=(), compiled=()):
        """Returns the checker's messages for a tree of {path: text}; ROOT stands for its path.

        with_torch: sources that are compiled with LibTorch's headers in their path.
        compiled: sources that are compiled (default: all).
        """
        with tempfile.TemporaryDirectory() as root:
            for path, text in files.items():
                os.makedirs(os.path.join(root, os.path.dirname(path)), exist_ok=True)
                with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                    file.write(text.replace("ROOT", root))
            return include_rules.violations(root, [
                {"directory": root, "file": path, "command": (WITH_TORCH if path in with_torch else PLAIN) + path}
                for path in compiled or files if path.endswith((".cc", ".cxx"))])

    def assert_one(self, found, words):
        self.assertEqual(len(found), 1, found)
        for word in words:
            self.assertIn(word, found[0])

    def test_the_source_tree_keeps_the_rules(self):
        self.assertEqual(include_rules.violations(ROOT), [])
        self.assertGreater(len(list(include_rules.source_files(ROOT))), 20)

    def test_trees_that_keep_the_rules_have_no_violations(self):
        for what, files in KEPT.items():
            with self.subTest(what):
                self.assertEqual(self.violations_of(files), [])

    def test_violations_are_found(self):
        for files, *words in BROKEN:
            with self.subTest(words):
                self.assert_one(self.violations_of(files), words)

    def test_protobuf_header_in_a_source_compiled_with_torch_is_found(self):
        files = {"tools/bench/gate.cc": '#include "tools/bench/gate.h"\n',
                 "tools/bench/gate.h": '#include "messages.h"\n',
                 "tools/bench/messages.h": '#include "tools/bench/messages.pb.h"\n',
                 "tools/bench/main.cc": "#include <torch/torch.h>\n"}
        self.assertEqual(self.violations_of(files, with_torch=["tools/bench/main.cc"]), [])
        words = ["tools/bench/gate.cc: includes tools/bench/messages.pb.h", "LibTorch's headers"]
        self.assert_one(self.violations_of(files, with_torch=["tools/bench/main.cc", "tools/bench/gate.cc"]), words)
        unity = "build/a.dir/Unity/unity_0_cxx.cxx"
        files[unity] = '#include "ROOT/tools/bench/gate.cc"\n'
        self.assert_one(self.violations_of(files, with_torch=[unity], compiled=[unity]), words)

    def test_generated_protobuf_code_compiled_with_torch_is_found(self):
        files = {"build/tools/messages.pb.cc": ""}
        self.assertEqual(self.violations_of(files), [])
        self.assertEqual(len(self.violations_of(files, with_torch=list(files))), 1)


if __name__ == "__main__":
    unittest.main()
