// Settings of users and launchers: HVDLITE_* variables, a table of allreduce
// algorithms, virtual nodes, and a launcher's variables.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/config/config_loader.h"
#include "base/environment.h"
#include "base/launcher_environment.h"
#include "collective/shm/allreduce_table.h"
#include "collective/topology.h"
#include "tests/fuzz/fuzz_input.h"

namespace hvdlite::fuzz {
namespace {

using Variables = std::vector<std::pair<std::string, std::string>>;

// Reads lines of "NAME=VALUE".
Variables VariablesOf(FuzzInput& input) {
  Variables variables;
  while (!input.empty() && variables.size() < 50) {
    FuzzInput line = [&] {
      const std::string_view text = input.Until('\n');
      return FuzzInput(reinterpret_cast<const uint8_t*>(text.data()),
                       text.size());
    }();
    std::string name(line.Until('='));
    // A variable cannot contain a byte 0.
    variables.emplace_back(std::move(name), std::string(line.Rest()));
  }
  return variables;
}

void LoadVariables(const Variables& variables) {
  const auto environment = base::FakeEnvironment(variables);
  const absl::StatusOr<Config> config = LoadConfig(environment);
  if (config.ok()) {
    FUZZ_CHECK(ValidateConfig(*config).ok());
    FUZZ_CHECK(!DescribeConfig(*config).empty());
    // Printed values must be read unchanged.
    Variables printed;
    for (const ConfigValue& value : ConfigValues(*config)) {
      std::string name = absl::StrCat("HVDLITE_", value.name);
      for (char& c : name) c = static_cast<char>(std::toupper(c));
      printed.emplace_back(std::move(name), value.text);
    }
    const auto again = LoadConfig(base::FakeEnvironment(printed));
    FUZZ_CHECK(again.ok());
    const std::vector<ConfigValue> values = ConfigValues(*config);
    const std::vector<ConfigValue> same = ConfigValues(*again);
    for (size_t i = 0; i < values.size(); ++i) {
      FUZZ_CHECK(values[i].text == same[i].text);
    }
  } else {
    FUZZ_CHECK(!config.status().message().empty());
  }
  base::IsLaunched(environment);
  base::RankOfLauncher(environment);
  base::SeveralRanksPromised(environment);
}

void ReadTable(std::string_view text) {
  const auto table = collective::AllreduceTable::Parse(
      absl::string_view(text.data(), text.size()));
  if (!table.ok()) {
    FUZZ_CHECK(!table.status().message().empty());
    return;
  }
  const collective::AllreduceTable one_order = table->WithOneOrder();
  for (const int nodes : {1, 2, 100}) {
    for (const size_t bytes : {size_t{0}, size_t{4}, size_t{1} << 40}) {
      const auto choice = table->Choose(nodes, 4, bytes);
      FUZZ_CHECK(choice.chunk_bytes <=
                 collective::AllreduceTable::kMaxChunkBytes);
      one_order.Choose(nodes, 4, bytes);
    }
    table->Describe(nodes, 4);
  }
}

void SplitNodes(std::string_view text) {
  const collective::Topology topology = collective::MakeTopology(
      0, {0, 0, 0, 0, 4, 4, 4, 4}, {"a", "a", "a", "a", "b", "b", "b", "b"});
  const auto split = collective::WithVirtualNodes(
      topology, absl::string_view(text.data(), text.size()));
  if (split.ok()) FUZZ_CHECK(split->size == topology.size);
}

}  // namespace
}  // namespace hvdlite::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  hvdlite::fuzz::FuzzInput input(data, size);
  switch (input.Below(3)) {
    case 0:
      hvdlite::fuzz::LoadVariables(hvdlite::fuzz::VariablesOf(input));
      break;
    case 1:
      hvdlite::fuzz::ReadTable(input.Rest());
      break;
    default:
      hvdlite::fuzz::SplitNodes(input.Rest());
  }
  return 0;
}
