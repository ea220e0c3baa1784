#include "trainers/benchmark/benchmark_targets.h"

#include "tools/support/input_error.h"
#include "trainers/benchmark/json_file.h"

namespace hvdlite::trainers {

BenchmarkTargets ReadBenchmarkTargets(const std::filesystem::path& file) {
  const std::string expected =
      "an object of items a second by benchmark, as {\"resnet50\": 12.5}";
  const nlohmann::json json = ReadJsonFile(file, expected);
  if (!json.is_object()) {
    throw InputError("'" + file.string() + "' holds JSON of type " +
                     json.type_name() + "; expected " + expected);
  }
  BenchmarkTargets targets;
  for (const auto& [name, value] : json.items()) {
    if (!value.is_number() || value <= 0) {
      throw InputError("the target of " + name + " in '" + file.string() +
                       "' is " + value.dump() +
                       "; expected a positive number of items a second");
    }
    targets[name] = value;
  }
  return targets;
}

}  // namespace hvdlite::trainers
