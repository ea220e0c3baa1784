// Runs programs in a shell, as a user does.
#pragma once

#include <stdio.h>
#include <sys/wait.h>

#include <array>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

namespace hvdlite {

inline const std::string kMpirun = HVDLITE_TEST_MPIRUN;

// The command that runs `first` as rank 0 of two ranks, and `second` as rank 1.
// It does not use mpirun's ":", because the Open MPI 5.0.7 of Debian 13 crashes
// on it.
inline std::string OnTwoRanks(const std::string& first,
                              const std::string& second) {
  return kMpirun +
         " 2 sh -c '[ ${OMPI_COMM_WORLD_RANK:-$PMI_RANK} = 0 ] && exec " +
         first + "; exec " + second + "'";
}

struct Finished {
  int exit_code = -1;
  std::string output;  // standard output and error together
};

// Runs a shell command until it ends.
inline Finished RunCommand(const std::string& command) {
  Finished finished;
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return finished;
  std::array<char, 4096> buffer;
  while (const size_t bytes = fread(buffer.data(), 1, buffer.size(), pipe)) {
    finished.output.append(buffer.data(), bytes);
  }
  const int status = pclose(pipe);
  if (WIFEXITED(status)) finished.exit_code = WEXITSTATUS(status);
  return finished;
}

// Runs shell commands until they end, three at a time: while one starts or
// ends, others compute.
inline std::vector<Finished> RunCommands(
    const std::vector<std::string>& commands) {
  std::vector<Finished> finished(commands.size());
  std::atomic<size_t> next = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      for (size_t own = next++; own < commands.size(); own = next++) {
        finished[own] = RunCommand(commands[own]);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return finished;
}

inline int CountOccurrences(const std::string& text, const std::string& part) {
  int count = 0;
  for (size_t at = text.find(part); at != std::string::npos;
       at = text.find(part, at + part.size())) {
    ++count;
  }
  return count;
}

inline nlohmann::json ReadReport(const std::filesystem::path& file) {
  return nlohmann::json::parse(std::ifstream(file), nullptr,
                               /*allow_exceptions=*/false);
}

}  // namespace hvdlite
