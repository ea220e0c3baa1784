// Runs train_synthetic as a user does, on one and two ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/testing/fakes/temporary_directory.h"
#include "tests/trainers/trainer_contract.h"

namespace hvdlite::trainers {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kTrain = kPrograms + "train_synthetic ";
const std::string kMlp =
    kTrain + "--model mlp --batch-size 4 --hidden 16 --num-warmup-batches 1 ";

TEST(TrainSyntheticTest, PrintsTheLinesOfTfCnnBenchmarks) {
  const TemporaryDirectory scratch;
  const std::string trace = scratch.path() / "trace.json";
  const Finished run =
      RunCommand("HVDLITE_TIMELINE=" + trace + " " +
                 OnRanks(2, kMlp + "--num-batches 20 --use-adasum --check"));
  ASSERT_EQ(run.exit_code, 0) << run.output;
  EXPECT_TRUE(std::filesystem::exists(trace));
  EXPECT_THAT(run.output, HasSubstr("Batch size:  8 global\n"));
  EXPECT_THAT(run.output, HasSubstr("\nStep\tImg/sec\ttotal_loss\n1\t"));
  for (const char* step : {"\n1", "\n10", "\n20"}) {
    EXPECT_THAT(run.output,
                ContainsRegex(std::string(step) +
                              "\timages/sec: [0-9]+\\.[0-9] \\+/- "
                              "[0-9]+\\.[0-9] \\(jitter = "
                              "[0-9]+\\.[0-9]\\)\t[0-9]+\\.[0-9]{3}\n"));
  }
  EXPECT_EQ(CountOccurrences(run.output, "jitter"), 3) << run.output;
  EXPECT_THAT(run.output,
              ContainsRegex("\n-{64}\ntotal images/sec: [0-9]+\\.[0-9]{2}\n"
                            "-{64}\nparameters of rank 0: .*\n"
                            "parameters of rank 1: .*\n$"));
}

// Tasks with special gradients: parameters that never get one, rows of
// embeddings, two networks, different games on each rank; and each way to
// combine gradients.
class EqualParametersTest : public ::testing::TestWithParam<const char*> {};

TEST_P(EqualParametersTest, ParametersAreEqualOnTwoRanks) {
  const Finished run = RunCommand(
      OnRanks(2, kTrain +
                     "--batch-size 2 --num-warmup-batches 0 --num-batches 3 "
                     "--check --model " +
                     GetParam()));
  ASSERT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, AllOf(HasSubstr("parameters of rank 0: "),
                                HasSubstr("parameters of rank 1: ")));
}

INSTANTIATE_TEST_SUITE_P(
    Small, EqualParametersTest,
    ::testing::Values("transformer --sequence-length 8 --clip-norm 0.5",
                      "neural_collaborative_filtering --fp16-allreduce",
                      "dcgan --width 8 --views --optimizer adam --lr 0.001",
                      "ball_game --sequence-length 8 --optimizer momentum"),
    [](const auto& info) {
      const std::string flags = info.param;
      return flags.substr(0, flags.find(' '));
    });

TEST(TrainSyntheticTest, ModelDoesNotChangeWithoutUpdates) {
  for (const std::string mode : {"forward-only", "gradients-only"}) {
    const Finished run = RunCommand(Alone(
        kMlp + "--" + mode + " --num-batches 2 --display-every 1 --lr 10"));
    ASSERT_EQ(run.exit_code, 0) << run.output;
    EXPECT_THAT(run.output, HasSubstr("Mode:        " + mode + "\n"));
    const size_t first = run.output.find(")\t");
    const size_t second = run.output.find(")\t", first + 1);
    ASSERT_NE(second, std::string::npos) << run.output;
    EXPECT_EQ(run.output.substr(first, 7), run.output.substr(second, 7));
  }
}

// Every field has the type of the published example, except for gpu: there is
// none.
void ExpectTheFieldsOfThePublishedExample(const nlohmann::json& report) {
  const nlohmann::json example = nlohmann::json::parse(R"({
    "arch": "", "batch_loss": [], "batch_size": 1, "cpu_cores": 1,
    "cuda": true, "data": "", "devices": 1, "epoch_loss": [], "gpu": null,
    "hostname": "", "jr_id": 0, "lr": 0.1, "metrics": {}, "name": "",
    "number": 1, "opt_level": "", "repeat": 1,
    "train": {"avg": 0.1, "count": 1, "max": 0.1, "min": 0.1, "sd": 0.1,
              "unit": ""},
    "train_item": {"avg": 0.1, "max": 0.1, "min": 0.1, "range": 0.1,
                   "unit": ""},
    "unique_id": "", "vcd": 0, "version": "", "workers": 4})");
  const auto expect_types_of = [](const nlohmann::json& fields,
                                  const nlohmann::json& in) {
    for (const auto& [name, value] : fields.items()) {
      ASSERT_TRUE(in.contains(name)) << name;
      const bool integers = value.is_number_integer();
      EXPECT_TRUE(integers ? in[name].is_number_integer()
                           : in[name].type() == value.type())
          << name << " is " << in[name];
    }
  };
  expect_types_of(example, report);
  expect_types_of(example["train"], report["train"]);
  expect_types_of(example["train_item"], report["train_item"]);
}

