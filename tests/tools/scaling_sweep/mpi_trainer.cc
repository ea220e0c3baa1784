// A fake trainer with MPI that takes no time: mpi_trainer REPORT PIPE.
//
// Reports 100 items/s for one rank and 90 for each further rank, with the host
// and the network namespace of every rank, and OMP_NUM_THREADS. If PIPE exists
// and there are several ranks, rank 0 writes a line into it and then waits
// until it is killed.

#include <mpi.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/environment.h"
#include "collective/mpi/mpi_library.h"

namespace {

using Text = std::array<char, 256>;

std::string NetworkNamespace() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/ns/net", error).string();
}

// Returns the texts of all ranks at rank 0.
std::vector<std::string> Gathered(const std::string& text, int size) {
  Text own = {};
  text.copy(own.data(), own.size() - 1);
  std::vector<Text> all(static_cast<size_t>(size));
  MPI_Gather(own.data(), own.size(), MPI_CHAR, all.data(), own.size(), MPI_CHAR,
             0, MPI_COMM_WORLD);
  std::vector<std::string> texts;
  for (const Text& one : all) texts.emplace_back(one.data());
  return texts;
}

int Train(const std::string& report, const std::string& pipe) {
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  Text host = {};
  gethostname(host.data(), host.size() - 1);
  const std::vector<std::string> hosts = Gathered(host.data(), size);
  const std::vector<std::string> networks = Gathered(NetworkNamespace(), size);
  if (rank != 0) return 0;
  if (size > 1 && std::filesystem::exists(pipe)) {
    std::ofstream(pipe) << "here" << std::endl;
    pause();
  }
  const nlohmann::json json = {{"images_per_second", 100 + 90 * (size - 1)},
                               {"hosts", hosts},
                               {"networks", networks},
                               {"threads", hvdlite::base::ProcessEnvironment()
                                               .get("OMP_NUM_THREADS")
                                               .value_or("")}};
  return std::ofstream(report) << json << std::endl ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: mpi_trainer REPORT PIPE\n";
    return 2;
  }
  MPI_Init(&argc, &argv);
  const int code = Train(argv[1], argv[2]);
  hvdlite::collective::FinalizeMpi();
  return code;
}
