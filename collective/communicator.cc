#include "collective/communicator.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace hvdlite::collective {
namespace {

// Sent first: the length of a rank's value, or of its error's message.
struct Announcement {
  uint64_t failed = 0;
  uint64_t length = 0;
};

}  // namespace

std::vector<int64_t> EvenRows(int64_t rows, int ranks) {
  std::vector<int64_t> rows_of_rank(ranks, rows / ranks);
  for (int64_t rank = 0; rank < rows % ranks; ++rank) ++rows_of_rank[rank];
  return rows_of_rank;
}

std::string DescribeRank(int rank, absl::Span<const std::string> host_of_rank) {
  if (static_cast<size_t>(rank) >= host_of_rank.size()) {
    return absl::StrCat("rank ", rank);
  }
  return absl::StrCat("rank ", rank, " (", host_of_rank[rank], ")");
}

absl::StatusOr<std::vector<std::string>> GatherOrFail(
    Communicator& communicator, const absl::StatusOr<std::string>& mine,
    absl::Span<const std::string> host_of_rank) {
  const int rank = communicator.rank();
  const int size = communicator.size();
  const std::string text =
      mine.ok() ? *mine : std::string(mine.status().message());

  std::vector<Announcement> announcements(size);
  announcements[rank] = {mine.ok() ? 0U : 1U, text.size()};
  HVDLITE_RETURN_IF_ERROR(communicator.Allgather(
      absl::MakeSpan(reinterpret_cast<std::byte*>(announcements.data()),
                     announcements.size() * sizeof(Announcement)),
      std::vector<size_t>(size, sizeof(Announcement))));

  std::vector<size_t> lengths;
  for (const Announcement& announcement : announcements) {
    lengths.push_back(announcement.length);
  }
  std::vector<std::byte> bytes(
      std::accumulate(lengths.begin(), lengths.end(), size_t{0}));
  const size_t offset =
      std::accumulate(lengths.begin(), lengths.begin() + rank, size_t{0});
  if (!text.empty()) {
    std::memcpy(bytes.data() + offset, text.data(), text.size());
  }
  if (!bytes.empty()) {
    HVDLITE_RETURN_IF_ERROR(
        communicator.Allgather(absl::MakeSpan(bytes), lengths));
  }

  std::vector<std::string> values;
  const std::byte* next = bytes.data();
  for (int r = 0; r < size; ++r) {
    values.emplace_back(reinterpret_cast<const char*>(next), lengths[r]);
    next += lengths[r];
    if (announcements[r].failed != 0) {
      return absl::UnavailableError(
          absl::StrCat(DescribeRank(r, host_of_rank), ": ", values[r]));
    }
  }
  return values;
}

absl::Status AgreeOn(Communicator& communicator, const absl::Status& status,
                     absl::Span<const std::string> host_of_rank) {
  return GatherOrFail(communicator,
                      status.ok() ? absl::StatusOr<std::string>("") : status,
                      host_of_rank)
      .status();
}

}  // namespace hvdlite::collective
