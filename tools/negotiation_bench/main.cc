// negotiation_bench: what submitting and negotiating cost per tensor, without
// LibTorch, MPI or a data plane.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <vector>

#include "tools/negotiation_bench/measurement.h"
#include "tools/support/flag_checks.h"

namespace hvdlite::negotiation_bench {
namespace {

int Main(int argc, char** argv) {
  Options options;
  bool json = false;
  CLI::App app(
      "Measures what submitting and negotiating cost per tensor: for the "
      "protocol alone, and for coordinators that submit in different ways.");
  app.add_option("--ranks", options.ranks, "Ranks, as threads")
      ->check(base::Positive())
      ->capture_default_str();
  app.add_option("--tensors", options.tensors, "Tensors per step")
      ->check(base::Positive())
      ->capture_default_str();
  app.add_option("--tensor-bytes", options.tensor_bytes,
                 "Bytes of each tensor, of float32")
      ->check(base::Positive())
      ->capture_default_str();
  app.add_option("--steps", options.steps, "Steps to measure")
      ->check(base::Positive())
      ->capture_default_str();
  app.add_flag("--json", json, "Print JSON");
  CLI11_PARSE(app, argc, argv);

  const std::vector<Result> results = {
      MeasureNegotiators(options),
      MeasureCoordinators(options, Submission::kOneByOne),
      MeasureCoordinators(options, Submission::kPrepared)};
  if (json) {
    nlohmann::json all = nlohmann::json::array();
    for (const Result& result : results) {
      all.push_back({{"name", result.name},
                     {"submit_ns", result.submit_ns},
                     {"finish_ns", result.finish_ns},
                     {"cpu_ns", result.cpu_ns}});
    }
    std::printf("%s\n", all.dump(2).c_str());
    return 0;
  }
  std::printf("%d ranks, %d tensors of %d bytes; ns per tensor\n",
              options.ranks, options.tensors, options.tensor_bytes);
  std::printf("%-20s %10s %10s %14s\n", "", "submit", "finish", "CPU per rank");
  for (const Result& result : results) {
    std::printf("%-20s %10.1f %10.1f %14.1f\n", result.name.c_str(),
                result.submit_ns, result.finish_ns, result.cpu_ns);
  }
  return 0;
}

}  // namespace
}  // namespace hvdlite::negotiation_bench

int main(int argc, char** argv) {
  return hvdlite::negotiation_bench::Main(argc, argv);
}
