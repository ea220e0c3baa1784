// What the checks of the world see and judge: MPI, shared memory, what messages
// travel over, links, clocks, versions.
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

// `launcher`: of CheckLauncher(); `settings`: of AgreeOnConfig();
// `max_thread_safety`: MPICH_MAX_THREAD_SAFETY, which Cray's MPI reads.
std::vector<Finding> JudgeMpi(
    const std::optional<MpiFacts>& mpi, int ranks, const absl::Status& launcher,
    const absl::Status& settings,
    const std::optional<std::string>& max_thread_safety = std::nullopt);

// `wanted`: by HVDLITE_SHARED_MEMORY; `shared`: of NodeMemory::Create().
Finding JudgeSharedMemory(const collective::Topology& topology, bool wanted,
                          const absl::Status& shared);

struct TransportFacts {
  std::string mpi_library;
  // Components that Open MPI kept: "pml" (messages), "btl", "mtl" (bytes).
  std::vector<std::string> pml;
  std::vector<std::string> btl;
  std::vector<std::string> mtl;
  int hosts = 1;
  std::vector<std::string> fast_devices;  // of UCX: InfiniBand and the like
};

// From names such as "mca_pml_ucx.so".
TransportFacts TransportsIn(absl::Span<const support::Library> loaded);
Finding JudgeTransports(const TransportFacts& facts);

// A network device that UCX can use.
struct UcxDevice {
  std::string transport;  // "tcp", "rc_mlx5"
  std::string device;     // "eth0", "mlx5_0:1"
  bool fast = false;      // a network device that is not reached over TCP
};

// nullopt where hvdlite was built without UCX. Empty where UCX finds none.
std::optional<std::vector<UcxDevice>> UcxDevices();

Finding JudgeUcx(const std::optional<std::vector<UcxDevice>>& devices,
                 int hosts);

// What one rank measured with each of the others (0 for itself): small messages
// and large ones, in both directions at once.
struct LinkFacts {
  std::vector<double> latency_us;
  std::vector<double> gb_per_second;  // each way
};

// Latency and bandwidth between every two ranks. By rank.
std::vector<Finding> JudgeLinks(const std::vector<LinkFacts>& of_rank,
                                absl::Span<const std::string> host_of_rank);

// In how many rounds every two ranks meet once: size - 1, or size if that is
// odd.
int TournamentRounds(int size);

// Whom `rank` meets in `round`, or -1: nobody. Pairs of a round are disjoint
// (the circle method of round-robin tournaments).
int PartnerInRound(int size, int rank, int round);

// The wall clocks of the hosts. `offset_ns[r]`: what to add to rank r's clock
// to get rank 0's.
std::vector<Finding> JudgeClocks(absl::Span<const int64_t> offset_ns,
                                 absl::Span<const std::string> host_of_rank);

// What a rank runs: "kernel", "MPI", "BLAS", "hvdlite", "C library",
// "processor" -> version.
using Versions = std::map<std::string, std::string>;

// Software that differs between hosts. By rank; what most ranks have is taken
// for right.
std::vector<Finding> JudgeVersions(const std::vector<Versions>& of_rank,
                                   absl::Span<const std::string> host_of_rank);

}  // namespace hvdlite::doctor
