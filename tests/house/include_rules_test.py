#!/usr/bin/env python3
"""The include rules hold in the tree, and the checker finds what breaks them."""

import os
import tempfile
import unittest

import include_rules

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class IncludeRulesTest(unittest.TestCase):
    def violations_of(self, files, with_torch=()):
        """What the checker says of a tree made of {path: text}.

        with_torch: sources that are compiled with LibTorch's headers in their path.
        """
        with tempfile.TemporaryDirectory() as root:
            for path, text in files.items():
                os.makedirs(os.path.join(root, os.path.dirname(path)), exist_ok=True)
                with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                    file.write(text)
            command = "c++ -isystem /opt/torch/include/torch/csrc/api/include -c "
            return include_rules.violations(root, [
                {"directory": root, "file": path, "command": (command if path in with_torch else "c++ -c ") + path}
                for path in files if path.endswith(".cc")])

    def assert_one(self, files, *words):
        found = self.violations_of(files)
        self.assertEqual(len(found), 1, found)
        for word in words:
            self.assertIn(word, found[0])

    def test_the_source_tree_keeps_the_rules(self):
        self.assertEqual(include_rules.violations(ROOT), [])

    def test_the_source_tree_is_not_empty(self):
        self.assertGreater(len(list(include_rules.source_files(ROOT))), 20)

    def test_a_tree_that_keeps_the_rules_has_no_violation(self):
        self.assertEqual(self.violations_of({
            "base/environment.cc": "auto v = getenv(name);\n",
            "base/clock.h": "#pragma once\n#include <cstdint>\n",
            "collective/mpi/mpi_check.h": "#include <mpi.h>\n",
            "collective/mpi/mpi_communicator.cc": '#include "collective/mpi/mpi_check.h"\n',
            "torch_plugin/include/hvdlite/work.h": "#include <torch/torch.h>\n#include <hvdlite/a.h>\n",
            "torch_plugin/ops/work.cc": '#include "hvdlite/work.h"\n#include "base/clock.h"\n',
            "trainers/main.cc": "#include <hvdlite/work.h>\n#include <torch/torch.h>\n",
            "tools/timeline_viewer/main.cc": '#include "timeline/read/reader.h"\n',
        }), [])

    def test_a_trainer_that_knows_more_than_its_users_is_found(self):
        self.assert_one({"trainers/train_net.cc": '#include "base/clock.h"\n#include <hvdlite/hvdlite.h>\n'},
                        "trainers/train_net.cc", "public headers alone")

    def test_a_lower_layer_that_includes_a_higher_one_is_found(self):
        self.assert_one({"timeline/read/a.cc": '#include "collective/communicator.h"\n'},
                        "timeline/read/a.cc", "collective/communicator.h")

    def test_the_public_api_below_the_plugin_is_found(self):
        self.assert_one({"negotiation/a.cc": "#include <hvdlite/hvdlite.h>\n"}, "hvdlite/hvdlite.h")

    def test_the_configuration_is_below_all_layers(self):
        self.assertEqual(self.violations_of({
            "base/config/include/hvdlite/config.h": "#include <string>\n",
            "base/config/config_loader.h": '#include "hvdlite/config.h"\n',
            "negotiation/world/backend.h": '#include "hvdlite/config.h"\n',
        }), [])
        self.assert_one({"base/config/include/hvdlite/config.h": '#include "base/clock.h"\n'}, "is installed")

    def test_a_part_of_a_layer_that_includes_a_later_part_is_found(self):
        self.assertEqual(self.violations_of({"negotiation/engine/a.h": '#include "negotiation/protocol/b.h"\n'}), [])
        self.assert_one({"negotiation/protocol/b.h": '#include "negotiation/engine/a.h"\n'}, "engine comes after protocol")

    def test_only_trainers_and_programs_include_what_programs_share(self):
        self.assertEqual(self.violations_of({
            "trainers/a.cc": '#include "support/chart.h"\n',
            "tools/doctor/a.cc": '#include "support/chart.h"\n',
            "bench/speed/a.cc": '#include "support/chart.h"\n#include "trainers/models/net.h"\n',
            "support/chart.cc": '#include "support/chart.h"\n#include "base/clock.h"\n',
        }), [])
        self.assert_one({"timeline/a.cc": '#include "support/chart.h"\n'}, "timeline/a.cc", "support/")
        self.assert_one({"support/a.cc": '#include "timeline/reader.h"\n'}, "may include only base")

    def test_nobody_includes_a_program(self):
        for path in ("trainers/a.cc", "support/a.cc", "tools/sweep/a.cc", "bench/speed/a.cc"):
            self.assert_one({path: '#include "tools/doctor/check.h"\n'}, path, "tools/doctor/")
        self.assertEqual(self.violations_of({"tools/doctor/a.cc": '#include "tools/doctor/check.h"\n'}), [])

    def test_what_reports_on_the_timeline_is_for_programs(self):
        self.assertEqual(self.violations_of({
            "timeline/report/report.cc": '#include "support/text_table.h"\n',
            "tools/hvdliterun/a.cc": '#include "timeline/report/report.h"\n',
        }), [])
        self.assert_one({"timeline/diagnose/a.cc": '#include "timeline/report/report.h"\n'},
                        "report comes after diagnose")
        self.assert_one({"timeline/record/a.cc": '#include "timeline/read/trace.h"\n'}, "read comes after record")

    def test_folders_of_one_component_may_share_what_is_confined(self):
        self.assertEqual(self.violations_of({
            "tools/sweep/run/spec.h": '#include "tools/sweep/sweep.pb.h"\n',
            "tools/sweep/tune/tuner.cc": '#include "tools/sweep/run/spec.h"\n',
            "negotiation/protocol/gate.h": '#include "negotiation/protocol/messages.pb.h"\n',
            "negotiation/engine/coordinator.cc": '#include "negotiation/protocol/gate.h"\n',
        }), [])

    def test_torch_below_the_plugin_is_found(self):
        self.assert_one({"collective/a.cc": "# include <ATen/ATen.h>\n"}, "only torch_plugin")

    def test_the_viewer_that_includes_a_backend_is_found(self):
        self.assert_one({"tools/timeline_viewer/a.cc": '#include "collective/communicator.h"\n'},
                        "may include only base, timeline")

    def test_mpi_in_a_header_of_another_folder_is_found(self):
        self.assert_one({"collective/mpi/session.h": "#include <mpi.h>\n",
                         "torch_plugin/runtime.cc": '#include "collective/mpi/session.h"\n'},
                        "collective/mpi/session.h", "mpi.h", "torch_plugin/runtime.cc")

    def test_mpi_in_the_public_header_for_it_is_for_one_file_and_programs(self):
        header = {"torch_plugin/include/hvdlite/mpi.h": "#include <mpi.h>\n",
                  "torch_plugin/state/mpi.cc": "#include <hvdlite/mpi.h>\n"}
        self.assertEqual(self.violations_of(header), [])
        self.assert_one(header | {"torch_plugin/state/world.cc": "#include <hvdlite/mpi.h>\n"},
                        "torch_plugin/state/world.cc", "only torch_plugin/state/mpi.cc")
        self.assert_one(header | {"torch_plugin/include/hvdlite/world.h": "#include <hvdlite/mpi.h>\n"},
                        "hvdlite/world.h", "needs no MPI")

    def test_protobuf_reached_through_a_second_header_is_found(self):
        self.assert_one({"negotiation/wire.h": '#include "negotiation/wire.pb.h"\n',
                         "negotiation/channel.h": '#include "negotiation/wire.h"\n',
                         "negotiation/mpi/a.cc": '#include "negotiation/channel.h"\n'},
                        "negotiation/wire.h", "wire.pb.h")

    def test_protobuf_in_what_is_compiled_with_torch_is_found(self):
        files = {"tools/bench/gate.cc": '#include "tools/bench/gate.h"\n',
                 "tools/bench/gate.h": '#include "messages.h"\n',
                 "tools/bench/messages.h": '#include "tools/bench/messages.pb.h"\n',
                 "tools/bench/main.cc": "#include <torch/torch.h>\n"}
        self.assertEqual(self.violations_of(files, with_torch=["tools/bench/main.cc"]), [])
        found = self.violations_of(files, with_torch=["tools/bench/main.cc", "tools/bench/gate.cc"])
        self.assertEqual(len(found), 1, found)
        self.assertIn("tools/bench/gate.cc: includes tools/bench/messages.pb.h", found[0])
        self.assertIn("LibTorch's headers", found[0])

    def test_protobuf_in_a_unity_build_with_torch_is_found(self):
        with tempfile.TemporaryDirectory() as root:
            unity = os.path.join(root, "build/a.dir/Unity/unity_0_cxx.cxx")
            for path, text in ((os.path.join(root, "tools/a.cc"), '#include "tools/a.pb.h"\n'),
                               (unity, '#include "%s/tools/a.cc"\n' % root)):
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
            found = include_rules.violations(root, [{
                "directory": root, "file": unity,
                "command": "c++ -isystem /opt/torch/include/torch/csrc/api/include -c " + unity}])
            self.assertEqual(len(found), 1, found)
            self.assertIn("tools/a.cc: includes tools/a.pb.h", found[0])

    def test_generated_protobuf_code_that_is_compiled_with_torch_is_found(self):
        files = {"build/tools/messages.pb.cc": ""}
        self.assertEqual(self.violations_of(files), [])
        self.assertEqual(len(self.violations_of(files, with_torch=list(files))), 1)

    def test_a_public_header_that_needs_abseil_is_found(self):
        self.assert_one({"torch_plugin/include/hvdlite/a.h": '#include "absl/status/status.h"\n'},
                        "is installed", "absl/status/status.h")

    def test_a_public_header_that_needs_an_internal_one_is_found(self):
        self.assert_one({"torch_plugin/include/hvdlite/a.h": '#include "base/clock.h"\n'}, "is installed")

    def test_getenv_elsewhere_is_found_but_not_in_comments(self):
        self.assert_one({"trainers/a.cc": 'auto v = std::getenv("HOME");\n',
                         "trainers/b.cc": "// never getenv\n/* getenv\n getenv */\n"},
                        "trainers/a.cc", "getenv")

    def test_a_launchers_variable_outside_the_table_is_found(self):
        self.assertEqual(self.violations_of({
            "base/launcher_environment.cc": 'auto v = get("PMI_RANK");\n',
            "tests/a_test.cc": 'setenv("SLURM_PROCID", "1");\n',
            "tools/doctor/a.cc": '// "PALS_RANKID"\nauto job = get("SLURM_JOB_ID");\n',
        }), [])
        self.assert_one({"tools/doctor/a.cc": 'auto v = get("PALS_RANKID");\n'}, "PALS_RANKID",
                        "base/launcher_environment.cc")


if __name__ == "__main__":
    unittest.main()
