// Runs train_synthetic as a user does, on one and two ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tests/testing/fakes/temporary_directory.h"
#include "tests/testing/run_command.h"

namespace hvdlite::trainers {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kTrain = HVDLITE_TEST_BIN_DIR "/train_synthetic";
// Without MPI, and with the threads of the tests' mpirun.
const std::string kAlone = "HVDLITE_BACKEND=single OMP_NUM_THREADS=1 " + kTrain;

Finished RunRanks(int ranks, const std::string& flags) {
  return RunCommand(kMpirun + " " + std::to_string(ranks) + " " + kTrain + " " +
                    flags);
}

const std::string kMlp =
    "--model mlp --batch-size 4 --hidden 16 --num-warmup-batches 1 ";

TEST(TrainSyntheticTest, PrintsTheLinesOfTfCnnBenchmarks) {
  const TemporaryDirectory scratch;
  const std::string trace = scratch.path() / "trace.json";
  const Finished run =
      RunCommand("HVDLITE_TIMELINE=" + trace + " " + kMpirun + " 2 " + kTrain +
                 " " + kMlp + "--num-batches 20");
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
                            "-{64}\n$"));
}

constexpr const char* kModels[] = {
    "resnet18 --image-size 32 --data-format NHWC",
    "resnet34 --image-size 32",
    "resnet50 --image-size 32",
    "resnet101 --image-size 32",
    "resnet152 --image-size 32",
    "alexnet --image-size 63 --hidden 64 --data-format NHWC",
    "vgg16 --image-size 32 --hidden 64 --data-format NHWC",
    "conv3d --width 2 --hidden 64",
    "lstm",
    "word_language_model",
    "transformer --sequence-length 8",
    "language_model --sequence-length 8",
    "neural_collaborative_filtering",
    "dcgan --width 8 --data-format NHWC",
    "vae",
    "cart_pole --optimizer adam",
    "ball_game --sequence-length 8 --optimizer adam",
    "super_resolution --image-size 16 --data-format NHWC",
    "wave_predictor --sequence-length 8 --hidden 4",
    "polynomial_regression --optimizer momentum",
    "image_loading"};

// All models are trained before the first test, three at a time.
class ModelTest : public ::testing::TestWithParam<const char*> {
 protected:
  static void SetUpTestSuite() {
    std::vector<std::string> commands;
    for (const char* model : kModels) {
      commands.push_back(kAlone +
                         " --batch-size 2 --num-warmup-batches 0 "
                         "--num-batches 2 --model " +
                         model);
    }
    const std::vector<Finished> runs = RunCommands(commands);
    for (size_t i = 0; i < runs.size(); ++i) runs_[kModels[i]] = runs[i];
  }
  static std::map<std::string, Finished> runs_;
};

std::map<std::string, Finished> ModelTest::runs_;

TEST_P(ModelTest, TrainsWithFiniteLosses) {
  const Finished& run = runs_.at(GetParam());
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output,
              AllOf(HasSubstr("total images/sec"), Not(HasSubstr("nan"))));
}

INSTANTIATE_TEST_SUITE_P(Small, ModelTest, ::testing::ValuesIn(kModels));

// Those of which 16-bit benchmarks are made.
class Bfloat16Test : public ::testing::TestWithParam<const char*> {};

TEST_P(Bfloat16Test, ComputesOtherLossesThanInFloat) {
  const auto losses = [](const std::string& flags) {
    const TemporaryDirectory scratch;
    const std::string report = scratch / "report.json";
    const Finished run = RunCommand(
        kAlone + " --batch-size 2 --repeat 2 --number 1 --skip 0 --report " +
        report + " --model " + GetParam() + flags);
    EXPECT_EQ(run.exit_code, 0) << run.output;
    return ReadReport(report)[0]["batch_loss"];
  };
  const nlohmann::json exact = losses("");
  const nlohmann::json rounded = losses(" --bf16");
  EXPECT_NE(exact, rounded);
  EXPECT_NEAR(exact[0].get<double>(), rounded[0].get<double>(), 0.3);
}

INSTANTIATE_TEST_SUITE_P(
    Small, Bfloat16Test,
    ::testing::Values(
        "resnet18 --image-size 32",
        "word_language_model_gru --classes 50 --hidden 8 "
        "--sequence-length 4",
        "translator --classes 50 --hidden 8 --sequence-length 4"));