TEST(TrainSyntheticTest, ReportHoldsTheObservationsOfAllRanks) {
  const TemporaryDirectory scratch;
  const std::string measure =
      kTrain +
      "--model mlp --batch-size 4 --lr 0.1 --repeat 3 --number 2 --skip 1 "
      "--report " +
      scratch.path().string() + "/";
  const std::vector<Finished> runs =
      RunCommands({OnRanks(2, measure + "directory"),
                   Alone(measure + "alone.json --name convnet"),
                   Alone(measure + "bf16.json --bf16")});
  for (const Finished& run : runs) {
    ASSERT_EQ(run.exit_code, 0) << run.output;
    EXPECT_THAT(run.output, AllOf(HasSubstr("\n2\timages/sec: "),
                                  HasSubstr("\n3\timages/sec: ")));
    EXPECT_EQ(CountOccurrences(run.output, "jitter"), 2) << run.output;
  }
  const nlohmann::json reports = ReadReport(scratch / "directory/mlp.json");
  ASSERT_EQ(reports.size(), 1);
  const nlohmann::json& together = reports[0];
  EXPECT_EQ(together["completed"], true);
  EXPECT_EQ(together["batch_size"], 8);
  EXPECT_EQ(together["repeat"], 3);
  EXPECT_EQ(together["train"]["count"], 2);
  EXPECT_EQ(together["batch_loss"].size(), 6);
  ExpectTheFieldsOfThePublishedExample(together);

  const nlohmann::json alone = ReadReport(scratch / "alone.json")[0];
  EXPECT_EQ(alone["name"], "convnet");
  EXPECT_EQ(alone["arch"], "mlp");
  // Each rank has its own batches.
  EXPECT_EQ(alone["batch_loss"][0], together["batch_loss"][0]);
  EXPECT_NE(alone["batch_loss"][1], together["batch_loss"][1]);
  const nlohmann::json rounded = ReadReport(scratch / "bf16.json")[0];
  EXPECT_NE(rounded["batch_loss"][0], alone["batch_loss"][0]);
  EXPECT_NEAR(rounded["batch_loss"][0], alone["batch_loss"][0], 0.3);
}

TEST(TrainSyntheticTest, NonFiniteLossIsPrintedOnceAndReported) {
  const TemporaryDirectory scratch;
  const std::string report = scratch / "report.json";
  const Finished run = RunCommand(
      OnRanks(2, kMlp + "--lr 1e30 --num-batches 3 --report " + report));
  EXPECT_EQ(run.exit_code, 1) << run.output;
  EXPECT_THAT(run.output,
              ContainsRegex("train_synthetic: the loss of batch [0-3] is not "
                            "finite\n"));
  EXPECT_EQ(CountOccurrences(run.output, "is not finite"), 1) << run.output;
  const nlohmann::json reports = ReadReport(report);
  EXPECT_EQ(reports[0]["completed"], false);
  EXPECT_THAT(reports[0]["failure"], HasSubstr("is not finite"));
}

TEST(TrainSyntheticTest, UnwritableReportIsAnErrorBeforeTheRun) {
  const Finished run = RunCommand(Alone(kMlp + "--report /proc/report.json"));
  EXPECT_EQ(run.exit_code, 2) << run.output;
  EXPECT_EQ(CountOccurrences(run.output, "/proc/report.json"), 1) << run.output;
  EXPECT_THAT(run.output, Not(HasSubstr("Step")));
}

// CPUs that this process may use.
int Cpus() {
  return std::stoi(RunCommand("env -u OMP_NUM_THREADS nproc").output);
}

class InstancesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (Cpus() < 2) GTEST_SKIP() << "needs two CPUs";
  }
};

TEST_F(InstancesTest, EachInstanceHasItsOwnLinesAndFile) {
  const TemporaryDirectory scratch;
  const std::string command =
      kMlp + "--num-batches 5 --instances 2 --share-memory --report " +
      (scratch / "all.json").string();
  const Finished one = RunCommand(command + " --name one");
  EXPECT_EQ(one.exit_code, 0) << one.output;
  // A failed instance determines the exit code.
  const Finished two = RunCommand(command + " --name two --lr 1e30");
  EXPECT_EQ(two.exit_code, 1) << two.output;
  for (const int i : {0, 1}) {
    const std::string instance = "[instance " + std::to_string(i) + "] ";
    EXPECT_THAT(one.output,
                AllOf(HasSubstr(instance + "Batch size:  4 global\n"),
                      HasSubstr(instance + "total images/sec: ")));
    EXPECT_THAT(two.output, HasSubstr(instance + "train_synthetic: the loss "));
    const nlohmann::json reports =
        ReadReport(scratch / ("all_" + std::to_string(i) + ".json"));
    ASSERT_EQ(reports.size(), 2);
    EXPECT_EQ(reports[0]["name"], "one");
    EXPECT_EQ(reports[0]["completed"], true);
    EXPECT_EQ(reports[1]["name"], "two");
    EXPECT_EQ(reports[1]["completed"], false);
    EXPECT_EQ(reports[1]["jr_id"], i);
    EXPECT_EQ(reports[1]["vcd"], i);
  }
  EXPECT_NE(ReadReport(scratch / "all_0.json")[0]["batch_loss"],
            ReadReport(scratch / "all_1.json")[0]["batch_loss"]);
}

