// Runs hvdlite_doctor as users do, with problems made for this test.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "support/machine.h"
#include "support/process.h"
#include "support/processor.h"
#include "tests/testing/run_command.h"

namespace {

using hvdlite::Finished;
using hvdlite::kMpirun;
using hvdlite::RunCommand;
using nlohmann::json;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kDoctor = HVDLITE_DOCTOR;

// One run of hvdlite_doctor in the environment of `before` ("A=1 B=2"). Find()
// returns the first finding with a verdict, or an empty object.
class DoctorRun {
 public:
  DoctorRun(const std::string& before, const std::string& arguments,
            const std::string& after = "")
      : file_(::testing::TempDir() + "/doctor_" + std::to_string(getpid()) +
              ".json") {
    finished_ = RunCommand(before + " " + kDoctor + " --json " + file_ + " " +
                           arguments + " " + after);
    report_ = json::parse(std::ifstream(file_), nullptr, false);
    std::filesystem::remove(file_);
  }

  json Find(const std::string& verdict) const {
    if (report_.is_discarded()) return json::object();
    for (const json& finding : report_["findings"]) {
      if (finding["verdict"] == verdict) return finding;
    }
    return json::object();
  }
  // The texts of that finding.
  std::string Seen(const std::string& verdict) const {
    return Find(verdict).value("seen", "");
  }
  std::string Remedy(const std::string& verdict) const {
    return Find(verdict).value("remedy", "");
  }
  const Finished& finished() const { return finished_; }
  const json& report() const { return report_; }

