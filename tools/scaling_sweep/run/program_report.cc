#include "tools/scaling_sweep/run/program_report.h"

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "support/statistics.h"
#include "tools/scaling_sweep/run/json_values.h"

namespace hvdlite::scaling_sweep {
namespace {

using nlohmann::json;

constexpr char kSuffix[] = "_per_second";

absl::StatusOr<std::string> FieldOf(const json& report,
                                    const std::string& items) {
  std::vector<std::string> fields;
  for (const auto& [name, value] : report.items()) {
    if (absl::EndsWith(name, kSuffix)) fields.push_back(name);
  }
  if (items.empty() && fields.size() == 1) return fields.front();
  const std::string wanted = items + kSuffix;
  if (!items.empty() && report.contains(wanted)) return wanted;
  return absl::InvalidArgumentError(absl::StrCat(
      items.empty() ? "no single field \"..._per_second\""
                    : absl::StrCat("no field \"", wanted, "\""),
      "; it has ", fields.empty() ? "none" : absl::StrJoin(fields, ", "),
      "; set items in the spec file to choose one"));
}

absl::StatusOr<double> SpeedIn(const json& speed, int warmup_intervals) {
  if (speed.is_number()) return speed.get<double>();
  if (!speed.is_object()) {
    return absl::InvalidArgumentError("a speed that is not a number");
  }
  if (!speed.contains("intervals")) return speed.at("median").get<double>();
  const auto intervals = speed.at("intervals").get<std::vector<double>>();
  const auto all = static_cast<int>(intervals.size());
  if (all <= warmup_intervals) {
    return absl::InvalidArgumentError(absl::StrCat(
        "only ", all, " intervals, but the first ", warmup_intervals,
        " are warm-up; run the program longer, or lower warmup_intervals"));
  }
  return support::Quantile(
      {intervals.begin() + warmup_intervals, intervals.end()}, 0.5);
}

}  // namespace

absl::StatusOr<ProgramReport> ReadProgramReport(const std::string& file,
                                                const std::string& items,
                                                int warmup_intervals) {
  const auto error = [&file](absl::string_view what) {
    return absl::InvalidArgumentError(
        absl::StrCat("the report '", file, "' has ", what));
  };
  std::ifstream stream(file);
  if (!stream) {
    return absl::NotFoundError(
        "the program has written no report: it must write its speed as JSON "
        "to the file of --report, or of {report} in its arguments "
        "(hvdlite::write_run_report does this; see docs/scaling_sweep.md)");
  }
  const json report = json::parse(stream, nullptr, /*allow_exceptions=*/false);
  if (!report.is_object()) return error("no JSON object in it");
  const absl::StatusOr<std::string> field = FieldOf(report, items);
  if (!field.ok()) return error(field.status().message());
  try {
    const absl::StatusOr<double> speed =
        SpeedIn(report.at(*field), warmup_intervals);
    if (!speed.ok()) return error(speed.status().message());
    if (!std::isfinite(*speed) || *speed <= 0) {
      return error(absl::StrCat("the impossible speed ", *speed));
    }
    const auto threads = report.find("threads_per_rank");
    return ProgramReport{
        .items_per_second = *speed,
        .threads_per_rank =
            threads == report.end() ? 0 : WholeNumber(*threads, 0).value_or(0),
        .machine = TextsIn(report.value("machine", json()))};
  } catch (const json::exception& failure) {
    return error(absl::StrCat("an invalid \"", *field, "\": ", failure.what()));
  }
}

}  // namespace hvdlite::scaling_sweep
