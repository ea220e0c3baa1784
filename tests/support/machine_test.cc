#include "support/machine.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <map>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/environment.h"
#include "support/child_process.h"
#include "support/processor.h"
#include "tests/testing/fakes/machine_files.h"

namespace hvdlite::support {
namespace {

TEST(SystemFilesTest, ValuesOfProcAreParsed) {
  EXPECT_EQ(ValueOf("a : 1\nmodel name\t: X 5: y\n", "model name"), "X 5: y");
  EXPECT_EQ(ValueOf("model names: Z\n", "model name"), "");
  EXPECT_EQ(BracketedChoice("always [madvise] never"), "madvise");
  EXPECT_EQ(BracketedChoice("off"), "off");
}

TEST(SystemFilesTest, UnreadableFileHasNoValue) {
  const SystemFiles files("/nonexistent");
  EXPECT_FALSE(files.Text("/a").has_value());
  EXPECT_FALSE(files.Number("/a").has_value());
  EXPECT_TRUE(files.Names("/").empty());
  // These can be opened but not read, like a file of /proc whose process ends
  // before the read.
  EXPECT_FALSE(SystemFiles().Text("/proc/self").has_value());
  EXPECT_FALSE(SystemFiles().Text("/proc/self/mem").has_value());
}

TEST(MachineTest, HardwareThreadsOfACoreAreOneCore) {
  testing::MachineFiles tree;
  for (int cpu = 0; cpu < 4; ++cpu) {
    tree.Write(absl::StrCat("/sys/devices/system/cpu/cpu", cpu,
                            "/topology/thread_siblings_list"),
               absl::StrCat(cpu % 2, ",", cpu % 2 + 2));
  }
  EXPECT_EQ(CoresOf({3, 2, 1, 0}, tree.files()), (std::vector<int>{0, 1}));
  // CPUs of an unknown core count separately.
  EXPECT_EQ(CoresOf({5, 7}, tree.files()), (std::vector<int>{5, 7}));
}

TEST(MachineTest, DescriptionHasAllFacts) {
  testing::MachineFiles tree;
  tree.Write("/proc/cpuinfo", "model name\t: Xeon\n");
  tree.Write("/proc/meminfo", "MemTotal:  8388608 kB\n");
  const auto words = DescribeMachine(tree.files());
  const std::map<std::string, std::string> machine(words.begin(), words.end());
  EXPECT_EQ(machine.at("processor"), "Xeon");
  EXPECT_EQ(machine.at("memory"), "8.0 GiB");
  EXPECT_NE(machine.at("kernel"), "");
  EXPECT_EQ(machine.count("cores"), 1u);
}

TEST(MachineTest, DescriptionHasAllCoresAndTheAllowedThreads) {
  testing::MachineFiles tree;
  const auto cores = [&] {
    const auto words = DescribeMachine(tree.files());
    return std::map<std::string, std::string>(words.begin(), words.end())
        .at("cores");
  };
  const std::string directory = "/sys/devices/system/cpu/";
  tree.Write(directory + "online", "1000-1001,2000-2001");
  for (const int socket : {0, 1}) {
    for (const int thread : {0, 1}) {
      const std::string topology = absl::StrCat(
          directory, "cpu", 1000 * (socket + 1) + thread, "/topology/");
      tree.Write(topology + "physical_package_id", absl::StrCat(socket));
      tree.Write(topology + "thread_siblings_list", absl::StrCat(socket));
    }
  }
  const std::string all =
      "2 cores with 4 hardware threads, 2 sockets, 1 NUMA node";
  EXPECT_EQ(cores(), all);
  // One thread is bound; offline CPUs do not count.
  const auto allow = [&](const std::string& thread, const std::string& cpus) {
    tree.Write("/proc/self/task/" + thread + "/status",
               "Cpus_allowed:\tff\nCpus_allowed_list:\t" + cpus);
  };
  allow("7", "1001");
  EXPECT_EQ(cores(), all + "; this process may use 1 hardware thread");
  allow("8", "1001-1999");
  EXPECT_EQ(cores(), all + "; this process may use 1 hardware thread");
  allow("9", "1000-2000");
  EXPECT_EQ(cores(), all + "; this process may use 3 hardware threads");
  allow("9", "0-4000");
  EXPECT_EQ(cores(), all);
}

TEST(MachineTest, CpuTimeExcludesIdleTime) {
  testing::MachineFiles tree;
  EXPECT_EQ(CpuSecondsNow(tree.files()).machine, 0);
  // user nice system idle iowait irq softirq steal guest
  tree.Write("/proc/stat", "cpu  100 200 300 9999 9999 100 200 100 77 0\n");
  EXPECT_EQ(CpuSecondsNow(tree.files()).machine,
            1000.0 / static_cast<double>(sysconf(_SC_CLK_TCK)));
  EXPECT_GT(CpuSecondsNow().process, 0);
  const CpuSeconds before = CpuSecondsNow();
  ASSERT_TRUE(CaptureOutput({"sh", "-c",
                             "i=0; while [ $i -lt 100000 ]; do "
                             "i=$((i + 1)); done"})
                  .ok());
  const CpuSeconds after = CpuSecondsNow();
  EXPECT_GT(after.children - before.children,
            2 * (after.process - before.process));
  EXPECT_EQ(DescribeOtherPrograms(0.4, 2), "0.40 of 2 CPUs: busy");
  EXPECT_EQ(DescribeOtherPrograms(-0.01, 2), "0.00 of 2 CPUs: quiet");
}

TEST(MachineTest, ProcessorSocketsAndNodesAreRead) {
  testing::MachineFiles tree;
  tree.Write("/proc/cpuinfo", "model name\t: Xeon\nflags\t\t: fma avx2\n");
  tree.Write("/sys/devices/system/node/node0/cpulist", "0-3");
  tree.Write("/sys/devices/system/node/node1/cpulist", "");  // only memory
  for (const int cpu : AllowedCpus()) {
    tree.Write(absl::StrCat("/sys/devices/system/cpu/cpu", cpu,
                            "/topology/thread_siblings_list"),
               "0-9999");
  }
  const MachineFacts machine = ThisMachine(tree.files());
  EXPECT_EQ(machine.processor, "Xeon");
  EXPECT_EQ(machine.numa_nodes, 1);
  EXPECT_EQ(machine.sockets, 1);
  EXPECT_EQ(machine.cores, 1);
  EXPECT_EQ(machine.cpu_flags, (std::set<std::string>{"avx2", "fma"}));
}

TEST(MachineTest, A64fxIsRecognizedByItsNumbers) {
  testing::MachineFiles tree;
  tree.Write(
      "/proc/cpuinfo",
      "Features\t: fp sve\nCPU implementer\t: 0x46\nCPU part\t: 0x001\n");
  EXPECT_EQ(ThisMachine(tree.files()).processor, "A64FX");
  tree.Write("/proc/cpuinfo",
             "Features\t: fp\nCPU implementer\t: 0x41\nCPU part\t: 0x001\n");
  EXPECT_NE(ThisMachine(tree.files()).processor, "A64FX");
}

TEST(MachineTest, OnlyRelevantVariablesAreKept) {
  const base::Environment environment = base::FakeEnvironment(
      {{"OMP_NUM_THREADS", "2"}, {"HOME", "/root"}, {"LD_PRELOAD", "x.so"}});
  EXPECT_EQ(RelevantVariables(environment),
            (std::map<std::string, std::string>{{"LD_PRELOAD", "x.so"},
                                                {"OMP_NUM_THREADS", "2"}}));
}

}  // namespace
}  // namespace hvdlite::support
