#include "bench/hvdlite_bench/mpi_world.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "collective/mpi/mpi_library.h"
#include "support/machine.h"
#include "support/processor.h"

namespace hvdlite::tools {
namespace {

// A position in the tensors, as if they were contiguous.
struct Position {
  size_t tensor = 0;
  size_t offset = 0;
};

// Calls copy(piece of a tensor, offset in the buffer) from `position` on, until
// `capacity` elements or all tensors are done. Advances `position` and returns
// the number of elements.
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

MpiWorld::MpiWorld(int* argc, char*** argv, int thread_level) {
  int level = MPI_THREAD_SINGLE;
  CheckMpi(MPI_Init_thread(argc, argv, thread_level, &level),
           "MPI_Init_thread");
  if (level < thread_level) {
    throw std::runtime_error(
        thread_level == MPI_THREAD_MULTIPLE
            ? "this MPI has no MPI_THREAD_MULTIPLE, which a program needs to "
              "call MPI in addition to hvdlite"
            : "this MPI has no MPI_THREAD_SERIALIZED");
  }
  CheckMpi(MPI_Comm_dup(MPI_COMM_WORLD, &communicator_), "MPI_Comm_dup");
  MPI_Comm node;
  CheckMpi(MPI_Comm_split_type(communicator_, MPI_COMM_TYPE_SHARED, 0,
                               MPI_INFO_NULL, &node),
           "MPI_Comm_split_type");
  int on_node = 0;
  MPI_Comm_size(node, &on_node);
  MPI_Comm_free(&node);
  one_host_ = on_node == size();
}

MpiWorld::~MpiWorld() {
  MPI_Comm_free(&communicator_);
  collective::FinalizeMpi();
}

int MpiWorld::rank() const {
  int rank = 0;
  MPI_Comm_rank(communicator_, &rank);
  return rank;
}

int MpiWorld::size() const {
  int size = 1;
  MPI_Comm_size(communicator_, &size);
  return size;
}

std::vector<std::string> MpiWorld::Gather(const std::string& text) const {
  constexpr int kBytes = 512;
  std::string own = text.substr(0, kBytes - 1);
  own.resize(kBytes, '\0');
  std::string all(static_cast<size_t>(kBytes) * size(), '\0');
  CheckMpi(MPI_Allgather(own.data(), kBytes, MPI_CHAR, all.data(), kBytes,
                         MPI_CHAR, communicator_),
           "MPI_Allgather");
  std::vector<std::string> texts;
  for (int rank = 0; rank < size(); ++rank) {
    texts.emplace_back(all.data() + static_cast<size_t>(rank) * kBytes);
  }
  return texts;
}

std::string OwnCores() {
  return support::FormatCpuList(support::CoresOf(support::AllowedCpus()));
}

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
