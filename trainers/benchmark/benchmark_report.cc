#include "trainers/benchmark/benchmark_report.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/fnv1a.h"
#include "support/input_error.h"
#include "support/output_file.h"

namespace hvdlite::trainers {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int kIndent = 4;

// Returns the value in `file`. Throws an InputError that names the file and
// `expected` ("a list of reports") if the file cannot be read. If it is not
// JSON, the error names the offset in bytes.
json ReadJsonFile(const fs::path& file, const std::string& expected) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream || fs::is_directory(file)) {
    throw support::InputError(
        "cannot read '" + file.string() +
        "': " + (stream ? "is a directory" : std::strerror(errno)) +
        "; expected " + expected);
  }
  try {
    return json::parse(stream);
  } catch (const json::parse_error& error) {
    // error.byte counts the bytes up to and including the wrong one.
    const size_t offset = std::max<size_t>(error.byte, 1) - 1;
    throw support::InputError("'" + file.string() + "' is not JSON at offset " +
                              std::to_string(offset) + "; expected " +
                              expected);
  }
}

void RequirePositive(const std::string& flag, int64_t value) {
  if (value > 0) return;
  throw support::InputError(flag + " is " + std::to_string(value) +
                            "; expected at least 1");
}

bool MachineChooses(const std::string& argument) {
  static const std::set<std::string> names = {
      "batch_size", "data", "data_dir", "output",
      "report",     "seed", "threads",  "workers"};
  return names.contains(argument);
}

struct ItemRates {  // items per second
  double avg = 0;
  double max = 0;
  double min = 0;
};

// Converts times to rates; avg is the rate of the mean time.
ItemRates RatesOf(const BenchmarkReport& report) {
  const auto items = static_cast<double>(report.plan.items());
  const support::Summary& seconds = report.train_seconds;
  return {.avg = items / seconds.mean,
          .max = items / seconds.min,
          .min = items / seconds.max};
}

// Returns an empty string if the run did not fail.
std::string FailureOf(const BenchmarkReport& report) {
  if (report.first_non_finite_batch) {
    return absl::StrFormat("the loss of batch %d is not finite",
                           *report.first_non_finite_batch);
  }
  const auto made = static_cast<int64_t>(report.train_seconds.samples);
  if (made == 0) return "no observation was made";
  const int64_t planned = report.plan.repeat - report.plan.skip;
  if (made == planned) return "";
  return absl::StrFormat("ended after %d of %d observations", made, planned);
}

// JSON has no NaN and no infinity; nlohmann writes such a loss as null.
json ToJson(const BenchmarkReport& report) {
  json result = json::object();
  for (const auto& argument : report.arguments) {
    std::visit([&](const auto& value) { result[argument.first] = value; },
               argument.second);
  }
  result["name"] = report.name;
  result["arch"] = report.arch;
  result["version"] = report.version;
  result["unique_id"] = UniqueId(report);
  result["jr_id"] = report.instance;
  result["vcd"] = report.instance;
  result["devices"] = report.devices;
  result["hostname"] = report.host.host;
  result["cpu"] = report.host.processor;
  result["cpu_cores"] = report.host.cores;
  result["cuda"] = false;
  result["gpu"] = nullptr;
  result["epoch_loss"] = json::array();
  result["metrics"] = json::object();
  result["batch_size"] = report.plan.batch_size;
  result["repeat"] = report.plan.repeat;
  result["number"] = report.plan.number;
  result["batch_loss"] = report.batch_losses;
  const std::string failure = FailureOf(report);
  result["completed"] = failure.empty();
  if (!failure.empty()) result["failure"] = failure;

  const support::Summary& seconds = report.train_seconds;
  if (seconds.samples == 0) return result;
  result["train"] = {{"avg", seconds.mean}, {"count", seconds.samples},
                     {"max", seconds.max},  {"min", seconds.min},
                     {"sd", seconds.sd},    {"unit", "s"}};
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
      throw support::InputError("'" + file.string() + "' holds JSON of type " +
                                list.type_name() + "; expected " + expected);
    }
  }
  list.push_back(ToJson(report));
  support::WriteFile(file, list.dump(kIndent) + "\n");
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
      report.name, rates.avg, rates.min, rates.max,
      report.train_seconds.samples, report.plan.number, report.plan.batch_size);
}

void AppendText(const fs::path& file, const std::string& text) {
  std::ofstream stream(file, std::ios::app);
  stream << text;
  stream.close();
  if (!stream) {
    throw support::InputError("cannot write '" + file.string() +
                              "': " + std::strerror(errno));
  }
}

constexpr double kConfidence95 = 1.96;  // half width

}  // namespace