// Those whose gradients are special: parameters that never have one, rows of
// embeddings, two networks, and each way to combine them.
class EqualParametersTest : public ::testing::TestWithParam<const char*> {};

TEST_P(EqualParametersTest, ParametersAreEqualOnTwoRanks) {
  const Finished run = RunRanks(2,
                                "--batch-size 2 --num-warmup-batches 0 "
                                "--num-batches 3 --check --model " +
                                    std::string(GetParam()));
  ASSERT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, AllOf(HasSubstr("parameters of rank 0: "),
                                HasSubstr("parameters of rank 1: ")));
}

INSTANTIATE_TEST_SUITE_P(
    Small, EqualParametersTest,
    ::testing::Values(
        "transformer --sequence-length 8",
        "neural_collaborative_filtering --fp16-allreduce",
        "dcgan --width 8 --views", "mlp --use-adasum",
        "style_transfer --image-size 16 --optimizer adam --lr 0.001",
        "ball_game --sequence-length 8 --clip-norm 0.5"));

TEST(TrainSyntheticTest, RanksHaveBatchesOfTheirOwn) {
  const std::string flags = kMlp + "--num-batches 1 --lr 0.1 --check";
  const Finished alone = RunRanks(1, flags);
  const Finished together = RunRanks(2, flags);
  const auto digest = [](const Finished& run) {
    const size_t at = run.output.find("parameters of rank 0: ");
    EXPECT_NE(at, std::string::npos) << run.output;
    return run.output.substr(at, 40);
  };
  EXPECT_NE(digest(alone), digest(together));
}

TEST(TrainSyntheticTest, WithoutUpdatesTheModelStaysAsItIs) {
  for (const std::string mode : {"forward-only", "gradients-only"}) {
    const Finished run = RunRanks(
        2, kMlp + "--" + mode + " --num-batches 2 --display-every 1 --lr 10");
    ASSERT_EQ(run.exit_code, 0) << run.output;
    EXPECT_THAT(run.output, HasSubstr("Mode:        " + mode + "\n"));
    const size_t first = run.output.find(")\t");
    const size_t second = run.output.find(")\t", first + 1);
    ASSERT_NE(second, std::string::npos) << run.output;
    EXPECT_EQ(run.output.substr(first, 7), run.output.substr(second, 7));
  }
}

TEST(TrainSyntheticTest, ReportHoldsTheObservationsOfAllRanks) {
  const TemporaryDirectory scratch;
  const Finished run =
      RunRanks(2,
               "--model mlp --batch-size 4 --repeat 3 --number 2 --skip 1 "
               "--report " +
                   (scratch / "folder").string());
  ASSERT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, AllOf(HasSubstr("\n2\timages/sec: "),
                                HasSubstr("\n3\timages/sec: ")));
  EXPECT_EQ(CountOccurrences(run.output, "jitter"), 2) << run.output;

  const nlohmann::json reports = ReadReport(scratch / "folder/mlp.json");
  ASSERT_EQ(reports.size(), 1);
  EXPECT_EQ(reports[0]["completed"], true);
  EXPECT_EQ(reports[0]["batch_size"], 8);
  EXPECT_EQ(reports[0]["repeat"], 3);
  EXPECT_EQ(reports[0]["train"]["count"], 2);
  EXPECT_EQ(reports[0]["batch_loss"].size(), 6);
}

// Every field of the published example, with the example's types, but for gpu:
// there is none.
TEST(TrainSyntheticTest, ReportHasTheFieldsOfThePublishedExample) {
  const TemporaryDirectory scratch;
  const std::string report = scratch / "report.json";
  const Finished run =
      RunCommand(kAlone +
                 " --model mlp --repeat 3 --number 2 --skip 1 --name convnet "
                 "--report " +
                 report);
  ASSERT_EQ(run.exit_code, 0) << run.output;
  const nlohmann::json found = ReadReport(report)[0];
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
  expect_types_of(example, found);
  expect_types_of(example["train"], found["train"]);
  expect_types_of(example["train_item"], found["train_item"]);
  EXPECT_EQ(found["name"], "convnet");
  EXPECT_EQ(found["arch"], "mlp");
}

