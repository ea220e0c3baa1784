#include "timeline/diagnose/step_report.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/end_note.h"

namespace hvdlite::timeline {
namespace {

constexpr double ResourceUse::*kResources[] = {
    &ResourceUse::seconds,        &ResourceUse::progress_cpu,
    &ResourceUse::progress_delay, &ResourceUse::main_cpu,
    &ResourceUse::main_delay,     &ResourceUse::compute_cpu,
    &ResourceUse::compute_delay,  &ResourceUse::threads,
    &ResourceUse::system_cpu,     &ResourceUse::major_faults,
    &ResourceUse::minor_faults,   &ResourceUse::progress_switches};

nlohmann::json AsJson(const std::vector<TraceArg>& facts) {
  nlohmann::json json = nlohmann::json::object();
  for (const auto& [name, value] : facts) {
    std::visit([&, key = name](const auto& held) { json[key] = held; }, value);
  }
  return json;
}

std::vector<TraceArg> FactsOf(const nlohmann::json& json) {
  std::vector<TraceArg> facts;
  for (const auto& [name, value] : json.items()) {
    if (value.is_number_integer()) {
      facts.emplace_back(name, value.get<int64_t>());
    } else if (value.is_string()) {
      facts.emplace_back(name, value.get<std::string>());
    }
  }
  return facts;
}

}  // namespace

std::string EncodeStepReport(const StepReport& report) {
  std::vector<double> use;
  for (const auto resource : kResources) use.push_back(report.use.*resource);
  const nlohmann::json json = {{"rank", report.rank},
                               {"size", report.size},
                               {"host", report.host},
                               {"interval", report.interval},
                               {"first_step", report.first_step},
                               {"steps", report.steps},
                               {"start_ns", report.start_ns},
                               {"parts", report.parts},
                               {"hidden_ns", report.hidden_ns},
                               {"work", report.work},
                               {"cpu_ns", report.cpu_ns},
                               {"buckets", report.buckets},
                               {"bytes", report.bytes},
                               {"use", use},
                               {"facts", AsJson(report.facts)}};
  return json.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

std::optional<StepReport> DecodeStepReport(absl::string_view line) {
  const nlohmann::json json = nlohmann::json::parse(
      line.begin(), line.end(), nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return std::nullopt;
  try {
    StepReport report = {.rank = json.at("rank"),
                         .size = json.at("size"),
                         .host = json.at("host"),
                         .interval = json.at("interval"),
                         .first_step = json.at("first_step"),
                         .steps = json.at("steps"),
                         .start_ns = json.at("start_ns"),
                         .parts = json.at("parts"),
                         .hidden_ns = json.at("hidden_ns"),
                         .work = json.value("work", int64_t{-1}),
                         .cpu_ns = json.value("cpu_ns", int64_t{-1}),
                         .buckets = json.at("buckets"),
                         .bytes = json.at("bytes"),
                         .use = {},
                         .facts = FactsOf(json.at("facts"))};
    const std::vector<double> use = json.at("use");
    if (use.size() != std::size(kResources) || report.steps <= 0) {
      return std::nullopt;
    }
    for (size_t i = 0; i < use.size(); ++i) report.use.*kResources[i] = use[i];
    return report;
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

absl::StatusOr<StepReportEnds> MakeStepReportPipe() {
  int ends[2];
  if (pipe2(ends, O_NONBLOCK) != 0) {
    return absl::ResourceExhaustedError(
        absl::StrCat("pipe2: ", std::strerror(errno)));
  }
  StepReportEnds pipe = {base::Descriptor(ends[0]), base::Descriptor(ends[1])};
  fcntl(pipe.read.get(), F_SETFD, FD_CLOEXEC);
  return pipe;
}

std::function<void(const StepReport&)> StepReportPipe(
    const base::Environment& environment) {
  const std::optional<std::string> text =
      environment.get(base::kStepReportVariable);
  int descriptor = -1;
  struct stat status = {};
  // A process may have inherited the variable without the pipe: the descriptor
  // is then closed or another file.
  if (!text.has_value() || !absl::SimpleAtoi(*text, &descriptor) ||
      fstat(descriptor, &status) != 0 || !S_ISFIFO(status.st_mode)) {
    return nullptr;
  }
  return [descriptor](const StepReport& report) {
    const std::string line = EncodeStepReport(report) + "\n";
    // A longer line might not be written as a whole.
    if (line.size() > PIPE_BUF) return;
    (void)!write(descriptor, line.data(), line.size());
  };
}

std::optional<std::string> StepReports::Add(StepReport report) {
  std::optional<std::string> line;
  // If a rank reports again, some other rank has stopped: do not wait for it.
  if (latest_.contains(report.rank)) {
    line = Line();
    latest_.clear();
  }
  const auto size = static_cast<size_t>(std::max<int64_t>(report.size, 1));
  latest_[report.rank] = report;
  reports_.push_back(std::move(report));
  if (!line.has_value() && latest_.size() >= size) {
    line = Line();
    latest_.clear();
  }
  return line;
}

std::string StepReports::Line() const {
  PartTimes sums = {};
  int64_t steps = 0;
  int64_t last_step = 0;
  const StepReport* slowest = nullptr;
  const auto waits = [](const StepReport& report) {
    return static_cast<double>(At(report.parts, StepPart::kWaitForRanks)) /
           static_cast<double>(std::max<int64_t>(TotalNs(report.parts), 1));
  };
  for (const auto& [rank, report] : latest_) {
    for (size_t i = 0; i < kStepParts; ++i) sums[i] += report.parts[i];
    steps += report.steps;
    last_step = std::max(last_step, report.first_step + report.steps - 1);
    if (slowest == nullptr || waits(report) < waits(*slowest)) {
      slowest = &report;
    }
  }
  const auto total = static_cast<double>(std::max<int64_t>(TotalNs(sums), 1));
  const auto other = static_cast<double>(At(sums, StepPart::kOther));
  const double training_ns = std::max(total - other, 1.0);
  const double exposed = static_cast<double>(ExposedNs(sums)) / training_ns;
  std::string line = absl::StrFormat(
      "step %d: %.2f steps/s, %.1f %% of a step is exposed communication",
      last_step, static_cast<double>(steps) / training_ns * 1e9, exposed * 100);
  if (other / total >= 0.01) {
    absl::StrAppendFormat(
        &line, " (without evaluation and commits: %.1f %% of the time)",
        other / total * 100);
  }
  const double for_ranks =
      static_cast<double>(At(sums, StepPart::kWaitForRanks)) / training_ns;
  if (latest_.size() > 1 && for_ranks >= 0.01) {
    absl::StrAppendFormat(&line,
                          ", %.1f %% is waiting for ranks; slowest: rank %d "
                          "(%s)",
                          for_ranks * 100, slowest->rank, slowest->host);
  }
  return line;
}

Trace StepReports::Ranks() const {
  Trace trace;
  for (const StepReport& report : reports_) {
    TraceProcess& process = trace.processes[report.rank];
    process.is_rank = true;
    process.host = report.host;
    process.world_size = report.size;
    process.facts = report.facts;
  }
  return trace;
}

StepAnalysis StepReports::Analysis() const {
  StepAnalysis analysis;
  analysis.source = StepSource::kRecorded;
  analysis.knows_waits = true;
  std::map<int64_t, double> seconds;
  double steps = 0;
  for (const StepReport& report : reports_) {
    const RankStep step = {.rank = report.rank,
                           .number = report.interval,
                           .start_ns = report.start_ns,
                           .parts = report.parts,
                           .hidden_ns = report.hidden_ns,
                           .count = report.steps,
                           .work = report.work,
                           .cpu_ns = report.cpu_ns};
    analysis.steps.push_back(step);
    // The first interval includes the start: it counts only if it is alone.
    if (report.interval == 1 && reports_.back().interval > 1) continue;
    if (report.rank == reports_.front().rank) {
      steps += static_cast<double>(report.steps);
      analysis.buckets_per_step += report.buckets;
      analysis.bytes_per_step += report.bytes;
    }
    ResourceUse& use = analysis.resources[report.rank];
    const double weight = report.use.seconds;
    const double before = use.seconds;
    if (weight <= 0) continue;
    for (const auto resource : kResources) {
      use.*resource = (use.*resource * before + report.use.*resource * weight) /
                      (before + weight);
    }
    use.seconds = before + weight;
  }
  if (steps > 0) {
    analysis.buckets_per_step /= steps;
    analysis.bytes_per_step /= steps;
  }
  std::sort(analysis.steps.begin(), analysis.steps.end(),
            [](const RankStep& a, const RankStep& b) {
              return std::pair(a.number, a.rank) < std::pair(b.number, b.rank);
            });
  return analysis;
}

}  // namespace hvdlite::timeline
