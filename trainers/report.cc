#include "trainers/report.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "support/chart.h"
#include "support/output_file.h"
#include "support/statistics.h"
#include "support/text_table.h"

namespace hvdlite::trainers {
namespace {

using support::Properties;

// The value of a flag as on the command line; "none" if it is empty.
std::string ValueText(const nlohmann::ordered_json& value) {
  if (value.is_string()) {
    const auto text = value.get<std::string>();
    return text.empty() ? "none" : text;
  }
  return value.is_null() ? "none" : value.dump();
}

Properties SettingsOf(const Report& report) {
  Properties settings;
  const auto flags = nlohmann::ordered_json::parse(report.settings);
  for (const auto& [name, value] : flags.items()) {
    settings.emplace_back(name, ValueText(value));
  }
  return settings;
}

Properties ResultsOf(const Report& report) {
  Properties results = {
      {"world",
       absl::StrCat(support::Counted(report.world_size, "rank"), " of ",
                    support::Counted(report.threads_per_rank, "thread"))},
      {"steps",
       absl::StrCat(report.steps,
                    report.first_step > 0
                        ? absl::StrCat(" after the first ", report.first_step)
                        : "")},
      {"time", absl::StrFormat("%.1f s, without evaluation and checkpoints",
                               report.seconds)}};
  if (!report.items_per_second.empty()) {
    const support::Summary speed = support::Summarise(report.items_per_second);
    results.emplace_back(
        "rate",
        absl::StrFormat("%s %s/s, the median of %d intervals from %s to %s",
                        support::NumberText(speed.median), report.items,
                        report.items_per_second.size(),
                        support::NumberText(speed.min),
                        support::NumberText(speed.max)));
  }
  if (!report.losses.empty()) {
    results.emplace_back(
        "training loss",
        absl::StrFormat("%.4g at first, %.4g at last", report.losses.front(),
                        report.losses.back()));
  }
  if (report.replaced) {
    results.emplace_back(
        "unreadable",
        absl::StrFormat("%d training %s replaced by others, %d test %s skipped",
                        *report.replaced, report.items,
                        report.evaluation ? report.evaluation->unreadable : 0,
                        report.items));
  }
  if (report.evaluation) {
    results.emplace_back("test loss",
                         absl::StrFormat("%.4g", report.evaluation->loss));
    results.emplace_back(
        "test accuracy",
        absl::StrFormat("%.2f %% of %d %s", 100 * report.evaluation->accuracy,
                        report.evaluation->items, report.items));
  }
  return results;
}

std::vector<support::Chart> ChartsOf(const Report& report) {
  std::vector<support::Chart> charts = {
      {.title = "Loss",
       .x_label = "interval",
       .y_label = "mean cross entropy",
       .curves = {{"training", report.losses}}},
      {.title = "Speed",
       .x_label = "interval",
       .y_label = absl::StrCat(report.items, "/s, all ranks together"),
       .curves = {{"speed", report.items_per_second}},
       .y_from_zero = true}};
  if (report.test_losses.size() == report.losses.size()) {
    charts[0].curves.push_back({"test", report.test_losses});
  } else if (!report.test_losses.empty()) {
    charts.push_back({.title = "Test loss",
                      .x_label = "evaluation",
                      .y_label = "mean cross entropy",
                      .curves = {{"test", report.test_losses}}});
  }
  if (!report.accuracies.empty()) {
    std::vector<double> percent;
    for (const double share : report.accuracies) {
      percent.push_back(100 * share);
    }
    charts.push_back({.title = "Test accuracy",
                      .x_label = "evaluation",
                      .y_label = absl::StrCat("% of ", report.items),
                      .curves = {{"accuracy", std::move(percent)}}});
  }
  return charts;
}

}  // namespace

void IntervalMeter::Start() {
  interval_steps_ = 0;
  interval_items_ = 0;
  interval_loss_ = 0;
  left_out_seconds_ = 0;
  cpu_start_ = support::CpuSecondsNow();
  start_ = clock_();
}

void IntervalMeter::AddStep(int64_t items, double loss) {
  ++interval_steps_;
  interval_items_ += items;
  interval_loss_ += loss;
}

void IntervalMeter::Finish() {
  if (interval_steps_ == 0) return;
  const double wall_seconds = clock_() - start_;
  const double seconds = std::max(wall_seconds - left_out_seconds_, 1e-9);
  wall_seconds_ += wall_seconds;
  seconds_ += seconds;
  const support::CpuSeconds cpu = support::CpuSecondsNow();
  cpu_seconds_.machine += cpu.machine - cpu_start_.machine;
  cpu_seconds_.process += cpu.process - cpu_start_.process;
  speeds_.push_back(static_cast<double>(interval_items_) / seconds);
  losses_.push_back(interval_loss_ / static_cast<double>(interval_steps_));
}

std::string FormatDigest(int64_t digest) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx",
                static_cast<unsigned long long>(digest));
  return text;
}

void WriteReport(const std::string& file, const Report& report) {
  std::vector<std::string> digests;
  for (const int64_t digest : report.parameter_digests) {
    digests.push_back(FormatDigest(digest));
  }
  const bool identical = std::all_of(
      digests.begin(), digests.end(),
      [&](const std::string& digest) { return digest == digests.front(); });

  nlohmann::ordered_json json;
  json["program"] = report.program;
  json["settings"] = nlohmann::json::parse(report.settings);
  for (const auto& [name, value] : report.data) json["data"][name] = value;
  json["world_size"] = report.world_size;
  json["threads_per_rank"] = report.threads_per_rank;
  json["first_step"] = report.first_step;
  json["steps"] = report.steps;
  json["seconds"] = report.seconds;
  nlohmann::json speed = nlohmann::json::object();
  if (!report.items_per_second.empty()) {
    const support::Summary of_intervals =
        support::Summarise(report.items_per_second);
    speed = {{"mean", of_intervals.mean},
             {"median", of_intervals.median},
             {"min", of_intervals.min},
             {"max", of_intervals.max}};
  }
  speed["intervals"] = report.items_per_second;
  json[report.items + "_per_second"] = std::move(speed);
  json["loss"] = {{"intervals", report.losses}};
  if (!report.losses.empty()) {
    json["loss"]["first"] = report.losses.front();
    json["loss"]["last"] = report.losses.back();
  }
  if (report.evaluation) {
    json["evaluation"] = {{"loss", report.evaluation->loss},
                          {"accuracy", report.evaluation->accuracy},
                          {report.items, report.evaluation->items}};
    json["accuracies"] = report.accuracies;
    json["test_losses"] = report.test_losses;
  }
  if (report.replaced) {
    json["unreadable"] = {
        {"replaced", *report.replaced},
        {"left_out", report.evaluation ? report.evaluation->unreadable : 0}};
  }
  json["parameter_digests"] = digests;
  json["parameters_identical"] = identical;
  for (const auto& [name, value] : report.machine) {
    json["machine"][name] = value;
  }

  support::WriteFile(
      file, json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) +
                "\n");
}

void WriteHtmlReport(const std::string& file, const Report& report) {
  std::string body = support::PropertyTable("Results", ResultsOf(report));
  for (const support::Chart& chart : ChartsOf(report)) {
    body += support::ChartSection(chart);
  }
  if (!report.data.empty()) {
    body += support::PropertyTable("Data", report.data);
  }
  body += support::PropertyTable("Settings", SettingsOf(report)) +
          support::PropertyTable("Machine", report.machine);
  support::WriteFile(file, support::HtmlPage(report.program, body));
}

}  // namespace hvdlite::trainers