TEST(TrainSyntheticTest, LossThatIsNotFiniteFailsAndTheReportSaysSo) {
  const TemporaryDirectory scratch;
  const std::string report = scratch / "report.json";
  const Finished run =
      RunCommand(kAlone +
                 " --model mlp --lr 1e30 --repeat 2 --number 2 "
                 "--skip 0 --report " +
                 report);
  EXPECT_EQ(run.exit_code, 1) << run.output;
  EXPECT_THAT(run.output,
              ContainsRegex("train_synthetic: the loss of batch [1-3] is not "
                            "finite\n"));
  const nlohmann::json reports = ReadReport(report);
  EXPECT_EQ(reports[0]["completed"], false);
  EXPECT_THAT(reports[0]["failure"], HasSubstr("is not finite"));
}

TEST(TrainSyntheticTest, FailureOfOneOfTheRanksIsPrintedOnce) {
  const Finished run = RunRanks(2, kMlp + "--lr 1e30 --num-batches 3");
  EXPECT_NE(run.exit_code, 0);
  EXPECT_EQ(CountOccurrences(run.output, "is not finite"), 1) << run.output;
}

TEST(TrainSyntheticTest, ReportThatCannotBeWrittenIsAnErrorBeforeTheRun) {
  const Finished run = RunRanks(2, kMlp + "--report /proc/report.json");
  EXPECT_EQ(run.exit_code, 2) << run.output;
  EXPECT_EQ(CountOccurrences(run.output, "/proc/report.json"), 1) << run.output;
  EXPECT_THAT(run.output, Not(HasSubstr("Step")));
}

TEST(TrainSyntheticTest, WrongFlagIsAnErrorPrintedOnce) {
  const Finished run = RunRanks(2, "--model mlp --image-size 3");
  EXPECT_EQ(run.exit_code, 2) << run.output;
  EXPECT_EQ(CountOccurrences(run.output, "--image-size does not suit"), 1)
      << run.output;
}

// That this process may use.
int Cpus() {
  return std::stoi(RunCommand("env -u OMP_NUM_THREADS nproc").output);
}

class InstancesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (Cpus() < 2) GTEST_SKIP() << "needs two CPUs";
  }
};

TEST_F(InstancesTest, EachWritesLinesAndAReportOfItsOwn) {
  const TemporaryDirectory scratch;
  const Finished run = RunCommand(kTrain + " " + kMlp +
                                  "--num-batches 5 --instances 2 --report " +
                                  scratch.path().string());
  ASSERT_EQ(run.exit_code, 0) << run.output;
  for (const std::string instance : {"0", "1"}) {
    EXPECT_THAT(run.output, HasSubstr("[instance " + instance +
                                      "] Batch size:  4 global\n"));
    EXPECT_THAT(run.output,
                HasSubstr("[instance " + instance + "] total images/sec: "));
    EXPECT_EQ(ReadReport(scratch / ("instance" + instance) /
                         "mlp.json")[0]["completed"],
              true);
  }
}

TEST_F(InstancesTest, EachAppendsToAFileOfItsOwn) {
  const TemporaryDirectory scratch;
  const std::string command = kTrain + " " + kMlp +
                              "--num-batches 5 --instances 2 --share-memory "
                              "--report " +
                              (scratch / "all.json").string();
  ASSERT_EQ(RunCommand(command + " --name one").exit_code, 0);
  ASSERT_EQ(RunCommand(command + " --name two").exit_code, 0);
  for (const int instance : {0, 1}) {
    const nlohmann::json reports =
        ReadReport(scratch / ("all_" + std::to_string(instance) + ".json"));
    ASSERT_EQ(reports.size(), 2);
    EXPECT_EQ(reports[0]["name"], "one");
    EXPECT_EQ(reports[1]["name"], "two");
    EXPECT_EQ(reports[1]["jr_id"], instance);
    EXPECT_EQ(reports[1]["vcd"], instance);
  }
  EXPECT_NE(ReadReport(scratch / "all_0.json")[0]["batch_loss"],
            ReadReport(scratch / "all_1.json")[0]["batch_loss"]);
}

