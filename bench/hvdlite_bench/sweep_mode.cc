// sweep: allreduce of one array, from a few bytes to hundreds of megabytes.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/clock.h"
#include "base/descriptor.h"
#include "base/environment.h"
#include "bench/hvdlite_bench/data_plane.h"
#include "bench/hvdlite_bench/mode.h"
#include "bench/hvdlite_bench/mpi_world.h"
#include "bench/hvdlite_bench/workloads.h"
#include "collective/communicator.h"
#include "collective/fusion/fusion.h"
#include "collective/mpi/mpi_communicator.h"
#include "collective/shm/allreduce_table.h"
#include "support/flags.h"

namespace hvdlite::tools {
namespace {

using collective::Communicator;
using collective::DataType;
using collective::ReduceOp;

struct SweepFlags {
  SizeRange range;
  // The coordinator passes at most this much to the data plane at a time,
  // unless the data plane divides the bucket itself.
  int64_t chunk_bytes = 0;
  bool pack = false;  // through a buffer, like tensors
  // As in an application thread that waits for an operation.
  int64_t spin_us = 50;
  // A file with an AllreduceTable; empty: the built-in one.
  std::string table;
};

// A data plane of hvdlite to compare with MPI.
struct NamedCommunicator {
  std::string name;  // the implementation's name without "hvdlite_"
  // Collective, over all ranks of MPI_COMM_WORLD. After an error, which is the
  // same on all ranks, the data plane is skipped.
  std::function<absl::StatusOr<std::unique_ptr<collective::Communicator>>()>
      create;
};

// The data planes. Those with several algorithms choose by `table`.
std::vector<NamedCommunicator> Communicators(
    const collective::AllreduceTable& table) {
  return {
      {"mpi", [] { return collective::CreateMpiCommunicator(); }},
      {"shm", [table] { return CreateShm(table); }},
  };
}

// The amount of data per sample.
constexpr int64_t kSweepBytes = int64_t{16} << 20;
constexpr int kSweepRepeats = 200;

collective::AllreduceTable TableOf(const SweepFlags& flags) {
  if (flags.table.empty()) return collective::AllreduceTable::BuiltIn();
  const absl::StatusOr<std::string> text = base::ReadFile(flags.table);
  Check(text.status());
  const auto table = collective::AllreduceTable::Parse(*text);
  if (table.ok()) return *table;
  throw std::runtime_error(absl::StrCat("the table '", flags.table,
                                        "': ", table.status().message()));
}

// A method to reduce an array in place.
struct Way {
  std::string name;
  Role role;
  std::function<void(absl::Span<float>)> run;
  absl::Span<float> array;  // of the largest size
};

// Memory and communicators of all methods.
struct Resources {
  std::vector<std::pair<std::string, std::unique_ptr<collective::Communicator>>>
      communicators;
  collective::FusionBuffer array;                       // the data
  std::vector<collective::TensorMemory> shared_arrays;  // the data again
  collective::FusionBuffer buffer;  // MPI's copy of all data
  collective::FusionBuffer chunk;   // hvdlite's fusion buffer
  base::SteadyClock clock;
};

std::vector<Way> WaysInPlace(const SweepFlags& flags, const MpiWorld& world,
                             Resources& resources) {
  const absl::Span<float> array = FloatsOf(resources.array.bytes());
  std::vector<Way> ways;
  for (auto& [name, owned] : resources.communicators) {
    collective::Communicator* const communicator = owned.get();
    // A data plane that divides the data itself gets all at once.
    const bool cuts = communicator->shares_memory();
    const auto run = [&flags, communicator, cuts](absl::Span<float> data) {
      const size_t at_once =
          cuts ? data.size() * sizeof(float) : flags.chunk_bytes;
      for (absl::Span<std::byte> rest = BytesOf(data); !rest.empty();) {
        const absl::Span<std::byte> chunk = rest.subspan(0, at_once);
        Check(
            communicator->Allreduce(chunk, DataType::kFloat32, ReduceOp::kSum));
        rest.remove_prefix(chunk.size());
      }
    };
    ways.push_back({"hvdlite_" + name, Role::kHvdlite, run, array});
    if (!cuts) continue;
    auto shared = communicator->AllocateTensors(flags.range.max_bytes);
    Check(shared.status());
    ways.push_back({"hvdlite_" + name + "_in_place", Role::kHvdlite, run,
                    FloatsOf(shared->bytes)});
    resources.shared_arrays.push_back(*std::move(shared));
  }
  const MPI_Comm mpi = world.communicator();
  ways.push_back({"mpi_flat", Role::kMpi,
                  [mpi](absl::Span<float> data) { MpiAllreduce(data, mpi); },
                  array});
  ways.push_back({"mpi_1_mb", Role::kMpi,
                  [mpi](absl::Span<float> data) {
                    MpiAllreduceInChunks(data, kMpiChunkElements, mpi);
                  },
                  array});
  return ways;
}

std::vector<Way> WaysThroughCopies(const MpiWorld& world,
                                   Resources& resources) {
  const absl::Span<float> array = FloatsOf(resources.array.bytes());
  std::vector<Way> ways;
  for (auto& [name, communicator] : resources.communicators) {
    ways.push_back({"hvdlite_" + name, Role::kHvdlite,
                    [&resources, communicator = communicator.get()](
                        absl::Span<float> data) {
                      const collective::FusedTensor tensor = {BytesOf(data),
                                                              BytesOf(data)};
                      Check(collective::FusedAllreduce(
                          {*communicator, resources.chunk, resources.clock}, {},
                          absl::MakeConstSpan(&tensor, 1), {}));
                    },
                    array});
  }
  const MPI_Comm mpi = world.communicator();
  const absl::Span<float> buffer = FloatsOf(resources.buffer.bytes());
  const auto packed = [mpi](absl::Span<float> buffer) {
    return [mpi, buffer](absl::Span<float> data) {
      MpiAllreducePacked({data}, buffer, mpi);
    };
  };
  ways.push_back({"mpi_flat", Role::kMpi, packed(buffer), array});
  ways.push_back({"mpi_1_mb", Role::kMpi,
                  packed(buffer.subspan(0, kMpiChunkElements)), array});
  return ways;
}

// Fills in the cases and notes of `results`, with one case per power of two.
//
// Without `pack`, the array is reduced in place: by each communicator of
// hvdlite (also in memory that it has allocated, if that makes a difference),
// by one MPI_Allreduce, and by MPI in chunks of 1 MB. With `pack` the array is
// a tensor: FusedAllreduce against MPI with copies. Every sample begins with an
// untimed run whose result is checked.
//
// Collective. Throws std::runtime_error.
void Sweep(const SweepFlags& flags, const Run& run, const MpiWorld& world,
           Results& results) {
  Resources resources = {
      {},
      collective::FusionBuffer(flags.range.max_bytes),
      {},
      collective::FusionBuffer(flags.pack ? flags.range.max_bytes : 0),
      collective::FusionBuffer(flags.chunk_bytes),
      {}};
  if (!flags.table.empty()) {
    results.notes.push_back("algorithms from " + flags.table);
  }
  for (const NamedCommunicator& named : Communicators(TableOf(flags))) {
    auto communicator = named.create();
    if (communicator.ok()) {
      (*communicator)->SetSpin(absl::Microseconds(flags.spin_us));
      resources.communicators.emplace_back(named.name,
                                           *std::move(communicator));
    } else {
      results.notes.push_back("hvdlite_" + named.name + " skipped: " +
                              std::string(communicator.status().message()));
    }
  }
  // Programs use the last one that can be created.
  if (!resources.communicators.empty()) {
    results.row_implementation =
        "hvdlite_" + resources.communicators.back().first;
  }
  const std::vector<Way> ways = flags.pack
                                    ? WaysThroughCopies(world, resources)
                                    : WaysInPlace(flags, world, resources);
  const TestValues values(world.rank(), world.size());
  std::vector<Plan> plans;
  for (const int64_t bytes : flags.range.Sizes()) {
    Plan plan;
    plan.result.name = std::to_string(bytes);
    plan.result.description = flags.pack ? "bytes in one tensor, with copies"
                                         : "bytes in one array, in place";
    plan.result.elements = {bytes / static_cast<int64_t>(sizeof(float))};
    plan.result.repeats = RepeatsFor(bytes, kSweepBytes, kSweepRepeats);
    for (const Way& way : ways) {
      plan.Add(way.name, way.role,
               [&way, &values, &world, repeats = plan.result.repeats,
                data = way.array.subspan(0, bytes / sizeof(float))] {
                 return MeasureSum(way.run, data, repeats, values,
                                   world.communicator());
               });
    }
    plans.push_back(std::move(plan));
  }
  results.cases = Measure(run, world, std::move(plans));
}

}  // namespace

Mode SweepMode() {
  return {
      "sweep",
      "Allreduce of one array by size: hvdlite's data planes alone, compared "
      "with MPI_Allreduce",
      [](CLI::App& command) {
        auto flags = std::make_shared<SweepFlags>();
        AddSizeRange(command, flags->range, "4", "256M");
        AddSize(command, "--chunk-bytes", flags->chunk_bytes, "4M",
                "Bytes that hvdlite's data plane gets at a time, unless it "
                "divides the data itself; the default is that of "
                "Config::chunk_bytes");
        command.add_flag("--pack", flags->pack,
                         "Copy through a buffer, as for tensors: "
                         "FusedAllreduce, compared with MPI with copies "
                         "before and after");
        support::AddNotNegative(
            command, "--spin-us", flags->spin_us,
            "Microseconds that hvdlite polls for a peer before it sleeps; the "
            "default is that of a thread that waits for an operation");
        // CLI11 2.4 ignores a variable with the name of a missing file.
        flags->table = base::ProcessEnvironment()
                           .get("HVDLITE_ALLREDUCE_TABLE")
                           .value_or("");
        command
            .add_option("--table", flags->table,
                        "File with a table of algorithms; default: that of "
                        "HVDLITE_ALLREDUCE_TABLE")
            ->check(CLI::ExistingFile);
        return [flags](const Run& run) {
          // Both throw before MPI starts.
          (void)flags->range.Sizes();
          (void)TableOf(*flags);
          const MpiWorld world(run.argc, run.argv, MPI_THREAD_SERIALIZED);
          Results results = StartResults(run, world);
          Sweep(*flags, run, world, results);
          return Report(run, results, world.rank());
        };
      }};
}

}  // namespace hvdlite::tools
