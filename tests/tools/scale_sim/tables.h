// The published table, and fits to tables, for tests.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tools/scale_sim/epoch_table.h"
#include "tools/scale_sim/fit.h"

namespace hvdlite::scale_sim {

inline constexpr char kTable[] =
    HVDLITE_SOURCE_FOLDER "/tools/scale_sim/tables/a64fx_resnet50_cifar10.json";

inline const std::vector<std::string>& DefaultParameters() {
  static const auto* const names = new std::vector<std::string>{
      "image-ms", "starved-share", "software-ns-per-byte"};
  return *names;
}

inline FitOptions Options(std::vector<int> fit_nodes) {
  FitOptions options;
  options.fit_nodes = std::move(fit_nodes);
  options.parameters = DefaultParameters();
  TrainingModel& training = options.model.training;
  training.gradients = Resnet50GradientSet(10);
  training.allreduce.within_node = SharedMemoryLink();
  training.allreduce.between_nodes = *LinkPreset("infiniband");
  training.compute.first_batch_share = training.compute.forward_share;
  return options;
}

inline ColumnFit Fitted(const EpochTable& table, const FitOptions& options,
                        size_t column = 0) {
  auto fit = FitColumn(table, table.columns[column], options);
  EXPECT_TRUE(fit.ok()) << fit.status();
  return fit.ok() ? *std::move(fit) : ColumnFit();
}

inline EpochTable Published() {
  auto table = ReadEpochTable(kTable);
  EXPECT_TRUE(table.ok()) << table.status();
  return *std::move(table);
}

// Column `column` of it fitted to the rows of these nodes, once.
inline const ColumnFit& PublishedFit(const std::vector<int>& fit_nodes,
                                     size_t column = 0) {
  static auto* const fits =
      new std::map<std::pair<std::vector<int>, size_t>, ColumnFit>();
  const auto [fit, is_new] = fits->try_emplace({fit_nodes, column});
  if (is_new) fit->second = Fitted(Published(), Options(fit_nodes), column);
  return fit->second;
}

}  // namespace hvdlite::scale_sim