 private:
  std::string file_;
  Finished finished_;
  json report_;
};

// Expects that the first finding with `verdict` has these parts of texts and
// that the exit code is 3.
void ExpectFinds(const DoctorRun& run, const std::string& verdict,
                 const std::string& seen, const std::string& remedy) {
  EXPECT_EQ(run.finished().exit_code, 3) << run.finished().output;
  EXPECT_THAT(run.Seen(verdict), HasSubstr(seen)) << run.finished().output;
  EXPECT_THAT(run.Remedy(verdict), HasSubstr(remedy));
}

TEST(HvdliteDoctorTest, FindsTheReferenceBlas) {
  for (const auto& entry : std::filesystem::directory_iterator("/usr/lib")) {
    const std::filesystem::path directory = entry.path() / "blas";
    if (!std::filesystem::exists(directory / "libblas.so.3")) continue;
    const DoctorRun run("LD_LIBRARY_PATH=" + directory.string(),
                        "--no-mpi --check blas");
    ExpectFinds(run, "problem", "the reference BLAS, in " + directory.string(),
                "unset LD_LIBRARY_PATH");
    return;
  }
  GTEST_SKIP() << "there is no reference BLAS";
}

TEST(HvdliteDoctorTest, FindsProblemsOfOneProcess) {
  const struct {
    const char* environment;
    const char* arguments;
    const char* verdict;
    const char* seen;
    const char* remedy;
  } kTroubles[] = {
      {"KMP_AFFINITY=compact",
       "--check variables --program " HVDLITE_ONE_RUNTIME, "warning",
       "KMP_AFFINITY=compact", "OMP_PROC_BIND=close"},
      {"OMP_NUM_THREADS=4096", "--check oversubscription", "problem",
       "4096 threads", "export OMP_NUM_THREADS="},
      {"LD_PRELOAD=/nonexistent/libjemalloc.so.2", "--check allocator",
       "problem", "/nonexistent/libjemalloc.so.2, but it was not found",
       "libjemalloc2"},
      {"", "--check openmp --program " HVDLITE_TWO_RUNTIMES, "problem",
       "has 2 OpenMP runtimes: ", "fake_omp/libomp.so.5"},
  };
  for (const auto& trouble : kTroubles) {
    SCOPED_TRACE(trouble.arguments);
    ExpectFinds(DoctorRun(trouble.environment,
                          absl::StrCat("--no-mpi ", trouble.arguments)),
                trouble.verdict, trouble.seen, trouble.remedy);
  }
}

TEST(HvdliteDoctorTest, WithoutProblemsTheExitCodeIsZero) {
  const DoctorRun one("",
                      "--no-mpi --check openmp "
                      "--program " HVDLITE_ONE_RUNTIME);
  EXPECT_EQ(one.finished().exit_code, 0) << one.finished().output;
  EXPECT_THAT(one.Seen("ok"), HasSubstr("fake_gomp/libgomp.so.1"));
  // Without --program there is only a note.
  const DoctorRun own("MALLOC_CONF=narenas:1", "--no-mpi --check variables");
  EXPECT_EQ(own.finished().exit_code, 0) << own.finished().output;
  EXPECT_THAT(own.Remedy("note"), HasSubstr("--program"));
}

TEST(HvdliteDoctorTest, FindsRanksThatCannotShareMemory) {
  if (kMpirun.empty()) GTEST_SKIP() << "built without MPI";
  const std::string own_users = "unshare --user --map-root-user ";
  if (RunCommand(own_users + "true").exit_code != 0) {
    GTEST_SKIP() << "no user namespaces here";
  }
  // MPI's UCX would not start with its default transports.
  const DoctorRun run(kMpirun + " 2 env UCX_TLS=self,tcp " + own_users,
                      "--check shared_memory");
  ExpectFinds(run, "warning", "Permission denied", "user namespace");
  const DoctorRun together(kMpirun + " 2", "--check shared_memory");
  EXPECT_EQ(together.Seen("ok"), "ranks of a host can share memory");
}

TEST(HvdliteDoctorTest, FindsACoreThatAnotherProcessUses) {
  const int cpu = hvdlite::support::AllowedCpus().back();
  const auto busy = hvdlite::support::StartProcess(
      {.command = {"taskset", "-c", std::to_string(cpu), "sh", "-c",
                   "while :; do :; done"},
       .environment = {"PATH=/usr/bin:/bin"},
       .signal_on_death = SIGKILL});
  ASSERT_TRUE(busy.ok()) << busy.status();
  const DoctorRun run("", "--no-mpi --check slow_core");
  kill(*busy, SIGKILL);
  hvdlite::support::WaitForExit(*busy);
  EXPECT_EQ(run.finished().exit_code, 3) << run.finished().output;
  std::string seen;
  for (const json& finding : run.report()["findings"]) {
    const std::string text = finding["seen"];
    if (text.starts_with("CPU " + std::to_string(cpu) + " of ") &&
        finding["verdict"] != "ok") {
      seen += text + " " + finding["remedy"].get<std::string>();
    }
  }
  // If several processes use the CPU, any of them may be named.
  EXPECT_THAT(seen, HasSubstr("a thread that computed all the time got"))
      << run.finished().output;
  double load = 0;
  if (seen.find("no visible process") != std::string::npos &&
      getloadavg(&load, 1) == 1 &&
      load > 3.0 * static_cast<double>(hvdlite::support::OnlineCpus().size())) {
    GTEST_SKIP() << "processes outside the container use this machine";
  }
  EXPECT_THAT(seen, AnyOf(HasSubstr("(pid "), HasSubstr("hypervisor")));
}

TEST(HvdliteDoctorTest, RunsWithoutALauncher) {
  const Finished run = RunCommand(kDoctor + " --skip-slow --no-mpi");
  EXPECT_THAT(run.exit_code, AnyOf(0, 3)) << run.output;
  EXPECT_THAT(run.output, HasSubstr("verdict  check"));
  EXPECT_THAT(run.output, HasSubstr("oversubscription"));
  EXPECT_THAT(run.output, Not(HasSubstr("memory_bandwidth")));
}

TEST(HvdliteDoctorTest, FileThatIsNoProgramIsAWrongFlag) {
  for (const char* program : {"/nonexistent", __FILE__}) {
    EXPECT_EQ(RunCommand(kDoctor + " --no-mpi --program " + program).exit_code,
              2)
        << program;
  }
}

TEST(HvdliteDoctorTest, ExistingFileIsReplacedOnlyWithOverwrite) {
  const std::string file = ::testing::TempDir() + "/doctor_earlier_" +
                           std::to_string(getpid()) + ".json";
  std::ofstream(file) << "earlier";
  const std::string command = kDoctor + " --check smt --json " + file;
  const Finished refused =
      RunCommand((kMpirun.empty() ? "" : kMpirun + " 2 ") + command);
  EXPECT_EQ(refused.exit_code, 2) << refused.output;
  EXPECT_THAT(refused.output, HasSubstr("--overwrite"));
  std::string text;
  std::ifstream(file) >> text;
  EXPECT_EQ(text, "earlier");
  RunCommand(command + " --no-mpi --overwrite");
  EXPECT_FALSE(json::parse(std::ifstream(file), nullptr, false).is_discarded());
  std::filesystem::remove(file);
}

TEST(HvdliteDoctorTest, WritesJsonToStandardOutput) {
  const Finished run =
      RunCommand(kDoctor + " --no-mpi --check smt --json - 2>/dev/null");
  const json report = json::parse(run.output, nullptr, false);
  ASSERT_FALSE(report.is_discarded()) << run.output;
  EXPECT_EQ(report["findings"][0]["check"], "smt");
}

TEST(HvdliteDoctorTest, OnlyOneRankPrints) {
  if (kMpirun.empty()) GTEST_SKIP() << "built without MPI";
  const DoctorRun run(kMpirun + " 3",
                      "--check mpi --check transports --check clocks "
                      "--check versions --check links");
  EXPECT_EQ(run.report()["ranks"], 3) << run.finished().output;
  EXPECT_THAT(run.finished().output, HasSubstr("3 ranks"));
  EXPECT_THAT(run.finished().output, HasSubstr("3 pairs"));
  EXPECT_THAT(run.finished().output, HasSubstr("the same on all ranks"));
  const size_t first = run.finished().output.find("verdict  check");
  EXPECT_EQ(run.finished().output.find("verdict  check", first + 1),
            std::string::npos);
}

TEST(HvdliteDoctorTest, FindsRanksThatStartAtTheSameCore) {
  if (kMpirun.empty()) GTEST_SKIP() << "built without MPI";
  if (hvdlite::support::AllowedCpus().size() < 2) {
    GTEST_SKIP() << "two ranks need two CPUs";
  }
  const std::string one_thread = "OMP_NUM_THREADS=1 OMP_PLACES=cores ";
  const DoctorRun bound(one_thread + "OMP_PROC_BIND=close " + kMpirun + " 2",
                        "--check oversubscription");
  ExpectFinds(bound, "warning", "2 threads in all to the same core",
              "hvdliterun");
  const DoctorRun free(one_thread + "OMP_PROC_BIND=false " + kMpirun + " 2",
                       "--check oversubscription");
  EXPECT_EQ(free.Seen("warning"), "") << free.finished().output;
  EXPECT_THAT(free.Seen("ok"), HasSubstr("2 ranks with 2 threads in all"));
}

TEST(HvdliteDoctorTest, RunsAsTheOnlyMpiRankWithoutALauncher) {
  if (kMpirun.empty()) GTEST_SKIP() << "built without MPI";
  const DoctorRun run(
      "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
      "--check mpi");
  EXPECT_EQ(run.finished().exit_code, 0) << run.finished().output;
  EXPECT_THAT(run.Seen("ok"), HasSubstr("1 rank"));
}

}  // namespace
