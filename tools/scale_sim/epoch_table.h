// EpochTable: measured epoch times of a training on growing numbers of nodes.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hvdlite::scale_sim {

// One set-up, on each of the table's numbers of nodes.
struct EpochColumn {
  std::string name;
  int ranks_per_node = 1;
  std::vector<double> epoch_seconds;  // one per entry of EpochTable::nodes
};

// Strong scaling of the data set: an epoch has `images` whatever the number of
// nodes; every rank takes up to `batch_per_rank` of them per step.
struct EpochTable {
  std::string source;
  int images = 0;
  int batch_per_rank = 0;
  int cores_per_node = 0;
  std::vector<int> nodes;  // ascending
  // Instead of batch_per_rank the batch of all ranks together, which a rank has
  // its part of; 0: none.
  int world_batch = 0;
  // `nodes` are ranks of one node.
  bool ranks_stand_for_nodes = false;
  // The times are of all that is in an epoch. Else they follow from speeds
  // after a warm-up, and what its first batch costs is not in them.
  bool whole_epochs = true;
  std::vector<EpochColumn> columns;

  // In a world of `ranks`.
  int BatchOfRank(int ranks) const {
    if (world_batch == 0) return batch_per_rank;
    return world_batch > ranks ? world_batch / ranks : 1;
  }
};

// From JSON with the names of the first six fields above; all are required.
// Errors name the fields that are missing, or the field, and say what it has to
// be.
absl::StatusOr<EpochTable> ParseEpochTable(absl::string_view json);

// Errors name the file too.
absl::StatusOr<EpochTable> ReadEpochTable(const std::string& path);

}  // namespace hvdlite::scale_sim
