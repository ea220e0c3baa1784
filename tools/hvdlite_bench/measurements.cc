#include "tools/hvdlite_bench/measurements.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace hvdlite::tools {
namespace {

void PrintSpread(const char* label, const Spread& spread, const char* unit,
                 std::ostream& out) {
  char line[160];
  std::snprintf(line, sizeof(line),
                "  %-24s median %12.2f   min %12.2f   max %12.2f %s\n", label,
                spread.median, spread.min, spread.max, unit);
  out << line;
}

nlohmann::json ToJson(const Spread& spread) {
  return {{"median", spread.median}, {"min", spread.min}, {"max", spread.max}};
}

double RatioOfMedians(const Comparison& comparison) {
  return SpreadOf(comparison.hvdlite_us).median /
         SpreadOf(comparison.mpi_us).median;
}

}  // namespace

Spread SpreadOf(std::vector<double> samples) {
  if (samples.empty()) throw std::invalid_argument("no samples");
  std::sort(samples.begin(), samples.end());
  const size_t middle = samples.size() / 2;
  const double median = samples.size() % 2 == 1
                            ? samples[middle]
                            : (samples[middle - 1] + samples[middle]) / 2;
  return {median, samples.front(), samples.back()};
}

std::vector<double> Comparison::Ratios() const {
  std::vector<double> ratios;
  for (size_t i = 0; i < hvdlite_us.size(); ++i) {
    ratios.push_back(hvdlite_us[i] / mpi_us[i]);
  }
  return ratios;
}

void PrintTable(const Measurements& measurements, std::ostream& out) {
  out << measurements.ranks << " ranks, " << measurements.rounds
      << " interleaved rounds after " << measurements.warmup
      << " for warming up; " << measurements.mpi_library << "\n"
      << "MPI is initialised with MPI_THREAD_MULTIPLE, because this program "
         "calls it beside hvdlite; both sides pay for its locks.\n"
      << "A round's time is that of its slowest rank.\n";
  if (!measurements.ping_pong_ns.empty()) {
    out << "\n1-byte MPI ping-pong between ranks 0 and 1, one way\n";
    PrintSpread("", SpreadOf(measurements.ping_pong_ns), "ns", out);
  }
  for (const Comparison& comparison : measurements.comparisons) {
    out << "\n"
        << comparison.name << ": " << comparison.description << " ("
        << comparison.tensors << " tensors, " << comparison.bytes
        << " bytes; mean of " << comparison.repeats << " a round)\n";
    PrintSpread("hvdlite", SpreadOf(comparison.hvdlite_us), "us", out);
    PrintSpread("MPI_Allreduce, flat", SpreadOf(comparison.mpi_us), "us", out);
    PrintSpread("hvdlite / MPI by round", SpreadOf(comparison.Ratios()), "",
                out);
    char line[80];
    std::snprintf(line, sizeof(line), "  %-24s %19.2f\n", "ratio of medians",
                  RatioOfMedians(comparison));
    out << line;
  }
}

void WriteJson(const Measurements& measurements, const std::string& path) {
  nlohmann::json json = {
      {"ranks", measurements.ranks},
      {"rounds", measurements.rounds},
      {"warmup", measurements.warmup},
      {"mpi_library", measurements.mpi_library},
      {"mpi_thread_level", "MPI_THREAD_MULTIPLE"},
      {"ping_pong_ns", {{"samples", measurements.ping_pong_ns}}},
      {"workloads", nlohmann::json::array()},
  };
  if (!measurements.ping_pong_ns.empty()) {
    json["ping_pong_ns"].update(ToJson(SpreadOf(measurements.ping_pong_ns)));
  }
  for (const Comparison& comparison : measurements.comparisons) {
    json["workloads"].push_back({
        {"name", comparison.name},
        {"description", comparison.description},
        {"tensors", comparison.tensors},
        {"bytes", comparison.bytes},
        {"repeats", comparison.repeats},
        {"hvdlite_us", ToJson(SpreadOf(comparison.hvdlite_us))},
        {"mpi_us", ToJson(SpreadOf(comparison.mpi_us))},
        {"ratio_of_medians", RatioOfMedians(comparison)},
        {"ratio_by_round", ToJson(SpreadOf(comparison.Ratios()))},
        {"samples",
         {{"hvdlite_us", comparison.hvdlite_us},
          {"mpi_us", comparison.mpi_us}}},
    });
  }
  std::ofstream file(path);
  file << json.dump(2) << "\n";
  file.close();
  if (!file) throw std::runtime_error("cannot write " + path);
}

}  // namespace hvdlite::tools