void RequireValid(const ObservationPlan& plan) {
  RequirePositive("--repeat", plan.repeat);
  RequirePositive("--number", plan.number);
  RequirePositive("--batch-size", plan.batch_size);
  if (plan.skip < 0) {
    throw support::InputError(
        std::to_string(plan.skip) +
        " first observations to skip; expected at least 0");
  }
  if (plan.repeat <= plan.skip) {
    throw support::InputError("--repeat is " + std::to_string(plan.repeat) +
                              "; expected more than " +
                              std::to_string(plan.skip) +
                              ", the number of first observations to skip");
  }
}

BenchmarkRecorder::BenchmarkRecorder(const ObservationPlan& plan,
                                     std::function<double()> clock)
    : plan_(plan), clock_(std::move(clock)) {
  RequireValid(plan);
}

void BenchmarkRecorder::BeginObservation() {
  if (start_seconds_) throw std::logic_error("the observation has not ended");
  if (done()) throw std::logic_error("all observations have been made");
  start_seconds_ = clock_();
}

bool BenchmarkRecorder::AddBatch(double loss) {
  if (!start_seconds_) throw std::logic_error("no observation has begun");
  const bool last = (batches_ + 1) % plan_.number == 0;
  if (last) {
    const double seconds = clock_() - *start_seconds_;
    start_seconds_.reset();
    if (++observations_ > plan_.skip) seconds_.push_back(seconds);
  }
  if (!std::isfinite(loss) && !first_non_finite_batch_) {
    first_non_finite_batch_ = batches_;
  }
  ++batches_;
  losses_.push_back(loss);
  if (std::ssize(losses_) > kKeptLosses) losses_.pop_front();
  return last;
}

support::Summary BenchmarkRecorder::train_seconds() const {
  return seconds_.empty() ? support::Summary{} : support::Summarise(seconds_);
}

std::vector<double> BenchmarkRecorder::batch_losses() const {
  return {losses_.begin(), losses_.end()};
}

std::string UniqueId(const BenchmarkReport& report) {
  std::vector<std::string> texts = {report.name, report.arch,
                                    std::to_string(report.plan.repeat),
                                    std::to_string(report.plan.number)};
  for (const auto& [name, value] : report.arguments) {
    if (MachineChooses(name)) continue;
    texts.push_back(name);
    texts.push_back(std::visit(
        [](const auto& v) { return nlohmann::json(v).dump(); }, value));
  }
  uint64_t hash = base::kFnv1aOfNothing;
  for (const std::string& text : texts) {
    // Include the terminating zero, so that "ab", "c" and "a", "bc" differ.
    hash = base::Fnv1a({text.c_str(), text.size() + 1}, hash);
  }
  return absl::StrFormat("%016x", hash);
}

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
  const fs::path directory = is_file ? output.parent_path() : output;
  std::error_code error;
  if (!directory.empty()) fs::create_directories(directory, error);
  if (error) {
    throw support::InputError("cannot create '" + directory.string() +
                              "': " + error.message());
  }
  AppendToList(is_file ? output : directory / (report.name + ".json"), report);
  AppendText(directory / "summary.txt", SummaryLine(report));
  return FailureOf(report).empty() ? BenchmarkStatus::kPassed
                                   : BenchmarkStatus::kFailed;
}

StepSpeed StepSpeedOf(int64_t batch_size,
                      const std::vector<double>& step_seconds) {
  const auto images = static_cast<double>(batch_size);
  std::vector<double> speeds;
  for (const double seconds : step_seconds) speeds.push_back(images / seconds);
  return {
      .mean = images / support::Mean(step_seconds),
      .uncertainty = support::StandardError(speeds),
      .jitter = support::Jitter(speeds),
  };
}

std::string StepHeader() { return "Step\tImg/sec\ttotal_loss"; }

std::string StepLine(int64_t step, const StepSpeed& speed, double loss) {
  return absl::StrFormat("%d\timages/sec: %.1f +/- %.1f (jitter = %.1f)\t%.3f",
                         step, speed.mean, speed.uncertainty, speed.jitter,
                         loss);
}

std::string TotalBlock(double images_per_second) {
  const std::string dashes(64, '-');
  return absl::StrFormat("%s\ntotal images/sec: %.2f\n%s", dashes,
                         images_per_second, dashes);
}

std::string IterationLine(int64_t iteration, double images_per_second) {
  return absl::StrFormat("Iter #%d: %.1f img/sec per CPU", iteration,
                         images_per_second);
}

std::string RankSpeedLine(const std::vector<double>& images_per_second) {
  const support::Summary speed = support::Summarise(images_per_second);
  return absl::StrFormat("Img/sec per CPU: %.1f +-%.1f", speed.mean,
                         kConfidence95 * speed.sd);
}

std::string TotalSpeedLine(int ranks,
                           const std::vector<double>& images_per_second) {
  const support::Summary speed = support::Summarise(images_per_second);
  return absl::StrFormat("Total img/sec on %d CPU(s): %.1f +-%.1f", ranks,
                         ranks * speed.mean, ranks * kConfidence95 * speed.sd);
}

}  // namespace hvdlite::trainers
