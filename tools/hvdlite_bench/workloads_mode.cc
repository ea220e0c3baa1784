#include <iostream>
#include <nlohmann/json.hpp>

#include "tools/hvdlite_bench/mode.h"
#include "tools/hvdlite_bench/workloads.h"

namespace hvdlite::tools {

Mode WorkloadsMode() {
  return {"workloads", "Prints the lists of gradients, as JSON; without mpirun",
          [](CLI::App&) {
            return [](const Run&) {
              nlohmann::ordered_json json;
              for (const Workload& workload : StandardWorkloads()) {
                json[workload.name] = workload.elements;
              }
              std::cout << json << "\n";
              return 0;
            };
          }};
}

}  // namespace hvdlite::tools
