#include "tools/doctor/openmp_places.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace hvdlite::doctor {
namespace {

constexpr int kMaxCpu = 65535;

// Of CPUs, or of places.
struct Interval {
  int count = 1;
  int stride = 1;
};

// `text` is what follows the first element: "", ":4", ":4:2".
std::optional<Interval> ParseInterval(absl::string_view text) {
  Interval interval;
  if (text.empty()) return interval;
  if (!absl::ConsumePrefix(&text, ":")) return std::nullopt;
  const std::pair<absl::string_view, absl::string_view> sides =
      absl::StrSplit(text, absl::MaxSplits(':', 1));
  if (!absl::SimpleAtoi(sides.first, &interval.count) || interval.count < 1 ||
      interval.count > kMaxCpu) {
    return std::nullopt;
  }
  if (absl::StrContains(text, ":") &&
      !absl::SimpleAtoi(sides.second, &interval.stride)) {
    return std::nullopt;
  }
  return interval;
}

// Adds `interval` of CPUs from `first` on to `cpus`; false if one cannot be.
bool AddCpus(int first, const Interval& interval, std::vector<int>& cpus) {
  for (int i = 0; i < interval.count; ++i) {
    const int64_t cpu = first + int64_t{i} * interval.stride;
    if (cpu < 0 || cpu > kMaxCpu) return false;
    cpus.push_back(static_cast<int>(cpu));
  }
  return true;
}

// "0,1" or "0:2" or "0:2:4,16".
std::optional<std::vector<int>> ParsePlace(absl::string_view text) {
  std::vector<int> cpus;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    const size_t colon = std::min(part.find(':'), part.size());
    int first = 0;
    const std::optional<Interval> interval = ParseInterval(part.substr(colon));
    if (!absl::SimpleAtoi(part.substr(0, colon), &first) ||
        !interval.has_value() || !AddCpus(first, *interval, cpus)) {
      return std::nullopt;
    }
  }
  return cpus;
}

// "cores", or "cores(4)" with as many as there are threads.
bool AreCores(absl::string_view places, int threads) {
  if (!absl::ConsumePrefix(&places, "cores")) return false;
  if (places.empty()) return true;
  int count = 0;
  return absl::ConsumePrefix(&places, "(") &&
         absl::ConsumeSuffix(&places, ")") &&
         absl::SimpleAtoi(places, &count) && count >= threads;
}

std::string Lower(const base::Environment& environment, const char* name) {
  return absl::StrReplaceAll(
      absl::AsciiStrToLower(environment.get(name).value_or("")), {{" ", ""}});
}

}  // namespace

std::optional<std::vector<std::vector<int>>> ParsePlaces(
    absl::string_view text) {
  std::vector<std::vector<int>> places;
  do {
    const size_t close = text.find('}');
    if (!absl::ConsumePrefix(&text, "{") || close == absl::string_view::npos) {
      return std::nullopt;
    }
    const auto cpus = ParsePlace(text.substr(0, close - 1));
    text.remove_prefix(close);
    const size_t comma = std::min(text.find(','), text.size());
    const auto interval = ParseInterval(text.substr(0, comma));
    if (!cpus.has_value() || !interval.has_value()) return std::nullopt;
    for (int i = 0; i < interval->count; ++i) {
      std::vector<int> place;
      for (const int cpu : *cpus) {
        const int64_t moved = cpu + int64_t{i} * interval->stride;
        if (moved < 0 || moved > kMaxCpu) return std::nullopt;
        place.push_back(static_cast<int>(moved));
      }
      places.push_back(std::move(place));
    }
    text.remove_prefix(comma);
  } while (absl::ConsumePrefix(&text, ","));
  return places;
}

bool BindsOneThreadPerCore(
    const base::Environment& environment, int threads,
    const std::function<std::string(int cpu)>& core_of_cpu) {
  const std::string places = Lower(environment, "OMP_PLACES");
  // "spread,close" has a word for each level of nested regions. Where it is not
  // set, OMP_PLACES alone binds, in GNU's runtime and in LLVM's.
  std::string bind = Lower(environment, "OMP_PROC_BIND");
  bind = bind.substr(0, bind.find(','));
  const std::set<std::string> binding = {"", "true", "close", "spread"};
  if (places.empty() || !binding.contains(bind)) return false;
  if (AreCores(places, threads)) return true;
  const auto listed = ParsePlaces(places);
  if (!listed.has_value() || static_cast<int>(listed->size()) < threads) {
    return false;
  }
  std::set<std::string> taken;
  for (const std::vector<int>& place : *listed) {
    std::set<std::string> cores;
    for (const int cpu : place) cores.insert(core_of_cpu(cpu));
    if (cores.size() != 1 || !taken.insert(*cores.begin()).second) return false;
  }
  return true;
}

}  // namespace hvdlite::doctor
