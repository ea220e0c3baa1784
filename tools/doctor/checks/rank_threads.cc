#include "tools/doctor/checks/rank_threads.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "support/processor.h"
#include "tools/doctor/checks/gather_facts.h"

namespace hvdlite::doctor {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ThreadFacts, host, cpus, cores, threads,
                                   quota, cores_of_thread, spinning,
                                   places_outside)

namespace {

constexpr int kMaxCpu = 65535;
constexpr size_t kMaxInPlaces = size_t{1} << 16;  // CPUs of one list

// An interval of CPUs or of places.
struct Interval {
  int count = 1;
  int stride = 1;
};

// `text` follows the first element: "", ":4", ":4:2".
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

// Adds the CPUs of `interval`, starting at `first`, to `cpus`. Returns false if
// a number is impossible or there are too many.
bool AddCpus(int first, const Interval& interval, std::vector<int>& cpus) {
  for (int i = 0; i < interval.count; ++i) {
    const int64_t cpu = first + int64_t{i} * interval.stride;
    if (cpu < 0 || cpu > kMaxCpu || cpus.size() == kMaxInPlaces) return false;
    cpus.push_back(static_cast<int>(cpu));
  }
  return true;
}

// Parses "0,1" or "0:2" or "0:2:4,16".
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

// The number of places that "cores" or "cores(4)" requests (with `name`
// "cores"); nullopt for other texts.
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

// The part of `listed` that a rank with `cpus` may use.
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

// The places of OMP_PLACES `text`, in order. Empty if threads are not bound or
// the places are not known. `binds`: OMP_PROC_BIND requests binding.
Places PlacesOf(const std::string& text, bool binds,
                const std::vector<int>& cpus,
                const std::function<int(int cpu)>& core_of_cpu) {
  std::map<int, std::vector<int>> cpus_of_core;
  for (const int cpu : cpus) cpus_of_core[core_of_cpu(cpu)].push_back(cpu);
  Places cores;
  Places hyperthreads;  // grouped by core, as in libgomp
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
  // Without OMP_PLACES, or if none of its places can be used, libgomp binds to
  // hyperthreads if OMP_PROC_BIND requests binding.
  return binds ? hyperthreads : Places();
}

// The index of the place, of `places`, of thread `thread` (OpenMP 5.2, 10.1.3).
size_t PlaceOf(size_t thread, size_t threads, size_t places,
               const std::string& bind) {
  if (bind == "primary" || bind == "master") return 0;
  if (threads > places) return thread * places / threads;
  if (bind != "spread") return thread;
  return thread * (places / threads) + std::min(thread, places % threads);
}

// quota / period, in CPUs. nullopt if the texts are no limit: "max", "-1" or
// invalid numbers.
std::optional<double> ShareOf(absl::string_view quota,
                              absl::string_view period) {
  double of_quota = 0;
  double of_period = 0;
  if (!absl::SimpleAtod(quota, &of_quota) ||
      !absl::SimpleAtod(period, &of_period) || !(of_quota > 0) ||
      !(of_period > 0) || !std::isfinite(of_quota) ||
      !std::isfinite(of_period)) {
    return std::nullopt;
  }
  return of_quota / of_period;
}

std::optional<double> CgroupV2Quota(const std::optional<std::string>& line) {
  // "200000 100000" or "max 100000"
  const std::string text = line.value_or("");
  const std::vector<absl::string_view> words = absl::StrSplit(text, ' ');
  if (words.size() != 2) return std::nullopt;
  return ShareOf(words[0], words[1]);
}

std::optional<double> CgroupV1Quota(const support::SystemFiles& files,
                                    const std::string& directory) {
  return ShareOf(files.Line(directory + "/cpu.cfs_quota_us").value_or(""),
                 files.Line(directory + "/cpu.cfs_period_us").value_or(""));
}

}  // namespace

