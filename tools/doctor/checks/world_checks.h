// The checks of the world, with the facts that they judge: MPI, shared memory,
// transports, links, clocks, versions.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "support/libraries.h"
#include "tools/doctor/check.h"

namespace hvdlite::doctor {

// `launcher`: result of CheckLauncher(); `settings`: result of AgreeOnConfig();
// `max_thread_safety`: MPICH_MAX_THREAD_SAFETY, which Cray's MPI reads.
std::vector<Finding> JudgeMpi(
    const std::optional<MpiFacts>& mpi, int ranks, const absl::Status& launcher,
    const absl::Status& settings,
    const std::optional<std::string>& max_thread_safety = std::nullopt);

// `wanted`: whether HVDLITE_SHARED_MEMORY allows it; `shared`: result of
// NodeMemory::Create().
Finding JudgeSharedMemory(const collective::Topology& topology, bool wanted,
                          const absl::Status& shared);

struct TransportFacts {
  std::string mpi_library;
  // Components that Open MPI uses: "pml" (messages), "btl", "mtl" (bytes).
  std::vector<std::string> pml;
  std::vector<std::string> btl;
  std::vector<std::string> mtl;
  int hosts = 1;
  std::vector<std::string> fast_devices;  // that UCX finds, such as InfiniBand
};

// Reads the components from names such as "mca_pml_ucx.so".
TransportFacts TransportsIn(absl::Span<const support::Library> loaded);
Finding JudgeTransports(const TransportFacts& facts);

// A network device that UCX can use.
struct UcxDevice {
  std::string transport;  // "tcp", "rc_mlx5"
  std::string device;     // "eth0", "mlx5_0:1"
  bool fast = false;      // a network device that is not reached over TCP
};

// nullopt: hvdlite was built without UCX. Empty: UCX finds no device.
std::optional<std::vector<UcxDevice>> UcxDevices();

Finding JudgeUcx(const std::optional<std::vector<UcxDevice>>& devices,
                 int hosts);

// The measurements of one rank with each other rank (0 for itself): latency of
// small messages and bandwidth of large ones, in both directions at once.
struct LinkFacts {
  std::vector<double> latency_us;
  std::vector<double> gb_per_second;  // each way
};

// Judges latency and bandwidth between every two ranks. `of_rank` is by rank.
std::vector<Finding> JudgeLinks(const std::vector<LinkFacts>& of_rank,
                                absl::Span<const std::string> host_of_rank);

// The number of rounds in which every two ranks meet once: size - 1, or size if
// size is odd.
int TournamentRounds(int size);

// The partner of `rank` in `round`; -1: none. The pairs of a round are disjoint
// (circle method of round-robin tournaments).
int PartnerInRound(int size, int rank, int round);

// Compares the wall clocks of the hosts. `offset_ns[r]` plus rank r's clock is
// rank 0's clock.
std::vector<Finding> JudgeClocks(absl::Span<const int64_t> offset_ns,
                                 absl::Span<const std::string> host_of_rank);

// The versions of one rank; keys are "kernel", "MPI", "BLAS", "hvdlite",
// "C library", "processor".
using Versions = std::map<std::string, std::string>;

// Finds software that differs between hosts. The version of most ranks counts
// as correct. `of_rank` is by rank.
std::vector<Finding> JudgeVersions(const std::vector<Versions>& of_rank,
                                   absl::Span<const std::string> host_of_rank);

}  // namespace hvdlite::doctor
