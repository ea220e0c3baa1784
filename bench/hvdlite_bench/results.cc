#include "bench/hvdlite_bench/results.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "support/child_process.h"
#include "support/input_error.h"
#include "support/machine.h"
#include "support/statistics.h"

namespace hvdlite::tools {
namespace {

// Neighbours exchange a cache line in about 120 ns, distant cores in about 480
// ns.
constexpr double kFarNs = 250;
constexpr uint64_t kSeed = 1;  // for the resampling

const char* NameOf(Role role) {
  switch (role) {
    case Role::kHvdlite:
      return "hvdlite";
    case Role::kMpi:
      return "mpi";
    case Role::kReference:
      break;
  }
  return "reference";
}

nlohmann::ordered_json ImplementationJson(
    const Case& a_case, const Implementation& implementation) {
  nlohmann::ordered_json json;
  json["name"] = implementation.name;
  json["role"] = NameOf(implementation.role);
  if (!implementation.skipped.empty()) json["skipped"] = implementation.skipped;
  json["samples"] = nlohmann::json::array();
  int64_t wrong = 0;
  bool has_raw = false;
  for (const Sample& sample : implementation.samples) {
    json["samples"].push_back(sample.value);
    wrong += sample.wrong;
    has_raw = has_raw || !sample.raw.empty();
  }
  json["wrong"] = wrong;
  if (has_raw) {
    for (const Sample& sample : implementation.samples) {
      json["raw"].push_back(sample.raw);
    }
  }
  for (const Distance distance :
       {Distance::kNear, Distance::kFar, Distance::kUnknown}) {
    const std::vector<double> ratios =
        RatiosToBestMpi(a_case, implementation, distance);
    if (implementation.role != Role::kHvdlite || ratios.empty()) continue;
    const support::Summary summary = support::Summarise(ratios);
    nlohmann::ordered_json& ratio =
        json["ratio_to_best_mpi"][tools::NameOf(distance)];
    ratio = {{"rounds", ratios},     {"median", summary.median},
             {"min", summary.min},   {"max", summary.max},
             {"mean", summary.mean}, {"low", summary.low},
             {"high", summary.high}};
    if (const auto median = support::MedianInterval(ratios, kSeed)) {
      ratio["median_low"] = median->low;
      ratio["median_high"] = median->high;
    }
  }
  return json;
}

nlohmann::ordered_json CaseJson(const Case& a_case) {
  nlohmann::ordered_json json;
  json["name"] = a_case.name;
  json["description"] = a_case.description;
  json["unit"] = a_case.unit;
  json["bytes"] = a_case.bytes();
  json["elements"] = a_case.elements;
  json["repeats"] = a_case.repeats;
  json["before_ns"] = a_case.before_ns;
  json["after_ns"] = a_case.after_ns;
  json["distance"] = nlohmann::json::array();
  for (size_t round = 0; round < a_case.before_ns.size(); ++round) {
    json["distance"].push_back(tools::NameOf(a_case.distance(round)));
  }
  json["implementations"] = nlohmann::json::array();
  for (const Implementation& implementation : a_case.implementations) {
    json["implementations"].push_back(
        ImplementationJson(a_case, implementation));
  }
  return json;
}

std::string CommitOfSource() {
  const auto output =
      support::CaptureOutput({"git", "-C", HVDLITE_SOURCE_DIRECTORY, "describe",
                              "--always", "--dirty", "--abbrev=12"});
  if (!output.ok() || output->status != 0) return "unknown";
  // Warnings are printed before it.
  const absl::string_view text = absl::StripSuffix(output->text, "\n");
  return std::string(text.substr(text.rfind('\n') + 1));
}

bool ChangesBehaviour(const std::string& name) {
  for (const char* prefix :
       {"MALLOC_", "UCX_", "HVDLITE_", "OMP_", "OPENBLAS_", "LD_PRELOAD",
        "OMPI_MCA_pml", "OMPI_MCA_btl", "OMPI_MCA_coll", "OMPI_MCA_mpi_"}) {
    if (name.starts_with(prefix)) return true;
  }
  return false;
}

}  // namespace

Distance DistanceOf(double before_ns, double after_ns) {
  if (std::isnan(before_ns) || std::isnan(after_ns)) return Distance::kUnknown;
  if ((before_ns < kFarNs) != (after_ns < kFarNs)) return Distance::kMoved;
  return before_ns < kFarNs ? Distance::kNear : Distance::kFar;
}

const char* NameOf(Distance distance) {
  switch (distance) {
    case Distance::kNear:
      return "near";
    case Distance::kFar:
      return "far";
    case Distance::kMoved:
      return "moved";
    case Distance::kUnknown:
      break;
  }
  return "unknown";
}

int64_t Case::bytes() const {
  return std::accumulate(elements.begin(), elements.end(), int64_t{0}) *
         static_cast<int64_t>(sizeof(float));
}

void Case::AddRound(const std::vector<double>& values) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  before_ns.push_back(kNone);
  after_ns.push_back(kNone);
  for (size_t i = 0; i < values.size(); ++i) {
    implementations[i].samples.push_back({values[i], 0, {}});
  }
}

