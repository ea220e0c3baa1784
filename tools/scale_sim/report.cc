#include "tools/scale_sim/report.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "support/html_page.h"
#include "support/statistics.h"
#include "support/text_table.h"

namespace hvdlite::scale_sim {
namespace {

nlohmann::json Json(const Distribution& distribution) {
  return {{"median", distribution.median},
          {"p99", distribution.p99},
          {"max", distribution.max}};
}

nlohmann::json Json(const Load& load) {
  return {{"mean_messages", load.mean_messages},
          {"max_messages", load.max_messages},
          {"mean_bytes", load.mean_bytes},
          {"max_bytes", load.max_bytes},
          {"root_received_per_decision", load.root_received_per_decision},
          {"root_sent_per_decision", load.root_sent_per_decision},
          {"root_received_bytes", load.root_received_bytes},
          {"decisions", load.decisions}};
}

nlohmann::json Json(const LinkParameters& link) {
  return {{"latency_us", link.latency_us},
          {"overhead_us", link.overhead_us},
          {"gap_us", link.gap_us},
          {"ns_per_byte", link.ns_per_byte}};
}

double MeanOf(const std::vector<double>& samples) {
  return samples.empty() ? 0 : support::Mean(samples);
}

}  // namespace

Distribution DistributionOf(std::vector<float> samples) {
  const auto at = [&](double part) {
    const auto index = static_cast<size_t>(
        part * static_cast<double>(samples.size() - 1) + 0.5);
    std::nth_element(samples.begin(), samples.begin() + index, samples.end());
    return static_cast<double>(samples[index]);
  };
  return {.median = at(0.5), .p99 = at(0.99), .max = at(1)};
}

Load LoadOf(const Traffic& traffic, int steps) {
  if (steps == 0) return {};
  const auto per_step = [&](int64_t amount) {
    return static_cast<double>(amount) / steps;
  };
  const auto sum = [](const std::vector<int64_t>& amounts) {
    return std::accumulate(amounts.begin(), amounts.end(), int64_t{0});
  };
  const auto ranks = static_cast<double>(traffic.messages.size());
  const auto decisions = static_cast<double>(traffic.decisions);
  return {.mean_messages = per_step(sum(traffic.messages)) / ranks,
          .max_messages = per_step(*std::max_element(traffic.messages.begin(),
                                                     traffic.messages.end())),
          .mean_bytes = per_step(sum(traffic.bytes)) / ranks,
          .max_bytes = per_step(
              *std::max_element(traffic.bytes.begin(), traffic.bytes.end())),
          .root_received_per_decision =
              static_cast<double>(traffic.root_received) / decisions,
          .root_sent_per_decision =
              static_cast<double>(traffic.messages[0]) / decisions,
          .root_received_bytes = per_step(traffic.root_received_bytes),
          .decisions = decisions / steps};
}

Row RowOf(const SimulationOptions& options, const SimulationResult& result) {
  return {.ranks = options.ranks,
          .arity = options.tree_arity,
          .root_children = result.root_children,
          .tree_height = result.tree_height,
          .tensor_latency_us = DistributionOf(result.tensor_latency_us),
          .bucket_latency_us = DistributionOf(result.bucket_latency_us),
          .median_lateness_us = DistributionOf(result.lateness_us).median,
          .step_ms = MeanOf(result.step_ms),
          .computation_ms = MeanOf(result.computation_ms),
          .buckets_ms = MeanOf(result.buckets_ms),
          .steady = LoadOf(result.steady, options.steps),
          .warmup = LoadOf(result.warmup, options.warmup_steps)};
}

void PrintTable(const std::vector<Row>& rows, std::ostream& out) {
  const auto latency = [](const Distribution& distribution) {
    return absl::StrFormat("%.1f, %.1f, %.1f", distribution.median,
                           distribution.p99, distribution.max);
  };
  const auto at_root = [](const Load& load) {
    return absl::StrFormat("%.1f, %.1f", load.root_received_per_decision,
                           load.root_sent_per_decision);
  };
  std::vector<std::vector<std::string>> cells;
  for (const Row& row : rows) {
    cells.push_back(
        {absl::StrCat(row.ranks), absl::StrCat(row.arity),
         absl::StrCat(row.tree_height), latency(row.bucket_latency_us),
         latency(row.tensor_latency_us), absl::StrFormat("%.2f", row.step_ms),
         absl::StrFormat("%.1f", row.steady.decisions), at_root(row.steady),
         absl::StrFormat("%.1f, %.1f", row.steady.mean_messages,
                         row.steady.max_messages),
         absl::StrFormat("%.0f, %.0f", row.steady.mean_bytes,
                         row.steady.max_bytes),
         absl::StrFormat("%.0f, %.0f", row.warmup.mean_bytes,
                         row.warmup.max_bytes)});
  }
  out << support::Wrapped(
             "Latencies in us: median, p99, max. At the root: messages that it "
             "receives and sends per decision. Messages and bytes that a rank "
             "sends per step, and bytes in a step that announces names: mean, "
             "max.")
      << "\n"
      << support::TextTable(
             {"ranks", "arity", "height", "bucket latency", "tensor latency",
              "step ms", "decisions", "at the root", "messages", "bytes",
              "bytes announcing"},
             cells, {.keys = 2});
}

std::string ToJson(const SimulationOptions& options,
                   const std::vector<Row>& rows) {
  nlohmann::json worlds = nlohmann::json::array();
  for (const Row& row : rows) {
    worlds.push_back({{"ranks", row.ranks},
                      {"arity", row.arity},
                      {"root_children", row.root_children},
                      {"tree_height", row.tree_height},
                      {"tensor_latency_us", Json(row.tensor_latency_us)},
                      {"bucket_latency_us", Json(row.bucket_latency_us)},
                      {"median_lateness_us", row.median_lateness_us},
                      {"step_ms", row.step_ms},
                      {"computation_ms", row.computation_ms},
                      {"buckets_ms", row.buckets_ms},
                      {"steady", Json(row.steady)},
                      {"announcing", Json(row.warmup)}});
  }
  const nlohmann::json document = {
      {"workload", options.workload.name},
      {"tensors", options.workload.requests.size()},
      {"steps", options.steps},
      {"ranks_per_node", options.network.ranks_per_node},
      {"within_node", Json(options.network.within_node)},
      {"between_nodes", Json(options.network.between_nodes)},
      {"jitter", options.network.jitter},
      {"compute_jitter", options.compute_jitter},
      {"stragglers", options.stragglers},
      {"straggler_delay_ms", options.straggler_delay_ms},
      {"gather_us", options.gather_us},
      {"forward_ms", options.cost.forward_ms},
      {"backward_ms", options.cost.backward_ms},
      {"bucket_us", options.cost.bucket_us},
      {"bucket_ns_per_byte", options.cost.bucket_ns_per_byte},
      {"chunk_bytes", options.cost.chunk_bytes},
      {"fusion_bytes", options.fusion_threshold_bytes},
      {"min_batch_bytes", options.min_batch_bytes},
      {"seed", options.seed},
      {"worlds", worlds}};
  return document.dump(2) + "\n";
}

std::string ToPage(const std::vector<Row>& rows) {
  std::map<std::string, support::Curve> curves;
  for (const Row& row : rows) {
    const std::string name = absl::StrCat("arity ", row.arity);
    support::Curve& curve = curves[name];
    curve.name = name;
    curve.x.push_back(row.ranks);
    curve.values.push_back(row.bucket_latency_us.max);
  }
  support::Chart chart = {.title = "Largest bucket latency",
                          .x_label = "ranks",
                          .y_label = "us",
                          .curves = {},
                          .log_x = true,
                          .log_y = true};
  for (auto& [name, curve] : curves) chart.curves.push_back(std::move(curve));
  return support::HtmlPage("Negotiation", support::ChartSection(chart));
}

}  // namespace hvdlite::scale_sim
