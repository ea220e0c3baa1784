#include "tools/doctor/checks/openmp_places.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <string>
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

// How many places "cores", "cores(4)" (with `name` "cores") asks for; nullopt
// for other texts.
std::optional<int> CountOf(absl::string_view text, absl::string_view name) {
  if (!absl::ConsumePrefix(&text, name)) return std::nullopt;
  if (text.empty()) return kMaxCpu;
  int count = 0;
  if (!absl::ConsumePrefix(&text, "(") || !absl::ConsumeSuffix(&text, ")") ||
      !absl::SimpleAtoi(text, &count) || count < 1) {
    return std::nullopt;
  }
  return count;
}

std::string Lower(const base::Environment& environment, const char* name) {
  return absl::StrReplaceAll(
      absl::AsciiStrToLower(environment.get(name).value_or("")), {{" ", ""}});
}

using Places = std::vector<std::vector<int>>;

// What is left of `listed` for a rank that may use `cpus`.
Places Within(const Places& listed, const std::vector<int>& cpus) {
  Places places;
  for (const std::vector<int>& place : listed) {
    std::vector<int> usable;
    std::copy_if(
        place.begin(), place.end(), std::back_inserter(usable), [&](int cpu) {
          return std::find(cpus.begin(), cpus.end(), cpu) != cpus.end();
        });
    if (!usable.empty()) places.push_back(std::move(usable));
  }
  return places;
}

// The places of OMP_PLACES `text`, in their order; none where threads are not
// bound to any or that is not known. `binds`: OMP_PROC_BIND says so itself.
Places PlacesOf(const std::string& text, bool binds,
                const std::vector<int>& cpus,
                const std::function<int(int cpu)>& core_of_cpu) {
  std::map<int, std::vector<int>> cpus_of_core;
  for (const int cpu : cpus) cpus_of_core[core_of_cpu(cpu)].push_back(cpu);
  Places cores;
  Places hyperthreads;  // those of a core follow each other in libgomp
  for (const auto& [core, members] : cpus_of_core) {
    cores.push_back(members);
    for (const int cpu : members) hyperthreads.push_back({cpu});
  }
  const auto first = [](Places places, int count) {
    places.resize(std::min(places.size(), static_cast<size_t>(count)));
    return places;
  };
  if (const auto count = CountOf(text, "cores")) return first(cores, *count);
  if (const auto count = CountOf(text, "threads")) {
    return first(hyperthreads, *count);
  }
  if (!text.empty()) {
    const std::optional<Places> listed = ParsePlaces(text);
    if (!listed.has_value()) return {};
    const Places usable = Within(*listed, cpus);
    if (!usable.empty()) return usable;
  }
  // Without OMP_PLACES, or with places that are all outside, libgomp binds to
  // hyperthreads where OMP_PROC_BIND asks for binding.
  return binds ? hyperthreads : Places();
}

// Which of `places` thread `thread` gets (OpenMP 5.2, 10.1.3).
size_t PlaceOf(size_t thread, size_t threads, size_t places,
               const std::string& bind) {
  if (bind == "primary" || bind == "master") return 0;
  if (threads > places) return thread * places / threads;
  if (bind != "spread") return thread;
  return thread * (places / threads) + std::min(thread, places % threads);
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

std::vector<std::set<int>> CoresOfThreads(
    const base::Environment& environment, int threads,
    const std::vector<int>& cpus,
    const std::function<int(int cpu)>& core_of_cpu) {
  // "spread,close" has a word for each level of nested regions. Where it is not
  // set, OMP_PLACES alone binds, in GNU's runtime and in LLVM's.
  std::string bind = Lower(environment, "OMP_PROC_BIND");
  bind = bind.substr(0, bind.find(','));
  const std::set<std::string> binding = {"",       "true",    "close",
                                         "spread", "primary", "master"};
  if (!binding.contains(bind)) return {};
  const Places places = PlacesOf(Lower(environment, "OMP_PLACES"),
                                 !bind.empty(), cpus, core_of_cpu);
  std::vector<std::set<int>> cores_of_thread;
  for (int thread = 0; thread < threads && !places.empty(); ++thread) {
    std::set<int>& cores = cores_of_thread.emplace_back();
    for (const int cpu :
         places[PlaceOf(thread, threads, places.size(), bind)]) {
      cores.insert(core_of_cpu(cpu));
    }
  }
  return cores_of_thread;
}

bool PlacesAreOutside(const base::Environment& environment,
                      const std::vector<int>& cpus) {
  const auto listed = ParsePlaces(Lower(environment, "OMP_PLACES"));
  return listed.has_value() && Within(*listed, cpus).empty();
}

}  // namespace hvdlite::doctor
