#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "trainers/benchmark/benchmark_report.h"

namespace hvdlite::trainers {
namespace {

bool MachineChooses(const std::string& argument) {
  static const std::set<std::string> names = {
      "batch_size", "data",    "data_dir", "output", "report",
      "seed",       "threads", "vcd",      "workers"};
  return names.contains(argument);
}

class Fnv1a {
 public:
  // The bytes and a zero, so that neighbouring texts stay apart.
  void Add(std::string_view text) {
    for (const char c : text) AddByte(static_cast<uint8_t>(c));
    AddByte(0);
  }
  uint64_t digest() const { return digest_; }

 private:
  void AddByte(uint8_t byte) { digest_ = (digest_ ^ byte) * 0x100000001b3; }

  uint64_t digest_ = 0xcbf29ce484222325;
};

}  // namespace

std::string UniqueId(const BenchmarkReport& report) {
  Fnv1a hash;
  hash.Add(report.name);
  hash.Add(report.arch);
  hash.Add(std::to_string(report.plan.repeat));
  hash.Add(std::to_string(report.plan.number));
  for (const auto& [name, value] : report.arguments) {
    if (MachineChooses(name)) continue;
    hash.Add(name);
    hash.Add(std::visit([](const auto& v) { return nlohmann::json(v).dump(); },
                        value));
  }
  std::array<char, 17> text;
  std::snprintf(text.data(), text.size(), "%016llx",
                static_cast<unsigned long long>(hash.digest()));
  return text.data();
}

}  // namespace hvdlite::trainers
