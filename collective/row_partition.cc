#include "collective/row_partition.h"

namespace hvdlite::collective {

std::vector<int64_t> EvenRows(int64_t rows, int ranks) {
  std::vector<int64_t> rows_of_rank(ranks, rows / ranks);
  for (int64_t rank = 0; rank < rows % ranks; ++rank) ++rows_of_rank[rank];
  return rows_of_rank;
}

}  // namespace hvdlite::collective