absl::StatusOr<std::vector<ThreadFacts>> GatherThreads(Session& session) {
  const std::vector<int>& cpus = session.allowed_cpus;
  const std::vector<int> online = support::OnlineCpus(session.files);
  const int threads = OpenMpThreads(
      session.environment,
      ThreadsByDefault(session.program.empty()
                           ? absl::Span<const support::Library>()
                           : session.libraries,
                       static_cast<int>(cpus.size()),
                       {.cpus = static_cast<int>(online.size()),
                        .cores = static_cast<int>(
                            support::CoresOf(online, session.files).size())}));
  const auto core_of_cpu = [&](int cpu) {
    return support::CoreOf(cpu, session.files);
  };
  return GatherFacts<ThreadFacts>(
      session, {.host = session.topology.host_of_rank[session.topology.rank],
                .cpus = cpus,
                .cores = support::CoresOf(cpus, session.files),
                .threads = threads,
                .quota = CgroupQuota(session.files),
                .cores_of_thread = CoresOfThreads(session.environment, threads,
                                                  cpus, core_of_cpu),
                .spinning = SpinningBy(session.environment),
                .places_outside = PlacesOutside(session.environment, cpus)});
}

int ThreadsByDefault(absl::Span<const support::Library> libraries, int own_cpus,
                     const MachineSize& machine) {
  const auto torch = absl::c_find_if(libraries, [](const auto& library) {
    return absl::StartsWith(library.name, "libtorch_cpu.so");
  });
  if (torch == libraries.end()) return own_cpus;
  if (!absl::StartsWith(torch->name, "libtorch_cpu.so.1")) return machine.cores;
#ifdef __x86_64__
  return std::max(machine.cpus / 2, 1);
#else
  return machine.cpus;
#endif
}

int OpenMpThreads(const base::Environment& environment, int by_default) {
  int threads = std::max(by_default, 1);
  // "4,2" has one number for each level of nested regions.
  const auto number = [&](const char* name) {
    const std::string text = environment.get(name).value_or("");
    const absl::StatusOr<int64_t> value =
        base::ParseInteger(text.substr(0, text.find(',')), 1, 1 << 20);
    return value.ok() ? std::optional<int>(static_cast<int>(*value))
                      : std::nullopt;
  };
  threads = number("OMP_NUM_THREADS").value_or(threads);
  return std::min(threads, number("OMP_THREAD_LIMIT").value_or(threads));
}

std::string SpinningBy(const base::Environment& environment) {
  constexpr double kRoundsByDefault = 300'000;
  const std::string count = Lower(environment, "GOMP_SPINCOUNT");
  if (!count.empty()) {
    // "20000000", "20m", "infinite". It overrides OMP_WAIT_POLICY.
    const size_t digits =
        std::min(count.find_first_not_of("0123456789"), count.size());
    const std::string unit = count.substr(digits);
    double rounds = 0;
    bool spins = absl::StartsWith(count, "infinit");
    if (absl::SimpleAtod(count.substr(0, digits), &rounds)) {
      spins = rounds * (unit == "k"    ? 1e3
                        : unit == "m"  ? 1e6
                        : unit.empty() ? 1
                                       : 1e9) >
              kRoundsByDefault;
    }
    return spins ? absl::StrCat("GOMP_SPINCOUNT=", count) : "";
  }
  return Lower(environment, "OMP_WAIT_POLICY") == "active"
             ? "OMP_WAIT_POLICY=active"
             : "";
}

std::vector<Sharers> GroupByOverlap(
    const std::map<int, std::set<int>>& numbers_of_rank) {
  std::vector<Sharers> groups;
  for (const auto& [rank, numbers] : numbers_of_rank) {
    Sharers group = {.ranks = {rank}, .numbers = numbers};
    std::vector<Sharers> apart;
    for (Sharers& other : groups) {
      const bool overlap = std::any_of(
          numbers.begin(), numbers.end(),
          [&](int number) { return other.numbers.contains(number); });
      if (!overlap) {
        apart.push_back(std::move(other));
        continue;
      }
      group.ranks.insert(group.ranks.end(), other.ranks.begin(),
                         other.ranks.end());
      group.numbers.merge(other.numbers);
    }
    std::sort(group.ranks.begin(), group.ranks.end());
    apart.push_back(std::move(group));
    groups = std::move(apart);
  }
  return groups;
}