int64_t Results::wrong() const {
  int64_t wrong = 0;
  for (const Case& a_case : cases) {
    for (const Implementation& implementation : a_case.implementations) {
      for (const Sample& sample : implementation.samples) wrong += sample.wrong;
    }
  }
  return wrong;
}

int Results::exit_code() const {
  return wrong() == 0 ? 0 : support::kFoundExitCode;
}

int64_t CountRounds(const Case& a_case, Distance distance) {
  int64_t count = 0;
  for (size_t round = 0; round < a_case.before_ns.size(); ++round) {
    if (a_case.distance(round) == distance) ++count;
  }
  return count;
}

Distance CommonDistance(const Case& a_case) {
  Distance common = Distance::kNear;
  for (const Distance distance : {Distance::kFar, Distance::kUnknown}) {
    if (CountRounds(a_case, distance) > CountRounds(a_case, common)) {
      common = distance;
    }
  }
  return common;
}

std::vector<double> SamplesAt(const Case& a_case,
                              const Implementation& implementation,
                              Distance distance) {
  std::vector<double> samples;
  for (size_t round = 0; round < implementation.samples.size(); ++round) {
    if (a_case.distance(round) == distance) {
      samples.push_back(implementation.samples[round].value);
    }
  }
  return samples;
}

std::vector<double> RatiosToBestMpi(const Case& a_case,
                                    const Implementation& implementation,
                                    Distance distance) {
  const std::vector<double> best = BestMpiAt(a_case, distance);
  if (best.empty()) return {};
  std::vector<double> ratios = SamplesAt(a_case, implementation, distance);
  for (size_t i = 0; i < ratios.size(); ++i) ratios[i] /= best[i];
  return ratios;
}

std::vector<double> BestMpiAt(const Case& a_case, Distance distance) {
  std::vector<double> best;
  for (const Implementation& implementation : a_case.implementations) {
    if (implementation.role != Role::kMpi) continue;
    const std::vector<double> samples =
        SamplesAt(a_case, implementation, distance);
    if (best.empty()) {
      best = samples;
    } else {
      for (size_t i = 0; i < samples.size(); ++i) {
        best[i] = std::min(best[i], samples[i]);
      }
    }
  }
  return best;
}

MedianRatio MedianOf(const std::vector<double>& ratios) {
  const support::Summary summary = support::Summarise(ratios);
  return {summary.median,
          support::MedianInterval(ratios, kSeed)
              .value_or(support::Interval{summary.low, summary.high})};
}

std::vector<double> OperationTimes(const std::vector<double>& start,
                                   const std::vector<double>& end, int ranks,
                                   bool one_clock) {
  const size_t operations = start.size() / ranks;
  std::vector<double> times;
  for (size_t i = 0; i < operations; ++i) {
    double last_start = start[i];
    double last_end = end[i];
    double longest = 0;
    for (size_t at = i; at < start.size(); at += operations) {
      last_start = std::max(last_start, start[at]);
      last_end = std::max(last_end, end[at]);
      longest = std::max(longest, end[at] - start[at]);
    }
    times.push_back(one_clock ? last_end - last_start : longest);
  }
  return times;
}

Case Percentile99(const Case& median) {
  Case tail = median;
  tail.name += "_p99";
  tail.description += ", 99th percentile";
  for (Implementation& implementation : tail.implementations) {
    for (Sample& sample : implementation.samples) {
      sample.value = support::Quantile(std::move(sample.raw), 0.99);
      sample.raw.clear();
    }
  }
  return tail;
}

std::string ToJson(const Results& results) {
  nlohmann::ordered_json json;
  json["program"] = "hvdlite_bench";
  json["mode"] = results.mode;
  json["ranks"] = results.ranks;
  json["rounds"] = results.rounds;
  json["warmup"] = results.warmup;
  json["machine"] = results.machine;
  json["notes"] = results.notes;
  json["cases"] = nlohmann::json::array();
  for (const Case& a_case : results.cases) {
    json["cases"].push_back(CaseJson(a_case));
  }
  return json.dump(1) + "\n";
}

std::map<std::string, std::string> DescribeMachine(
    const base::Environment& environment, const std::string& commit) {
  const auto facts = support::DescribeMachine();
  std::map<std::string, std::string> machine(facts.begin(), facts.end());
  machine["compiler"] = __VERSION__;
  machine["commit"] = commit.empty() ? CommitOfSource() : commit;
  for (const std::string& name : environment.names()) {
    if (ChangesBehaviour(name)) machine[name] = *environment.get(name);
  }
  return machine;
}

double AllreduceBusFactor(int ranks) {
  return 2.0 * (ranks - 1) / static_cast<double>(ranks);
}

bool BoundToOneCoreEach(const std::vector<std::string>& cores,
                        const std::vector<std::string>& node) {
  std::set<std::string> taken;
  for (size_t rank = 0; rank < cores.size(); ++rank) {
    int core = -1;
    if (!absl::SimpleAtoi(cores[rank], &core) ||
        !taken.insert(node[rank] + " " + cores[rank]).second) {
      return false;
    }
  }
  return true;
}

}  // namespace hvdlite::tools