TEST_F(InstancesTest, FailureIsTheExitCodeOfAll) {
  const Finished run = RunCommand(kTrain + " " + kMlp +
                                  "--num-batches 3 --instances 2 --lr 1e30");
  EXPECT_EQ(run.exit_code, 1) << run.output;
  EXPECT_THAT(run.output,
              ContainsRegex("\\[instance 1\\] train_synthetic: the loss of "
                            "batch [0-9] is not finite\n"));
}

// Runs `command` and, as soon as it has printed `count` lines that match the
// shell's `pattern`, the shell's `action`, which has its id in $program.
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

TEST_F(InstancesTest, SignalEndsThemAll) {
  const Finished run =
      RunUntil(kTrain + " " + kMlp + "--num-batches 10000000 --instances 2", 2,
               "'[instance '?'] Step'*", "kill -TERM $program");
  EXPECT_EQ(run.exit_code, 85) << run.output;
  EXPECT_THAT(run.output, AllOf(HasSubstr("[instance 0] train_synthetic: "
                                          "stopped after "),
                                HasSubstr("[instance 1] train_synthetic: "
                                          "stopped after ")));
}

TEST_F(InstancesTest, EachMayHaveItsShareOfTheMemory) {
  const Finished run = RunUntil(
      kTrain + " " + kMlp +
          "--num-batches 10000000 --instances 2 --share-memory",
      2, "'[instance '?'] Step'*",
      "for i in $(cat /proc/$program/task/$program/children); do "
      "grep 'Max data size' /proc/$i/limits; done; kill -TERM $program");
  const int64_t share =
      int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE) / 2;
  EXPECT_EQ(CountOccurrences(run.output, " " + std::to_string(share) + " "), 2)
      << run.output;
}

TEST(TrainSyntheticTest, AJobThatIsStartedAgainGoesOnFromItsLastCommit) {
  const std::string train = kTrain + " " + kMlp + "--display-every 1 ";
  // The first start is lost after 5 observations.
  const Finished run =
      RunCommand(HVDLITE_TEST_BIN_DIR
                 "/hvdliterun -np 1 --allow-run-as-root --max-restarts 1 "
                 "--commit-memory sh -c '"
                 "[ $HVDLITE_RESTARTS = 0 ] && " +
                 train + "--num-batches 5 && kill -9 $$; exec " + train +
                 "--num-batches 8'");
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("resumed: 5 observations are done\n"));
  EXPECT_EQ(CountOccurrences(run.output, "\n6\timages/sec: "), 1) << run.output;
  EXPECT_EQ(CountOccurrences(run.output, "\n5\timages/sec: "), 1) << run.output;
}

TEST(TrainSyntheticTest, ASignalEndsTheMeasurementWithAReport) {
  const TemporaryDirectory scratch;
  const Finished run =
      RunUntil(kTrain + " " + kMlp + "--num-batches 10000000 --report " +
                   scratch.path().string(),
               1, "'10\t'*", "kill -TERM $program");
  EXPECT_EQ(run.exit_code, 85) << run.output;
  EXPECT_THAT(run.output, AllOf(HasSubstr("total images/sec: "),
                                ContainsRegex("stopped after [0-9]+ "
                                              "observations by Terminated")));
  const nlohmann::json report = ReadReport(scratch / "mlp.json")[0];
  EXPECT_EQ(report["completed"], false);
  EXPECT_THAT(report.value("failure", ""),
              ContainsRegex("ended after [0-9]+ of 10000000 observations"));
}

TEST_F(InstancesTest, MoreThanCpusAreRefusedNamingBoth) {
  const Finished run = RunCommand(kTrain + " --instances 100000");
  EXPECT_EQ(run.exit_code, 2) << run.output;
  EXPECT_THAT(run.output, AllOf(HasSubstr("--instances is 100000"),
                                HasSubstr(std::to_string(Cpus()) + " CPUs")));
}

TEST_F(InstancesTest, AreRefusedOnTwoRanksWithOneMessage) {
  const Finished run = RunRanks(2, "--instances 2");
  EXPECT_EQ(run.exit_code, 2) << run.output;
  // By a variable of Open MPI's, or of MPICH's.
  EXPECT_EQ(CountOccurrences(run.output, "(OMPI_COMM_WORLD_SIZE)") +
                CountOccurrences(run.output, "(PMI_SIZE)"),
            1)
      << run.output;
}

}  // namespace
}  // namespace hvdlite::trainers
