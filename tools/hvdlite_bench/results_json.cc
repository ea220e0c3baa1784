#include "tools/hvdlite_bench/results_json.h"

#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace hvdlite::tools {
namespace {

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

nlohmann::ordered_json ContenderJson(const Case& a_case,
                                     const Contender& contender) {
  nlohmann::ordered_json json;
  json["name"] = contender.name;
  json["role"] = NameOf(contender.role);
  if (!contender.skipped.empty()) json["skipped"] = contender.skipped;
  json["samples"] = nlohmann::json::array();
  int64_t wrong = 0;
  bool has_raw = false;
  for (const Sample& sample : contender.samples) {
    json["samples"].push_back(sample.value);
    wrong += sample.wrong;
    has_raw = has_raw || !sample.raw.empty();
  }
  json["wrong"] = wrong;
  if (has_raw) {
    for (const Sample& sample : contender.samples) {
      json["raw"].push_back(sample.raw);
    }
  }
  for (const Distance distance :
       {Distance::kNear, Distance::kFar, Distance::kUnknown}) {
    const std::vector<double> ratios =
        RatiosToBestMpi(a_case, contender, distance);
    if (contender.role != Role::kHvdlite || ratios.empty()) continue;
    const Summary summary = Summarise(ratios);
    json["ratio_to_best_mpi"][tools::NameOf(distance)] = {
        {"rounds", ratios},    {"median", summary.median}, {"min", summary.min},
        {"max", summary.max},  {"mean", summary.mean},     {"low", summary.low},
        {"high", summary.high}};
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
  json["contenders"] = nlohmann::json::array();
  for (const Contender& contender : a_case.contenders) {
    json["contenders"].push_back(ContenderJson(a_case, contender));
  }
  return json;
}

}  // namespace

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

void WriteJson(const Results& results, const std::string& path) {
  std::ofstream file(path);
  file << ToJson(results);
  file.close();
  if (!file) throw std::runtime_error("cannot write " + path);
}

}  // namespace hvdlite::tools
