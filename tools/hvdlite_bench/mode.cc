#include "tools/hvdlite_bench/mode.h"

#include <iostream>

#include "tools/hvdlite_bench/machine.h"
#include "tools/hvdlite_bench/results_json.h"
#include "tools/hvdlite_bench/results_table.h"

namespace hvdlite::tools {

Results StartResults(const Run& run, const MpiWorld& world) {
  Results results;
  results.mode = run.mode;
  results.ranks = world.size();
  results.rounds = run.rounds;
  results.warmup = run.warmup;
  results.machine = run.machine;
  results.machine["mpi"] = MpiLibrary();
  char host[MPI_MAX_PROCESSOR_NAME];
  int length = 0;
  MPI_Get_processor_name(host, &length);
  const bool bound = BoundToOneCoreEach(
      world.Gather(AllowedCpus()), world.Gather(std::string(host, length)));
  results.machine["ranks"] = bound ? "bound to a core each" : "not bound";
  if (!bound && world.size() > 1) {
    results.notes.push_back(
        "The ranks are not bound to a core each: figures will scatter. Run "
        "mpirun --bind-to core, with as many cores as ranks.");
  }
  return results;
}

int Report(const Run& run, const Results& results, int rank) {
  if (rank == 0) {
    PrintTable(results, std::cout);
    std::cout << std::flush;
    if (!run.json.empty()) WriteJson(results, run.json);
  }
  return results.wrong() == 0 ? 0 : 1;
}

}  // namespace hvdlite::tools
