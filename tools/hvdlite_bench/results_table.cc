#include "tools/hvdlite_bench/results_table.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

namespace hvdlite::tools {
namespace {

constexpr Distance kReported[] = {Distance::kNear, Distance::kFar,
                                  Distance::kUnknown};

template <typename... Values>
void Print(std::ostream& out, const char* format, Values... values) {
  char line[240];
  std::snprintf(line, sizeof(line), format, values...);
  out << line;
}

int64_t CountRounds(const Case& a_case, Distance distance) {
  int64_t count = 0;
  for (size_t round = 0; round < a_case.before_ns.size(); ++round) {
    if (a_case.distance(round) == distance) ++count;
  }
  return count;
}

// Gigabytes per second through each rank's buffer, and over its links.
void PrintBandwidth(const Results& results, const Case& a_case, double us,
                    std::ostream& out) {
  const double algorithm = static_cast<double>(a_case.bytes()) / us / 1000;
  Print(out, "  algbw %7.2f busbw %7.2f GB/s", algorithm,
        algorithm * AllreduceBusFactor(results.ranks));
}

void PrintContender(const Results& results, const Case& a_case,
                    const Contender& contender, Distance distance,
                    std::ostream& out) {
  const std::vector<double> samples = SamplesAt(a_case, contender, distance);
  if (samples.empty()) return;
  const Summary summary = Summarise(samples);
  Print(out, "  %-22s median %11.2f  min %11.2f  max %11.2f %s",
        contender.name.c_str(), summary.median, summary.min, summary.max,
        a_case.unit.c_str());
  if (results.mode == "sweep") {
    PrintBandwidth(results, a_case, summary.median, out);
  }
  out << "\n";
}

void PrintRatio(const Case& a_case, const Contender& contender,
                Distance distance, std::ostream& out) {
  if (contender.role != Role::kHvdlite) return;
  const std::vector<double> ratios =
      RatiosToBestMpi(a_case, contender, distance);
  if (ratios.empty()) return;
  const Summary summary = Summarise(ratios);
  Print(out,
        "  %-22s ratio to the best MPI by round: median %.3f  min %.3f  max "
        "%.3f  mean %.3f, 95 %% interval [%.3f, %.3f]\n",
        contender.name.c_str(), summary.median, summary.min, summary.max,
        summary.mean, summary.low, summary.high);
}

void PrintCase(const Results& results, const Case& a_case, std::ostream& out) {
  out << "\n" << a_case.name << ": " << a_case.description;
  if (a_case.repeats > 1) out << "; mean of " << a_case.repeats;
  out << "\n";
  for (const Contender& contender : a_case.contenders) {
    if (contender.skipped.empty()) continue;
    out << "  " << contender.name << " skipped: " << contender.skipped << "\n";
  }
  for (const Distance distance : kReported) {
    const int64_t rounds = CountRounds(a_case, distance);
    if (rounds == 0) continue;
    if (distance != Distance::kUnknown) {
      Print(out, " cores %s, %lld rounds\n", NameOf(distance),
            static_cast<long long>(rounds));
    }
    for (const Contender& contender : a_case.contenders) {
      PrintContender(results, a_case, contender, distance, out);
    }
    for (const Contender& contender : a_case.contenders) {
      PrintRatio(a_case, contender, distance, out);
    }
  }
  const int64_t moved = CountRounds(a_case, Distance::kMoved);
  if (moved > 0) {
    Print(out, " %lld rounds left out: the cores moved meanwhile\n",
          static_cast<long long>(moved));
  }
}

}  // namespace

void PrintTable(const Results& results, std::ostream& out) {
  out << "hvdlite_bench " << results.mode << ": " << results.ranks << " ranks, "
      << results.rounds << " interleaved rounds after " << results.warmup
      << " for warming up\n";
  for (const auto& [name, value] : results.machine) {
    out << "  " << name << ": " << value << "\n";
  }
  for (const std::string& note : results.notes) out << note << "\n";
  for (const Case& a_case : results.cases) PrintCase(results, a_case, out);
  if (results.wrong() > 0) {
    out << "\nWRONG RESULTS: " << results.wrong()
        << " elements differ from what was expected\n";
  }
}

}  // namespace hvdlite::tools
