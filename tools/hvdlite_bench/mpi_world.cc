#include "tools/hvdlite_bench/mpi_world.h"

#include <stdexcept>

#include "tools/hvdlite_bench/mpi_ways.h"

namespace hvdlite::tools {

MpiWorld::MpiWorld(int* argc, char*** argv, int thread_level) {
  int level = MPI_THREAD_SINGLE;
  CheckMpi(MPI_Init_thread(argc, argv, thread_level, &level),
           "MPI_Init_thread");
  if (level < thread_level) {
    throw std::runtime_error(
        thread_level == MPI_THREAD_MULTIPLE
            ? "this MPI has no MPI_THREAD_MULTIPLE, which a program needs that "
              "calls MPI beside hvdlite"
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
  MPI_Finalize();
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

std::string MpiLibrary() {
  char version[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(version, &length);
  const std::string text(version, length);
  return text.substr(0, text.find_first_of(",\n"));
}

}  // namespace hvdlite::tools
