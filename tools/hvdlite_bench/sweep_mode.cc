#include <memory>

#include "tools/hvdlite_bench/mode.h"
#include "tools/hvdlite_bench/sweep.h"
#include "tools/support/flag_checks.h"

namespace hvdlite::tools {

Mode SweepMode() {
  return {
      "sweep",
      "Allreduce of one array by size: hvdlite's data planes, without the rest "
      "of hvdlite, against MPI_Allreduce",
      [](CLI::App& command) {
        auto flags = std::make_shared<SweepFlags>();
        // Sizes are whole float32 elements.
        const CLI::Range sizes(int64_t{4}, int64_t{8} << 30);
        command
            .add_option("--min-bytes", flags->min_bytes,
                        "Smallest size; it is doubled up to the largest")
            ->check(sizes)
            ->capture_default_str();
        command.add_option("--max-bytes", flags->max_bytes, "Largest size")
            ->check(sizes)
            ->capture_default_str();
        command
            .add_option("--chunk-bytes", flags->chunk_bytes,
                        "What hvdlite's data plane gets at a time, unless it "
                        "cuts by itself; the default is Config::chunk_bytes'")
            ->check(sizes)
            ->capture_default_str();
        command.add_flag("--pack", flags->pack,
                         "Through a buffer, as tensors go: FusedAllreduce "
                         "against MPI with copies before and after");
        command
            .add_option("--spin-us", flags->spin_us,
                        "How long hvdlite looks again at once before it sleeps "
                        "for a peer; the default is what a thread does that "
                        "waits for an operation")
            ->check(base::NotNegative())
            ->capture_default_str();
        command
            .add_option("--table", flags->table,
                        "File with another table of algorithms, as "
                        "HVDLITE_ALLREDUCE_TABLE")
            ->check(CLI::ExistingFile);
        return [flags](const Run& run) {
          const MpiWorld world(run.argc, run.argv, MPI_THREAD_SERIALIZED);
          flags->rounds = run.rounds;
          flags->warmup = run.warmup;
          Results results = StartResults(run, world);
          Sweep(*flags, world, results);
          return Report(run, results, world.rank());
        };
      }};
}

}  // namespace hvdlite::tools
