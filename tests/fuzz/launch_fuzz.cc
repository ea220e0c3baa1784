// Inputs of hvdliterun: its command line, lists and files of hosts, variables
// of batch systems, and reports of ranks through the launcher.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/environment.h"
#include "tests/fuzz/fuzz_input.h"
#include "tools/hvdliterun/plan/allocation.h"
#include "tools/hvdliterun/plan/flags.h"
#include "tools/hvdliterun/plan/slurm_list.h"
#include "tools/hvdliterun/rank/rank_reports.h"

namespace hvdlite::fuzz {
namespace {

absl::string_view ToAbsl(std::string_view text) {
  return {text.data(), text.size()};
}

void CheckAllocation(const absl::StatusOr<launch::Allocation>& allocation) {
  if (!allocation.ok()) {
    FUZZ_CHECK(!allocation.status().message().empty());
    return;
  }
  FUZZ_CHECK(allocation->slots() >= 0);
  for (const int ranks : {1, 7}) {
    const auto dealt = launch::DealRanks(*allocation, ranks, true);
    if (!dealt.ok()) continue;
    int64_t sum = 0;
    for (const launch::Host& host : *dealt) sum += host.slots;
    FUZZ_CHECK(sum == ranks);
  }
}

void ReadVariables(FuzzInput& input) {
  std::vector<std::pair<std::string, std::string>> variables;
  while (!input.empty() && variables.size() < 20) {
    const std::string line(input.Until('\n'));
    const size_t equals = std::min(line.find('='), line.size());
    variables.emplace_back(line.substr(0, equals),
                           line.substr(std::min(equals + 1, line.size())));
    if (line.empty()) break;  // the rest is a file
  }
  const std::string file(input.Rest());
  const auto environment = base::FakeEnvironment(variables);
  CheckAllocation(launch::DetectAllocation(
      environment,
      [&](const std::string&) -> absl::StatusOr<std::string> { return file; }));
}

void ReadFlags(FuzzInput& input) {
  std::vector<std::string> arguments;
  while (!input.empty() && arguments.size() < 30) {
    arguments.emplace_back(input.Until('\n'));
  }
  const auto flags = launch::ParseFlags(arguments);
  if (!flags.ok()) FUZZ_CHECK(!flags.status().message().empty());
}

// The result must not depend on how the stream is divided; nothing may be lost.
void ReadReports(FuzzInput& input) {
  const size_t piece = static_cast<size_t>(input.Below(40)) + 1;
  const std::string text(input.Rest());
  std::string passed;
  std::string passed_in_pieces;
  launch::RankReports whole(
      [&](absl::string_view part) { passed.append(part.data(), part.size()); });
  launch::RankReports pieces([&](absl::string_view part) {
    passed_in_pieces.append(part.data(), part.size());
  });
  whole.Take(text);
  whole.End();
  for (size_t at = 0; at < text.size(); at += piece) {
    pieces.Take(ToAbsl(std::string_view(text).substr(at, piece)));
  }
  pieces.End();
  FUZZ_CHECK(passed == passed_in_pieces);
  FUZZ_CHECK(whole.failures().size() == pieces.failures().size());
  whole.First();
}

void Run(FuzzInput input) {
  switch (input.Below(7)) {
    case 0:
      return CheckAllocation(
          launch::AllocationOfHostList(ToAbsl(input.Rest())));
    case 1:
      return CheckAllocation(
          launch::AllocationOfHostfile(ToAbsl(input.Rest()), "hosts.txt"));
    case 2: {
      const auto hosts = launch::ExpandHostList(ToAbsl(input.Rest()));
      if (hosts.ok()) FUZZ_CHECK(hosts->size() <= 1'000'000);
      return;
    }
    case 3: {
      const auto counts = launch::ExpandCounts(ToAbsl(input.Rest()));
      if (counts.ok()) FUZZ_CHECK(counts->size() <= 1'000'000);
      return;
    }
    case 4:
      return ReadVariables(input);
    case 5:
      return ReadFlags(input);
    default:
      return ReadReports(input);
  }
}

}  // namespace
}  // namespace hvdlite::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  hvdlite::fuzz::Run(hvdlite::fuzz::FuzzInput(data, size));
  return 0;
}
