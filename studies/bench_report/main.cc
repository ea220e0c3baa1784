// bench_report: whether runs of the benchmarks are stable and fast enough.
//
//   bench_report --target targets.json runs/1 runs/2 runs/3 runs/4

#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include "studies/bench_report/program.h"
#include "support/interrupt_notice.h"

int main(int argc, char** argv) {
  hvdlite::support::TellIfInterrupted(
      "bench_report", "no file is written; the same command begins anew");
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  try {
    return hvdlite::bench_report::RunBenchReport(arguments, std::cout,
                                                 std::cerr);
  } catch (const std::exception& error) {
    std::cerr << "bench_report: " << error.what() << "\n";
    return 2;
  }
}
