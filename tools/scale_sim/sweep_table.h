// A user's own measurements: the results of scaling_sweep as an EpochTable.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tools/scale_sim/epoch_table.h"

namespace hvdlite::scale_sim {

// What a sweep's table does not say.
struct SweepFacts {
  int items_per_epoch = 0;  // 0: as its epoch times and speeds imply
  int batch_per_rank = 0;   // one of these two
  int world_batch = 0;
};

// The folder of a sweep's results, or a table.csv.
bool IsSweep(const std::string& path);

// From the text of a sweep's table.csv: a column for each setting, mapping and
// number of threads, and of ranks per node. Its N are nodes if there are
// worlds of several, else ranks (ranks_stand_for_nodes). Left out are rows that
// failed or are oversubscribed, series of fewer than three N, and N that not
// all series have. Errors name what is missing, and say how to give it.
absl::StatusOr<EpochTable> ParseSweepTable(absl::string_view csv,
                                           const SweepFacts& facts);

// Errors name the file too.
absl::StatusOr<EpochTable> ReadSweepTable(const std::string& path,
                                          const SweepFacts& facts);

}  // namespace hvdlite::scale_sim
