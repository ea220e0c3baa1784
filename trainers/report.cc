#include "trainers/report.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <numeric>

#include "tools/support/chart.h"
#include "tools/support/output_file.h"
#include "tools/support/statistics.h"

namespace hvdlite::trainers {
void IntervalMeter::Start() {
  interval_steps_ = 0;
  interval_items_ = 0;
  interval_loss_ = 0;
  start_ = std::chrono::steady_clock::now();
}

void IntervalMeter::AddStep(int64_t items, double loss) {
  ++interval_steps_;
  interval_items_ += items;
  interval_loss_ += loss;
}

void IntervalMeter::Finish() {
  if (interval_steps_ == 0) return;
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start_)
          .count();
  seconds_ += seconds;
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
  }
  json["parameter_digests"] = digests;
  json["parameters_identical"] = identical;

  support::WriteFile(
      file, json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) +
                "\n");
}

void WriteHtmlReport(const std::string& file, const Report& report) {
  std::vector<support::Chart> charts = {
      {"Training loss", "interval", {{"loss", report.losses}}},
      {report.items + " a second, all ranks",
       "interval",
       {{"speed", report.items_per_second}}}};
  if (!report.accuracies.empty()) {
    charts.push_back(
        {"Accuracy", "evaluation", {{"accuracy", report.accuracies}}});
  }
  support::WriteFile(
      file,
      support::ChartsPage(
          report.program,
          {std::to_string(report.world_size) + " ranks, " +
               std::to_string(report.steps) + " steps" +
               (report.first_step > 0
                    ? " after the first " + std::to_string(report.first_step)
                    : ""),
           report.settings},
          charts));
}

}  // namespace hvdlite::trainers