// Runs `command`. After `count` lines of output that match the shell's
// `pattern`, runs the shell's `action` with the process id in $program.
Finished RunUntil(const std::string& command, int count,
                  const std::string& pattern, const std::string& action) {
  const TemporaryDirectory scratch;
  const std::string fifo = scratch / "output";
  return RunCommand("(mkfifo " + fifo + "; " + command + " >" + fifo +
                    " & program=$!; left=" + std::to_string(count) +
                    "; exec 3<" + fifo +
                    "; while [ $left -gt 0 ] && read -r line <&3; do "
                    "case $line in " +
                    pattern + ") left=$((left - 1));; esac; done; " + action +
                    "; cat <&3; wait $program)");
}

TEST_F(InstancesTest, MemoryIsSharedAndSignalEndsAllInstances) {
  const Finished run = RunUntil(
      kMlp + "--num-batches 10000000 --instances 2 --share-memory", 2,
      "'[instance '?'] Step'*",
      "for i in $(cat /proc/$program/task/$program/children); do "
      "grep 'Max data size' /proc/$i/limits; done; kill -TERM $program");
  const int64_t share =
      int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE) / 2;
  EXPECT_EQ(CountOccurrences(run.output, " " + std::to_string(share) + " "), 2)
      << run.output;
  EXPECT_EQ(run.exit_code, 85) << run.output;
  EXPECT_THAT(run.output, AllOf(HasSubstr("[instance 0] train_synthetic: "
                                          "stopped after "),
                                HasSubstr("[instance 1] train_synthetic: "
                                          "stopped after ")));
}

TEST_F(InstancesTest, TwoRanksAreAnErrorPrintedOnce) {
  const Finished run = RunCommand(OnRanks(2, kMlp + "--instances 2"));
  EXPECT_EQ(run.exit_code, 2) << run.output;
  // The variable is Open MPI's or MPICH's.
  EXPECT_EQ(CountOccurrences(run.output, "(OMPI_COMM_WORLD_SIZE)") +
                CountOccurrences(run.output, "(PMI_SIZE)"),
            1)
      << run.output;
}

TEST_F(InstancesTest, MoreInstancesThanCpusAreAnError) {
  const Finished run = RunCommand(kTrain + "--instances 100000");
  EXPECT_EQ(run.exit_code, 2) << run.output;
  EXPECT_THAT(run.output, AllOf(HasSubstr("--instances is 100000"),
                                HasSubstr(std::to_string(Cpus()) + " CPUs")));
}

TEST(TrainSyntheticTest, RestartedJobContinuesFromItsLastCommit) {
  const std::string train = kMlp + "--display-every 1 ";
  // The first start is killed after 5 observations.
  const Finished run =
      RunCommand(kPrograms +
                 "hvdliterun -np 1 --allow-run-as-root --max-restarts 1 "
                 "--commit-memory sh -c '"
                 "[ $HVDLITE_RESTARTS = 0 ] && " +
                 train + "--num-batches 5 && kill -9 $$; exec " + train +
                 "--num-batches 8'");
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("resumed: 5 observations are done\n"));
  EXPECT_EQ(CountOccurrences(run.output, "\n6\timages/sec: "), 1) << run.output;
  EXPECT_EQ(CountOccurrences(run.output, "\n5\timages/sec: "), 1) << run.output;
}

TEST(TrainSyntheticTest, SignalEndsTheMeasurementWithAReport) {
  const TemporaryDirectory scratch;
  const Finished run = RunUntil(
      kMlp + "--num-batches 10000000 --report " + scratch.path().string(), 1,
      "'10\t'*", "kill -TERM $program");
  EXPECT_EQ(run.exit_code, 85) << run.output;
  EXPECT_THAT(run.output, AllOf(HasSubstr("total images/sec: "),
                                ContainsRegex("stopped after [0-9]+ "
                                              "observations by Terminated")));
  const nlohmann::json report = ReadReport(scratch / "mlp.json")[0];
  EXPECT_EQ(report["completed"], false);
  EXPECT_THAT(report.value("failure", ""),
              ContainsRegex("ended after [0-9]+ of 10000000 observations"));
}

}  // namespace
}  // namespace hvdlite::trainers
