// Inputs of hvdlite_doctor: OMP_PLACES, files of cgroups, lists of CPUs, NUMA
// nodes, and the kernel's files about processes.
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <string>

#include "absl/strings/string_view.h"
#include "base/environment.h"
#include "support/core_use.h"
#include "support/machine.h"
#include "support/processor.h"
#include "tests/fuzz/fuzz_input.h"
#include "tools/doctor/checks/host_checks.h"
#include "tools/doctor/checks/rank_threads.h"

namespace hvdlite::fuzz {
namespace {

// The input has one line each for OMP_PLACES, OMP_PROC_BIND, OMP_NUM_THREADS.
void PlaceThreads(FuzzInput& input) {
  const std::string places(input.Until('\n'));
  const auto environment = base::FakeEnvironment(
      {{"OMP_PLACES", places},
       {"OMP_PROC_BIND", std::string(input.Until('\n'))},
       {"OMP_NUM_THREADS", std::string(input.Until('\n'))}});
  FUZZ_CHECK(doctor::OpenMpThreads(environment, 8) >= 1);
  const auto listed = doctor::ParsePlaces(places);
  if (listed.has_value()) {
    FUZZ_CHECK(!listed->empty());
    for (const auto& place : *listed) FUZZ_CHECK(!place.empty());
  }
  const auto cores = doctor::CoresOfThreads(
      environment, 8, {0, 1, 2, 3, 64, 65}, [](int cpu) { return cpu % 64; });
  FUZZ_CHECK(cores.empty() || cores.size() == 8);
  doctor::PlacesOutside(environment, {0, 1});
}

// Each file is a line with its path, then its text up to a byte 0. No file is
// outside the directory.
void ReadFiles(FuzzInput& input) {
  static const FuzzDirectory directory;
  directory.Clear();
  for (int i = 0; !input.empty() && i < 10; ++i) {
    const auto path =
        std::filesystem::path("/" + std::string(input.Until('\n')));
    const std::string name = path.lexically_normal().relative_path().native();
    const std::string_view text = input.Until('\0');
    std::error_code error;
    const std::filesystem::path file = directory / name;
    std::filesystem::create_directories(file.parent_path(), error);
    if (error || name.empty() || name.size() > 200 ||
        std::filesystem::exists(file, error) || error || !file.has_filename()) {
      continue;
    }
    directory.Write(name, text);
  }
  const support::SystemFiles files(directory / "");
  const double quota = doctor::CgroupQuota(files);
  FUZZ_CHECK(quota >= 0 && std::isfinite(quota));
  doctor::JudgeThreads({{.host = "a", .cpus = {0}, .quota = quota}});
  const doctor::NumaFacts numa = doctor::GatherNuma(files, {0, 1});
  FUZZ_CHECK(numa.used_nodes.size() <= static_cast<size_t>(numa.nodes));
  doctor::JudgeNuma(numa);
  FUZZ_CHECK(support::CoreOf(1, files) >= 0);
  const support::ProcessTimes times = support::ReadProcessTimes(files);
  doctor::CompetitorOn(0, {}, times, 1);
  doctor::CompetitorOn(0, times, times, 1);
  support::CoreWatch watch(files);
  const support::CoreLook look = watch.Look(0);
  for (const support::CoreUse& core :
       support::UseBetween(watch, {}, look, {{0, 1}})) {
    FUZZ_CHECK(core.busy >= 0 && core.busy <= 1);
    support::CoreBars({core}, {""});
  }
}

void ReadList(FuzzInput& input) {
  const std::string_view text = input.Rest();
  const auto cpus =
      support::ParseCpuList(absl::string_view(text.data(), text.size()));
  if (!cpus.ok()) {
    FUZZ_CHECK(!cpus.status().message().empty());
    return;
  }
  FUZZ_CHECK(support::ParseCpuList(support::FormatCpuList(*cpus)).value() ==
             *cpus);
}

}  // namespace
}  // namespace hvdlite::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  hvdlite::fuzz::FuzzInput input(data, size);
  switch (input.Below(3)) {
    case 0:
      hvdlite::fuzz::PlaceThreads(input);
      break;
    case 1:
      hvdlite::fuzz::ReadFiles(input);
      break;
    default:
      hvdlite::fuzz::ReadList(input);
  }
  return 0;
}
