#include "bench/hvdlite_bench/report.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "support/statistics.h"
#include "support/text_table.h"

namespace hvdlite::tools {
namespace {

constexpr Distance kReported[] = {Distance::kNear, Distance::kFar,
                                  Distance::kUnknown};

template <typename... Values>
void Print(std::ostream& out, const absl::FormatSpec<Values...>& format,
           const Values&... values) {
  out << absl::StrFormat(format, values...);
}

// In a sweep, a case is the size of an array that is reduced whole.
bool IsBySize(const Results& results) { return results.mode == "sweep"; }

// A single rank sends nothing.
bool HasBandwidth(const Results& results) {
  return IsBySize(results) && results.ranks > 1;
}

// Bandwidth in GB/s: bytes of the buffer per time, and bytes on each rank's
// links.
std::vector<std::string> Bandwidths(const Results& results, const Case& a_case,
                                    const std::vector<double>& samples) {
  if (!HasBandwidth(results)) return {};
  if (samples.empty()) return {"-", "-"};
  const double algorithm =
      static_cast<double>(a_case.bytes()) / support::Median(samples) / 1000;
  return {
      absl::StrFormat("%.2f", algorithm),
      absl::StrFormat("%.2f", algorithm * AllreduceBusFactor(results.ranks))};
}

bool HasMpi(const Results& results) {
  for (const Case& a_case : results.cases) {
    for (const Implementation& implementation : a_case.implementations) {
      if (implementation.role == Role::kMpi &&
          !implementation.samples.empty()) {
        return true;
      }
    }
  }
  return false;
}

// The remark at the end of a row: "", "far", "near, 7 of 10 rounds".
std::string Remark(const Case& a_case, Distance distance) {
  const auto all = static_cast<int64_t>(a_case.before_ns.size());
  const int64_t rounds = CountRounds(a_case, distance);
  std::string remark = distance == Distance::kFar ? "far" : "";
  if (rounds < all) {
    absl::StrAppend(&remark, remark.empty() ? "" : ", ", rounds, " of ", all,
                    " rounds");
  }
  return remark;
}

// The title of the column with which hvdlite is compared: the only baseline, or
// the best.
std::string TitleOfOthers(const Results& results) {
  std::set<std::string> names;
  for (const Case& a_case : results.cases) {
    for (const Implementation& implementation : a_case.implementations) {
      if (implementation.role == Role::kMpi) names.insert(implementation.name);
    }
  }
  return names.size() == 1 ? *names.begin() : "best_mpi";
}

bool HasRow(const Results& results, const Implementation& implementation) {
  if (implementation.samples.empty()) return false;
  return results.row_implementation.empty() ||
         implementation.name == results.row_implementation;
}

// Prints the rows of a comparison with MPI.
void PrintComparison(const Results& results, std::ostream& out) {
  const std::string unit = "_" + results.cases[0].unit;
  std::vector<std::string> titles = {IsBySize(results) ? "bytes" : "case"};
  if (results.row_implementation.empty()) titles.push_back("implementation");
  titles.insert(titles.end(), {"hvdlite" + unit, TitleOfOthers(results) + unit,
                               "ratio [95 % interval]"});
  if (HasBandwidth(results)) {
    titles.insert(titles.end(), {"algbw_GB/s", "busbw_GB/s"});
  }
  titles.emplace_back();
  std::vector<std::vector<std::string>> rows;
  for (const Case& a_case : results.cases) {
    const Distance distance = CommonDistance(a_case);
    for (const Implementation& implementation : a_case.implementations) {
      if (implementation.role != Role::kHvdlite) continue;
      if (!HasRow(results, implementation)) continue;
      const std::vector<double> samples =
          SamplesAt(a_case, implementation, distance);
      std::vector<std::string> row = {a_case.name};
      if (results.row_implementation.empty())
        row.push_back(implementation.name);
      row.insert(
          row.end(),
          {TimeText(samples), TimeText(BestMpiAt(a_case, distance)),
           RatioText(RatiosToBestMpi(a_case, implementation, distance))});
      absl::c_move(Bandwidths(results, a_case, samples),
                   std::back_inserter(row));
      row.push_back(Remark(a_case, distance));
      rows.push_back(std::move(row));
    }
  }
  out << support::TextTable(titles, rows, {.titles_are_comments = true});
}

// Prints rows of times without a comparison.
void PrintTimes(const Results& results, std::ostream& out) {
  std::vector<std::vector<std::string>> rows;
  for (const Case& a_case : results.cases) {
    const Distance distance = CommonDistance(a_case);
    for (const Implementation& implementation : a_case.implementations) {
      const std::vector<double> samples =
          SamplesAt(a_case, implementation, distance);
      if (!HasRow(results, implementation) || samples.empty()) continue;
      const support::Summary summary = support::Summarise(samples);
      rows.push_back({a_case.name, implementation.name,
                      absl::StrFormat("%.2f", summary.median),
                      absl::StrFormat("%.2f", summary.min),
                      absl::StrFormat("%.2f", summary.max), a_case.unit,
                      Remark(a_case, distance)});
    }
  }
  out << support::TextTable(
      {"case", "implementation", "median", "min", "max", "unit", ""}, rows,
      {.titles_are_comments = true});
}

// Prints one line for each reason, even if it concerns several cases.
void PrintSkipped(const Results& results, std::ostream& out) {
  std::set<std::string> told;
  for (const Case& a_case : results.cases) {
    for (const Implementation& implementation : a_case.implementations) {
      if (implementation.skipped.empty()) continue;
      const std::string line = absl::StrCat(
          implementation.name, " skipped: ", implementation.skipped);
      if (told.insert(line).second) out << "# " << line << "\n";
    }
  }
}

// Counts the rounds that rows do not show, because of another distance.
void PrintLeftOut(const Results& results, std::ostream& out) {
  int64_t all = 0;
  int64_t far = 0;
  int64_t moved = 0;
  for (const Case& a_case : results.cases) {
    all += static_cast<int64_t>(a_case.before_ns.size());
    far += CountRounds(a_case, Distance::kFar);
    moved += CountRounds(a_case, Distance::kMoved);
  }
  if (far > 0) {
    Print(out,
          "# cores far from each other in %d of %d rounds, summed over cases; "
          "--details shows near and far\n",
          far, all);
  }
  if (moved > 0) {
    Print(out, "# %d of %d rounds dropped: the cores' distance changed\n",
          moved, all);
  }
}

std::vector<std::string> TimesRow(const Results& results, const Case& a_case,
                                  const Implementation& implementation,
                                  const std::vector<double>& samples) {
  const support::Summary summary = support::Summarise(samples);
  std::vector<std::string> row = {implementation.name};
  for (const double value : {summary.median, summary.min, summary.max}) {
    row.push_back(absl::StrFormat("%.2f", value));
  }
  absl::c_move(Bandwidths(results, a_case, samples), std::back_inserter(row));
  return row;
}

std::vector<std::string> RatiosRow(const Implementation& implementation,
                                   const std::vector<double>& ratios) {
  const support::Summary summary = support::Summarise(ratios);
  return {implementation.name, RatioText(ratios),
          ratios.size() == 1
              ? RatioText(ratios)
              : absl::StrFormat("%.3f [%.3f, %.3f]", summary.mean, summary.low,
                                summary.high),
          absl::StrFormat("%.3f", summary.min),
          absl::StrFormat("%.3f", summary.max)};
}

// Prints the rounds of `a_case` with this distance between the cores.
void PrintRounds(const Results& results, const Case& a_case, Distance distance,
                 std::ostream& out) {
  std::vector<std::vector<std::string>> times;
  std::vector<std::vector<std::string>> ratios;
  for (const Implementation& implementation : a_case.implementations) {
    const std::vector<double> samples =
        SamplesAt(a_case, implementation, distance);
    if (samples.empty()) continue;
    times.push_back(TimesRow(results, a_case, implementation, samples));
    if (implementation.role != Role::kHvdlite) continue;
    const std::vector<double> to_best =
        RatiosToBestMpi(a_case, implementation, distance);
    if (!to_best.empty()) ratios.push_back(RatiosRow(implementation, to_best));
  }
  std::vector<std::string> titles = {
      "implementation", absl::StrCat("median_", a_case.unit), "min", "max"};
  if (HasBandwidth(results)) {
    titles.insert(titles.end(), {"algbw_GB/s", "busbw_GB/s"});
  }
  out << support::TextTable(titles, times);
  if (ratios.empty()) return;
  out << "\n"
      << support::TextTable(
             {"ratio to the best MPI by round", "median [95 % interval]",
              "mean [95 % interval]", "min", "max"},
             ratios);
}

void PrintCase(const Results& results, const Case& a_case, std::ostream& out) {
  out << "\n" << a_case.name << ": " << a_case.description;
  if (a_case.repeats > 1) out << "; mean of " << a_case.repeats;
  out << "\n";
  for (const Implementation& implementation : a_case.implementations) {
    if (implementation.skipped.empty()) continue;
    out << support::Wrapped(implementation.skipped,
                            implementation.name + " skipped: ");
  }
  for (const Distance distance : kReported) {
    const int64_t rounds = CountRounds(a_case, distance);
    if (rounds == 0) continue;
    if (distance != Distance::kUnknown) {
      Print(out, "Cores %s, %s:\n", NameOf(distance),
            support::Counted(rounds, "round"));
    }
    PrintRounds(results, a_case, distance, out);
  }
  const int64_t moved = CountRounds(a_case, Distance::kMoved);
  if (moved > 0) {
    Print(out, "%s dropped: the cores' distance changed\n",
          support::Counted(moved, "round"));
  }
}

}  // namespace

std::string MachineLine(const Results& results) {
  std::vector<std::string> parts;
  for (const char* name : {"processor", "cores", "mpi", "commit"}) {
    const auto found = results.machine.find(name);
    if (found == results.machine.end()) continue;
    std::string value = found->second;
    // "2 cores with 4 hardware threads, 1 socket, ..."
    if (found->first == "cores") value = value.substr(0, value.find(" with "));
    if (found->first == "commit") value = "commit " + value;
    parts.push_back(std::move(value));
  }
  return absl::StrJoin(parts, ", ");
}

void PrintHead(const Results& results, std::ostream& out) {
  Print(out, "# hvdlite_bench %s: %s, %s after %d for warm-up\n", results.mode,
        support::Counted(results.ranks, "rank"),
        support::Counted(results.rounds, "interleaved round"), results.warmup);
  out << "# " << MachineLine(results) << "\n";
  for (const std::string& note : results.notes) out << "# " << note << "\n";
}

void PrintWrong(const Results& results, std::ostream& out) {
  if (results.wrong() == 0) return;
  out << "# WRONG RESULTS: " << results.wrong()
      << " elements differ from the expected sum\n";
}

void PrintRows(const Results& results, std::ostream& out) {
  PrintHead(results, out);
  PrintSkipped(results, out);
  PrintLeftOut(results, out);
  if (!results.row_implementation.empty()) {
    out << "# hvdlite is " << results.row_implementation
        << " here; --details shows all implementations\n";
  }
  if (HasMpi(results)) {
    PrintComparison(results, out);
  } else {
    PrintTimes(results, out);
  }
  PrintWrong(results, out);
}

void PrintDetails(const Results& results, std::ostream& out) {
  for (const auto& [name, value] : results.machine) {
    out << name << ": " << value << "\n";
  }
  for (const Case& a_case : results.cases) PrintCase(results, a_case, out);
  out << "\n";
}

std::string TimeText(const std::vector<double>& samples) {
  if (samples.empty()) return "-";
  return absl::StrFormat("%.2f", support::Median(samples));
}

std::string RatioText(const std::vector<double>& ratios) {
  if (ratios.empty()) return "-";
  const MedianRatio ratio = MedianOf(ratios);
  if (ratios.size() == 1) return absl::StrFormat("%.3f [-]", ratio.median);
  return absl::StrFormat("%.3f [%.3f, %.3f]", ratio.median, ratio.interval.low,
                         ratio.interval.high);
}

}  // namespace hvdlite::tools
