// tune-table: measures the algorithms of AllreduceTable in the present world,
// and writes rows that choose the fastest ones.

#include <unistd.h>

#include <fstream>
#include <iostream>
#include <iterator>
#include <limits>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/environment.h"
#include "bench/hvdlite_bench/data_plane.h"
#include "bench/hvdlite_bench/mode.h"
#include "bench/hvdlite_bench/mpi_world.h"
#include "bench/hvdlite_bench/report.h"
#include "bench/hvdlite_bench/tuned_table.h"
#include "collective/communicator.h"
#include "collective/fusion/fusion.h"
#include "collective/shm/allreduce_table.h"
#include "support/core_use.h"
#include "support/input_error.h"
#include "support/machine.h"
#include "support/output_file.h"
#include "support/processor.h"
#include "support/statistics.h"
#include "support/text_table.h"

namespace hvdlite::tools {
namespace {

using collective::AllreduceTable;
using collective::Communicator;

// Data per sample: little, since there are many samples.
constexpr int64_t kTuneBytes = int64_t{4} << 20;
constexpr int kTuneRepeats = 50;
// As in an application thread that waits for an operation.
constexpr absl::Duration kSpin = absl::Microseconds(50);

struct TuneFlags {
  SizeRange range;
  std::string output;
};

// Returns when a process of this machine began, in the kernel's ticks. Returns
// an empty string if there is no such process, or if /proc hides it.
std::string StartOfProcess(const std::string& pid) {
  const auto process = support::ParseProcessStat(
      support::SystemFiles().Line("/proc/" + pid + "/stat").value_or(""));
  return process.has_value() ? absl::StrCat(process->start_ticks) : "";
}

// Collective. A rank's machine is the lowest rank whose process it sees. This
// distinguishes machines from hosts that are namespaces of one machine.
std::vector<RankPlace> PlacesOf(const MpiWorld& world) {
  const std::string own_pid = std::to_string(getpid());
  const std::vector<std::string> pids = world.Gather(own_pid);
  const std::vector<std::string> starts = world.Gather(StartOfProcess(own_pid));
  int machine = world.rank();
  for (int rank = world.rank(); rank >= 0; --rank) {
    if (!starts[rank].empty() && StartOfProcess(pids[rank]) == starts[rank]) {
      machine = rank;
    }
  }
  const std::vector<std::string> machines =
      world.Gather(std::to_string(machine));
  const std::vector<std::string> hosts = world.Gather(base::HostName());
  const std::vector<std::string> cores = world.Gather(OwnCores());
  std::vector<RankPlace> places(machines.size());
  for (size_t rank = 0; rank < places.size(); ++rank) {
    (void)absl::SimpleAtoi(machines[rank], &places[rank].machine);
    places[rank].host = hosts[rank];
    const auto list = support::ParseCpuList(cores[rank]);
    Check(list.status());
    places[rank].cores = *list;
  }
  return places;
}

// Collective. Returns the CPU time of each rank since `since`, `seconds` ago.
std::vector<RankWork> WorkOf(const support::CpuSeconds& since, double seconds,
                             const MpiWorld& world) {
  const support::CpuSeconds now = support::CpuSecondsNow();
  const std::vector<std::string> lines = world.Gather(absl::StrCat(
      seconds, " ", now.process - since.process, " ",
      now.machine - since.machine, " ", support::OnlineCpus().size()));
  std::vector<RankWork> work;
  for (const std::string& line : lines) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ');
    RankWork& rank = work.emplace_back();
    (void)absl::SimpleAtod(words[0], &rank.seconds);
    (void)absl::SimpleAtod(words[1], &rank.process);
    (void)absl::SimpleAtod(words[2], &rank.machine);
    (void)absl::SimpleAtoi(words[3], &rank.cpus);
  }
  return work;
}

// Adds the CPU use of other programs to the results and the table.
void NoteOthers(const std::string& others, Results& results) {
  if (others.empty()) return;
  results.machine["other programs"] = others;
  if (!absl::EndsWith(others, ": busy")) return;
  results.notes.push_back(absl::StrCat(
      "CAUTION: other programs used ", others,
      ". They disturb all candidates equally, but repeat this on a quiet "
      "machine before you rely on the rows (--overwrite)."));
}

// Returns the present text of the table file.
std::string TextOf(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Returns the file's text with `section` instead of its rows for this world.
// Throws a std::runtime_error that names the file.
std::string Merged(const std::string& path, const TableWorld& world,
                   const std::string& section) {
  auto text = WithSection(TextOf(path), world, section);
  if (!text.ok()) {
    throw std::runtime_error(absl::StrCat(
        path, " is not a table of algorithms: ", text.status().message()));
  }
  return *std::move(text);
}

// Creates a data plane that always uses `candidate`. Collective.
std::unique_ptr<Communicator> DataPlane(const TableWorld& world,
                                        const Candidate& candidate) {
  const auto table =
      AllreduceTable::Parse(TableRow(world, candidate, candidate.max_bytes));
  Check(table.status());
  auto communicator = CreateShm(*table);
  Check(communicator.status());
  (*communicator)->SetSpin(kSpin);
  return *std::move(communicator);
}

// Measures a case per size, whose implementations are the candidates.
// Collective.
std::vector<Case> MeasureCases(const std::vector<int64_t>& sizes,
                               const TableWorld& table_world,
                               const std::vector<Candidate>& candidates,
                               const Run& run, const MpiWorld& world) {
  std::vector<std::unique_ptr<Communicator>> communicators;
  for (const Candidate& candidate : candidates) {
    communicators.push_back(DataPlane(table_world, candidate));
  }
  collective::FusionBuffer array(sizes.back());
  const absl::Span<float> floats = FloatsOf(array.bytes());
  const TestValues values(world.rank(), world.size());
  std::vector<Plan> plans;
  for (const int64_t bytes : sizes) {
    Plan plan;
    plan.result.name = std::to_string(bytes);
    plan.result.description = "bytes in one array, in place";
    plan.result.elements = {bytes / static_cast<int64_t>(sizeof(float))};
    plan.result.repeats = RepeatsFor(bytes, kTuneBytes, kTuneRepeats);
    for (size_t i = 0; i < candidates.size(); ++i) {
      if (!candidates[i].Fits(bytes)) {
        plan.Skip(candidates[i].name(), Role::kHvdlite, "not for this size");
        continue;
      }
      const auto sum = [&communicator =
                            *communicators[i]](absl::Span<float> data) {
        Check(communicator.Allreduce(BytesOf(data),
                                     collective::DataType::kFloat32,
                                     collective::ReduceOp::kSum));
      };
      plan.Add(candidates[i].name(), Role::kHvdlite,
               [sum, &values, &world, repeats = plan.result.repeats,
                data = floats.subspan(0, bytes / sizeof(float))] {
                 return MeasureSum(sum, data, repeats, values,
                                   world.communicator());
               });
    }
    plans.push_back(std::move(plan));
  }
  return Measure(run, world, std::move(plans));
}

// Returns the times of all rounds. The distance of the cores does not matter:
// within a round it is the same for all candidates.
MeasuredSize TimesOf(const Case& a_case) {
  MeasuredSize size = {a_case.bytes(), {}};
  for (const Implementation& implementation : a_case.implementations) {
    size.times.emplace_back();
    for (const Sample& sample : implementation.samples) {
      size.times.back().push_back(sample.value);
    }
  }
  return size;
}

// Prints a row per size: the choice, its time relative to the built-in table's
// choice, and the candidates' medians.
void PrintChoices(const TableWorld& world,
                  const std::vector<Candidate>& candidates,
                  const std::vector<MeasuredSize>& sizes,
                  const std::vector<size_t>& chosen) {
  std::vector<std::string> titles = {"bytes", "choice", "built-in",
                                     "choice/built-in [95 % interval]"};
  for (const Candidate& candidate : candidates) {
    titles.push_back(candidate.name() + "_us");
  }
  std::vector<std::vector<std::string>> rows;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const int built_in = FindCandidate(
        candidates,
        AllreduceTable::BuiltIn().Choose(world.nodes, world.ranks_per_node,
                                         static_cast<size_t>(sizes[i].bytes)),
        sizes[i].bytes);
    std::vector<double> ratios;
    for (size_t round = 0;
         built_in >= 0 && round < sizes[i].times[built_in].size(); ++round) {
      ratios.push_back(sizes[i].times[chosen[i]][round] /
                       sizes[i].times[built_in][round]);
    }
    std::vector<std::string>& row = rows.emplace_back();
    row = {std::to_string(sizes[i].bytes), candidates[chosen[i]].name(),
           built_in < 0 ? "-" : candidates[built_in].name(), RatioText(ratios)};
    for (const std::vector<double>& times : sizes[i].times) {
      row.push_back(TimeText(times));
    }
  }
  std::cout << support::TextTable(titles, rows,
                                  {.keys = 1, .titles_are_comments = true});
}

std::string Header(const Results& results, const TableWorld& world,
                   const std::vector<RankPlace>& places) {
  const auto others = results.machine.find("other programs");
  return absl::StrCat(
      world.nodes == 1 ? "1 node" : absl::StrCat(world.nodes, " nodes"), " of ",
      world.ranks_per_node, " ranks: hvdlite_bench tune-table, ",
      absl::FormatTime("%Y-%m-%d", absl::Now(), absl::UTCTimeZone()), ", ",
      results.rounds, " rounds\n", DescribePlaces(places), "\n",
      MachineLine(results),
      others == results.machine.end()
          ? ""
          : absl::StrCat("\nother programs used ", others->second));
}

// Rank 0 chooses and writes. Returns the exit code.
int Write(const TuneFlags& flags, const TableWorld& world,
          const std::vector<Candidate>& candidates, const Results& results,
          const std::string& header) {
  std::vector<MeasuredSize> sizes;
  for (const Case& a_case : results.cases) sizes.push_back(TimesOf(a_case));
  const std::vector<size_t> chosen = ChooseByTimes(sizes);
  PrintHead(results, std::cout);
  PrintChoices(world, candidates, sizes, chosen);
  if (results.wrong() > 0) {
    PrintWrong(results, std::cout);
    std::cout << "# " << flags.output << " was not written" << std::endl;
    return results.exit_code();
  }
  const std::string section =
      TableSection(world, candidates, sizes, chosen, header);
  support::WriteFile(flags.output, Merged(flags.output, world, section));
  std::cout << "\n# " << flags.output << " now contains\n"
            << section << std::flush;
  return 0;
}

int RunTuneTable(const TuneFlags& flags, bool overwrite, const Run& run) {
  const std::vector<int64_t> sizes = flags.range.Sizes();
  const MpiWorld world(run.argc, run.argv, MPI_THREAD_SERIALIZED);
  const TableWorld table_world = WorldOf(NodeOfRank());
  if (world.rank() == 0) {  // report errors of the file early
    support::RequireOutputs({{"--json", run.json, /*may_exist=*/true},
                             {"--output", flags.output, /*may_exist=*/true}},
                            overwrite);
    (void)Merged(flags.output, table_world, "");
    if (!overwrite && HasSection(TextOf(flags.output), table_world)) {
      throw support::InputError(absl::StrCat(
          "cannot write '", flags.output,
          "' (--output): it has rows for this world already; --overwrite "
          "replaces them, or name another file"));
    }
  }
  const std::vector<Candidate> candidates = CandidatesFor(table_world);
  Results results = StartResults(run, world);
  const std::vector<RankPlace> places = PlacesOf(world);
  const support::CpuSeconds before = support::CpuSecondsNow();
  const double start = support::WallSeconds();
  results.cases = MeasureCases(sizes, table_world, candidates, run, world);
  const std::vector<RankWork> work =
      WorkOf(before, support::WallSeconds() - start, world);
  NoteOthers(DescribeOthers(places, work), results);
  int exit_code = 0;
  if (world.rank() == 0) {
    if (run.details) PrintDetails(results, std::cout);
    exit_code = Write(flags, table_world, candidates, results,
                      Header(results, table_world, places));
    if (!run.json.empty()) support::WriteFile(run.json, ToJson(results));
  }
  return exit_code;
}

}  // namespace

Mode TuneTableMode() {
  return {
      "tune-table",
      "Measures the allreduce algorithms in this world, and writes rows for it "
      "to a file for HVDLITE_ALLREDUCE_TABLE",
      [](CLI::App& command) {
        auto flags = std::make_shared<TuneFlags>();
        AddSizeRange(command, flags->range, "1K", "16M");
        command
            .add_option("-o,--output", flags->output,
                        "Table file; rows for other worlds in an existing "
                        "file are kept")
            ->required();
        return [flags, &command](const Run& run) {
          const bool overwrite = command.get_parent()->count("--overwrite") > 0;
          return RunTuneTable(*flags, overwrite, run);
        };
      }};
}

}  // namespace hvdlite::tools
