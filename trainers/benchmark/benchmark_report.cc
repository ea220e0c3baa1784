#include "trainers/benchmark/benchmark_report.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>

#include "absl/strings/str_format.h"
#include "tools/support/input_error.h"
#include "trainers/benchmark/json_file.h"

namespace hvdlite::trainers {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

struct ItemRates {  // items a second
  double avg = 0;
  double max = 0;
  double min = 0;
};

// From the times: the average is that of the mean time.
ItemRates RatesOf(const BenchmarkReport& report) {
  const auto items = static_cast<double>(report.plan.items());
  const SampleStatistics& seconds = report.train_seconds;
  return {.avg = items / seconds.avg,
          .max = items / seconds.min,
          .min = items / seconds.max};
}

// Empty if the run did not fail.
std::string FailureOf(const BenchmarkReport& report) {
  if (report.first_non_finite_batch) {
    return absl::StrFormat("the loss of batch %d is not finite",
                           *report.first_non_finite_batch);
  }
  return report.train_seconds.count > 0 ? "" : "no observation was made";
}

// JSON knows neither NaN nor infinity: such a loss becomes null.
json ToJson(const BenchmarkReport& report) {
  json result = json::object();
  for (const auto& [name, value] : report.arguments) {
    std::visit([&](const auto& v) { result[name] = v; }, value);
  }
  result["name"] = report.name;
  result["arch"] = report.arch;
  result["version"] = report.version;
  result["unique_id"] = UniqueId(report);
  result["vcd"] = report.vcd;
  result["hostname"] = report.host.name;
  result["cpu"] = report.host.cpu;
  result["batch_size"] = report.plan.batch_size;
  result["repeat"] = report.plan.repeat;
  result["number"] = report.plan.number;
  result["batch_loss"] = report.batch_losses;
  const std::string failure = FailureOf(report);
  result["completed"] = failure.empty();
  if (!failure.empty()) result["failure"] = failure;

  const SampleStatistics& seconds = report.train_seconds;
  if (seconds.count == 0) return result;
  result["train"] = {{"avg", seconds.avg}, {"count", seconds.count},
                     {"max", seconds.max}, {"min", seconds.min},
                     {"sd", seconds.sd},   {"unit", "s"}};
  const ItemRates rates = RatesOf(report);
  result["train_item"] = {{"avg", rates.avg},
                          {"max", rates.max},
                          {"min", rates.min},
                          {"range", rates.max - rates.min},
                          {"unit", "items/sec"}};
  return result;
}

void AppendToList(const fs::path& file, const BenchmarkReport& report) {
  json list = json::array();
  if (fs::exists(file)) {
    const std::string expected = "a list of reports to append to";
    list = ReadJsonFile(file, expected);
    if (!list.is_array()) {
      throw InputError("'" + file.string() + "' holds JSON of type " +
                       list.type_name() + "; expected " + expected);
    }
  }
  list.push_back(ToJson(report));
  WriteJsonFile(file, list);
}

std::string SummaryLine(const BenchmarkReport& report) {
  const std::string failure = FailureOf(report);
  if (!failure.empty()) {
    return absl::StrFormat("FAILED | %s | %s\n", report.name, failure);
  }
  const ItemRates rates = RatesOf(report);
  return absl::StrFormat(
      "PASSED | %s | %.2f items/sec (%.2f to %.2f) | %d observations of %d "
      "batches of %d items\n",
      report.name, rates.avg, rates.min, rates.max, report.train_seconds.count,
      report.plan.number, report.plan.batch_size);
}

void AppendText(const fs::path& file, const std::string& text) {
  std::ofstream stream(file, std::ios::app);
  stream << text;
  stream.close();
  if (!stream) {
    throw InputError("cannot write '" + file.string() +
                     "': " + std::strerror(errno));
  }
}

}  // namespace

BenchmarkReport ReportOf(const BenchmarkRecorder& recorder) {
  BenchmarkReport report;
  report.plan = recorder.plan();
  report.train_seconds = recorder.train_seconds();
  report.batch_losses = recorder.batch_losses();
  report.first_non_finite_batch = recorder.first_non_finite_batch();
  return report;
}

BenchmarkStatus WriteBenchmarkReport(const fs::path& output,
                                     const BenchmarkReport& report) {
  const bool is_file = output.extension() == ".json";
  const fs::path folder = is_file ? output.parent_path() : output;
  std::error_code error;
  if (!folder.empty()) fs::create_directories(folder, error);
  if (error) {
    throw InputError("cannot create '" + folder.string() +
                     "': " + error.message());
  }
  AppendToList(is_file ? output : folder / (report.name + ".json"), report);
  AppendText(folder / "summary.txt", SummaryLine(report));
  return FailureOf(report).empty() ? BenchmarkStatus::kPassed
                                   : BenchmarkStatus::kFailed;
}

}  // namespace hvdlite::trainers