std::map<std::string, std::vector<Sharers>> GroupByCpus(
    const std::vector<ThreadFacts>& facts) {
  std::map<std::string, std::map<int, std::set<int>>> cpus_of_rank;
  for (size_t rank = 0; rank < facts.size(); ++rank) {
    cpus_of_rank[facts[rank].host][static_cast<int>(rank)] = {
        facts[rank].cpus.begin(), facts[rank].cpus.end()};
  }
  std::map<std::string, std::vector<Sharers>> groups;
  for (const auto& [host, cpus] : cpus_of_rank) {
    groups[host] = GroupByOverlap(cpus);
  }
  return groups;
}

int64_t ThreadsOf(const std::vector<ThreadFacts>& facts,
                  const std::vector<int>& ranks) {
  int64_t threads = 0;
  for (const int rank : ranks) threads += facts[rank].threads;
  return threads;
}

std::string SpinningOf(const std::vector<ThreadFacts>& facts,
                       const std::vector<int>& ranks) {
  for (const int rank : ranks) {
    if (!facts[rank].spinning.empty()) return facts[rank].spinning;
  }
  return "";
}

std::string CoresOfTheirOwn(int64_t threads) {
  return absl::StrCat(
      "give every rank its own cores: hvdliterun, or mpirun --map-by "
      "slot:PE=",
      threads, " --bind-to core");
}

std::optional<std::vector<std::vector<int>>> ParsePlaces(
    absl::string_view text) {
  std::vector<std::vector<int>> places;
  size_t left = kMaxInPlaces;
  do {
    const size_t close = text.find('}');
    if (!absl::ConsumePrefix(&text, "{") || close == absl::string_view::npos) {
      return std::nullopt;
    }
    const auto cpus = ParsePlace(text.substr(0, close - 1));
    text.remove_prefix(close);
    const size_t comma = std::min(text.find(','), text.size());
    const auto interval = ParseInterval(text.substr(0, comma));
    if (!cpus.has_value() || !interval.has_value() ||
        cpus->size() > left / static_cast<size_t>(interval->count)) {
      return std::nullopt;
    }
    left -= cpus->size() * static_cast<size_t>(interval->count);
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
  // "spread,close" has one word for each level of nested regions. If it is not
  // set, OMP_PLACES alone binds threads, in GNU's and LLVM's runtimes.
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

std::string PlacesOutside(const base::Environment& environment,
                          const std::vector<int>& cpus) {
  const auto listed = ParsePlaces(Lower(environment, "OMP_PLACES"));
  return listed.has_value() && Within(*listed, cpus).empty()
             ? environment.get("OMP_PLACES").value_or("")
             : "";
}

double CgroupQuota(const support::SystemFiles& files) {
  double smallest = 0;
  const auto take = [&](std::optional<double> quota) {
    if (quota.has_value() && (smallest == 0 || *quota < smallest)) {
      smallest = *quota;
    }
  };
  const std::string groups = files.Text("/proc/self/cgroup").value_or("");
  for (size_t at = 0; at < groups.size();) {
    const size_t end = std::min(groups.find('\n', at), groups.size());
    const std::string line = groups.substr(at, end - at);
    at = end + 1;
    // "0::/user.slice" (version 2), "4:cpu,cpuacct:/docker/abc" (version 1)
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers =
        "," + line.substr(first + 1, second - first - 1) + ",";
    const bool v2 = controllers == ",,";
    if (!v2 && controllers.find(",cpu,") == std::string::npos) continue;
    // Reads the group and its parents. In a container, /sys/fs/cgroup may start
    // at the container's group, but the path does not show this.
    for (std::string path = line.substr(second + 1);;) {
      if (path == "/") path.clear();
      if (v2) {
        take(CgroupV2Quota(files.Line("/sys/fs/cgroup" + path + "/cpu.max")));
      } else {
        take(CgroupV1Quota(files, "/sys/fs/cgroup/cpu" + path));
        take(CgroupV1Quota(files, "/sys/fs/cgroup/cpu,cpuacct" + path));
      }
      if (path.empty()) break;
      const size_t slash = path.rfind('/');
      path.resize(slash == std::string::npos ? 0 : slash);
    }
  }
  return smallest;
}

}  // namespace hvdlite::doctor
