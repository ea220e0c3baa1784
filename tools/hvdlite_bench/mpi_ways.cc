#include "tools/hvdlite_bench/mpi_ways.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>

namespace hvdlite::tools {
namespace {

// A place in the tensors, as if they lay one after the other.
struct Position {
  size_t tensor = 0;
  size_t offset = 0;
};

// Calls copy(piece of a tensor, offset in the buffer) from `position` on, which
// is moved forward, until `capacity` elements or all tensors are done. Returns
// their number.
template <typename Copy>
size_t ForPieces(absl::Span<const absl::Span<float>> tensors, size_t capacity,
                 Position& position, const Copy& copy) {
  size_t done = 0;
  while (done < capacity && position.tensor < tensors.size()) {
    const absl::Span<float> rest =
        tensors[position.tensor].subspan(position.offset);
    const size_t count = std::min(rest.size(), capacity - done);
    copy(rest.first(count), done);
    done += count;
    position.offset += count;
    if (count == rest.size()) position = {position.tensor + 1, 0};
  }
  return done;
}

}  // namespace

void CheckMpi(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  throw std::runtime_error(std::string(call) + " failed with code " +
                           std::to_string(code));
}

void MpiAllreduce(absl::Span<float> data, MPI_Comm communicator) {
  if (data.size() > size_t{std::numeric_limits<int>::max()}) {
    throw std::invalid_argument("too many elements for one MPI_Allreduce: " +
                                std::to_string(data.size()));
  }
  CheckMpi(
      MPI_Allreduce(MPI_IN_PLACE, data.data(), static_cast<int>(data.size()),
                    MPI_FLOAT, MPI_SUM, communicator),
      "MPI_Allreduce");
}

void MpiAllreduceInChunks(absl::Span<float> data, int64_t chunk_elements,
                          MPI_Comm communicator) {
  for (; !data.empty();
       data.remove_prefix(std::min<size_t>(data.size(), chunk_elements))) {
    MpiAllreduce(data.subspan(0, chunk_elements), communicator);
  }
}

void MpiAllreduceEach(absl::Span<const absl::Span<float>> tensors,
                      MPI_Comm communicator) {
  for (const absl::Span<float> tensor : tensors) {
    MpiAllreduce(tensor, communicator);
  }
}

void MpiAllreducePacked(absl::Span<const absl::Span<float>> tensors,
                        absl::Span<float> buffer, MPI_Comm communicator) {
  Position packed;
  Position unpacked;
  while (packed.tensor < tensors.size()) {
    const size_t count =
        ForPieces(tensors, buffer.size(), packed,
                  [&](absl::Span<float> piece, size_t at) {
                    std::memcpy(buffer.data() + at, piece.data(),
                                piece.size() * sizeof(float));
                  });
    MpiAllreduce(buffer.first(count), communicator);
    ForPieces(tensors, count, unpacked,
              [&](absl::Span<float> piece, size_t at) {
                std::memcpy(piece.data(), buffer.data() + at,
                            piece.size() * sizeof(float));
              });
  }
}

}  // namespace hvdlite::tools
