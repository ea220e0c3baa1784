#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hvdlite/hvdlite.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <string>

#include "base/environment.h"
#include "support/machine.h"
#include "tests/testing/fakes/sweep_directory.h"
#include "tests/torch_plugin/error_text.h"
#include "tools/scaling_sweep/run/program_report.h"

namespace hvdlite {
namespace {

using scaling_sweep::ReadProgramReport;
using scaling_sweep::SweepDirectory;
using ::testing::HasSubstr;

// Checks the report on rank 0, the only rank that writes it.
void ExpectSpeed(const std::string& file, int warmup_intervals, double speed,
                 int threads) {
  EXPECT_EQ(std::filesystem::exists(file), rank() == 0);
  if (rank() != 0) return;
  const auto report = ReadProgramReport(file, "images", warmup_intervals);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->items_per_second, speed);
  EXPECT_EQ(report->threads_per_rank, threads);
}

TEST(RunReportTest, ScalingSweepReadsItsSpeedAndThreads) {
  const SweepDirectory directory;
  const std::string file = directory / "report.json";
  write_run_report(file, {.items_per_second = 1e9 / 3, .items = "images"});
  ExpectSpeed(file, 0, 1e9 / 3, at::get_num_threads());
  // Another report replaces it.
  write_run_report(file, {.items_per_second = 100,
                          .items = "images",
                          .intervals = {1, 200, 400, 300},
                          .threads_per_rank = 7});
  ExpectSpeed(file, 1, 300, 7);
  const auto files = std::filesystem::directory_iterator(directory.path());
  EXPECT_EQ(std::distance(begin(files), end(files)), rank() == 0 ? 1 : 0);
}

TEST(RunReportTest, MachineHasHostAndVersions) {
  const SweepDirectory directory;
  write_run_report(directory / "r.json", {.items_per_second = 1});
  if (rank() != 0) return;
  const auto report = ReadProgramReport(directory / "r.json", "", 0);
  ASSERT_TRUE(report.ok()) << report.status();
  // The names and values are those of a trainer's report.
  std::map<std::string, std::string> machine = {{"host", base::HostName()}};
  for (const char* part : {"hvdlite", "LibTorch", "MPI", "UCX"}) {
    machine[part] = support::ValueOf(build_info(), part);
    EXPECT_NE(machine[part], "") << part;
  }
  EXPECT_EQ(report->machine, machine);
}

TEST(RunReportTest, InvalidValuesAreRejectedOnEveryRank) {
  const SweepDirectory directory;
  const auto error_of = [&](const RunReport& report) {
    return ErrorText([&] { write_run_report(directory / "r.json", report); });
  };
  EXPECT_THAT(error_of({}), HasSubstr("items_per_second must be above 0"));
  EXPECT_THAT(error_of({.items_per_second = NAN}), HasSubstr("is nan"));
  EXPECT_THAT(error_of({.items_per_second = 1, .intervals = {2, -1}}),
              HasSubstr("in intervals: 2, -1"));
  EXPECT_THAT(error_of({.items_per_second = 1, .items = "a\"b"}),
              HasSubstr("items 'a\"b' must consist of letters"));
  EXPECT_THAT(error_of({.items_per_second = 1, .threads_per_rank = -1}),
              HasSubstr("threads_per_rank is negative"));
  EXPECT_FALSE(std::filesystem::exists(directory / "r.json"));
}

TEST(RunReportTest, AFileThatCannotBeWrittenIsNamed) {
  const auto write = [] {
    write_run_report("/nowhere/r.json", {.items_per_second = 1});
  };
  if (rank() != 0) {
    EXPECT_NO_THROW(write());
    return;
  }
  EXPECT_THAT(ErrorText(write),
              HasSubstr("cannot write the run report '/nowhere/r.json': No "
                        "such file or directory"));
}

}  // namespace
}  // namespace hvdlite
