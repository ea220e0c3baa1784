#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "support/machine.h"
#include "support/processor.h"
#include "tests/tools/doctor/checks/finding_matchers.h"
#include "tools/doctor/checks/core_peak.h"
#include "tools/doctor/checks/software_checks.h"

namespace hvdlite::doctor {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::set<std::string> kAvx512 = {"avx2",     "fma",      "avx512f",
                                       "avx512bw", "avx512dq", "avx512vl"};

BlasFacts OpenBlas(const std::string& core) {
  return {.file = "/usr/lib/x86_64-linux-gnu/openblas-openmp/libopenblas.so.0",
          .kind = "OpenBLAS",
          .version = "0.3.21",
          .core = core,
          .threads = "OpenMP"};
}

TEST(BlasTest, OpenBlasWithItsBestKernelsIsOk) {
  EXPECT_THAT(JudgeBlas(OpenBlas("SkylakeX"), {.cpu_flags = kAvx512}),
              IsOk("OpenBLAS 0.3.21, kernels for SkylakeX, threads: OpenMP"));
}

TEST(BlasTest, KernelsOfAnOldProcessorAreAProblem) {
  EXPECT_THAT(JudgeBlas(OpenBlas("Prescott"), {.cpu_flags = kAvx512}),
              Says(Verdict::kProblem, "does not know this processor",
                   "export OPENBLAS_CORETYPE=SkylakeX"));
  EXPECT_THAT(JudgeBlas(OpenBlas("Prescott"), {.cpu_flags = {"avx2", "fma"}}),
              Says(Verdict::kProblem, "", "export OPENBLAS_CORETYPE=Haswell"));
  EXPECT_THAT(JudgeBlas(OpenBlas("Prescott"), {.cpu_flags = {"sse2"}}),
              IsOk("Prescott"));
}

// The first processor in /proc/cpuinfo of two machines.
constexpr char kA64fx[] =
    "processor\t: 0\n"
    "BogoMIPS\t: 200.00\n"
    "Features\t: fp asimd evtstrm sha1 sha2 crc32 atomics fphp asimdhp cpuid "
    "asimdrdm fcma dcpop sve\n"
    "CPU implementer\t: 0x46\n"
    "CPU architecture: 8\n"
    "CPU variant\t: 0x1\n"
    "CPU part\t: 0x001\n"
    "CPU revision\t: 0\n\n";
constexpr char kGraviton3[] =
    "processor\t: 0\n"
    "BogoMIPS\t: 2100.00\n"
    "Features\t: fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics fphp "
    "asimdhp cpuid asimdrdm jscvt fcma lrcpc dcpop sha3 sm3 sm4 asimddp sha512 "
    "sve asimdfhm dit uscat ilrcpc flagm ssbs paca pacg dcpodp svei8mm svebf16 "
    "i8mm bf16 dgh rng\n"
    "CPU implementer\t: 0x41\n"
    "CPU architecture: 8\n"
    "CPU variant\t: 0x1\n"
    "CPU part\t: 0xd40\n"
    "CPU revision\t: 1\n\n";

BlasSurroundings On(const std::string& cpuinfo) {
  return {.cpu_flags = support::CpuFlags(cpuinfo),
          .cpu_implementer = support::ValueOf(cpuinfo, "CPU implementer")};
}

TEST(BlasTest, KernelsThatTheEnvironmentAsksForAreBlamedOnIt) {
  BlasFacts facts = OpenBlas("Haswell");
  facts.own_core = "Cooperlake";
  BlasSurroundings around = {.cpu_flags = kAvx512, .asked_core = "Haswell"};
  EXPECT_THAT(JudgeBlas(facts, around),
              Says(Verdict::kProblem, "OPENBLAS_CORETYPE=Haswell asks for them",
                   "unset OPENBLAS_CORETYPE"));
  // By itself this one would take no good ones either.
  facts.own_core = "Prescott";
  EXPECT_THAT(JudgeBlas(facts, around),
              Says(Verdict::kProblem, "8 floats at once, not 16",
                   "export OPENBLAS_CORETYPE=SkylakeX"));
  // Whose core computes 16 floats with one vector, and with two halves.
  around.floats_per_cycle = 16;
  EXPECT_THAT(JudgeBlas(facts, around),
              Says(Verdict::kNote, "as many of either in a cycle", ""));
  around.floats_per_cycle = 32;
  EXPECT_EQ(JudgeBlas(facts, around).verdict, Verdict::kProblem);
  around.cpu_flags = {"avx2", "fma"};
  EXPECT_THAT(JudgeBlas(facts, around), IsOk("Haswell"));
  facts.own_core = "Zen";
  EXPECT_THAT(JudgeBlas(facts, around), IsOk("Haswell"));
}

TEST(BlasTest, KernelsThatOpenBlasWouldNotTakeByItselfAreOkIfTheyAreBetter) {
  BlasFacts facts = OpenBlas("SkylakeX");
  facts.own_core = "Prescott";
  EXPECT_THAT(
      JudgeBlas(facts, {.cpu_flags = kAvx512, .asked_core = "SkylakeX"}),
      IsOk("SkylakeX"));
}

TEST(BlasTest, OnArmTheEnvironmentIsBlamedWhereOpenBlasKnowsBetter) {
  BlasFacts facts = OpenBlas("armv8");
  facts.own_core = "neoversev1";
  EXPECT_EQ(JudgeBlas(facts, On(kGraviton3)).remedy, "unset OPENBLAS_CORETYPE");
}

TEST(BlasTest, KernelsWithoutSveAreAProblemWhereVectorsAreLong) {
  BlasFacts debian12 = OpenBlas("armv8");
  EXPECT_THAT(JudgeBlas(debian12, On(kA64fx)),
              Says(Verdict::kProblem, "leave the SVE vectors",
                   "OpenBLAS 0.3.25 or newer"));
  EXPECT_THAT(JudgeBlas(debian12, On(kA64fx)).remedy, HasSubstr("SSL II"));
  EXPECT_THAT(JudgeBlas(debian12, On(kGraviton3)),
              Says(Verdict::kNote, "leave the SVE vectors", "0.3.25 or newer"));
  EXPECT_THAT(JudgeBlas(debian12, {.cpu_flags = {"asimd"}}), IsOk("armv8"));
  EXPECT_THAT(JudgeBlas(OpenBlas("a64fx"), On(kA64fx)), IsOk("a64fx"));
  EXPECT_THAT(JudgeBlas(OpenBlas("neoversev1"), On(kGraviton3)),
              IsOk("neoversev1"));
}

TEST(BlasTest, KernelsForSveThatAreThereAreAskedFor) {
  BlasFacts facts = OpenBlas("ARMV8");
  facts.sve_cores = {"A64FX", "ARMV8SVE"};
  EXPECT_EQ(JudgeBlas(facts, On(kA64fx)).remedy,
            "export OPENBLAS_CORETYPE=A64FX");
  EXPECT_EQ(JudgeBlas(facts, On(kGraviton3)).remedy,
            "export OPENBLAS_CORETYPE=ARMV8SVE");
  facts.sve_cores = {"ARMV8SVE"};
  EXPECT_EQ(JudgeBlas(facts, On(kA64fx)).remedy,
            "export OPENBLAS_CORETYPE=ARMV8SVE");
}

TEST(BlasTest, OpenBlasTellsWhatItIs) {
  unsetenv("OPENBLAS_CORETYPE");
  const LoadedBlas blas = LoadBlas({HVDLITE_FAKE_OPENBLAS});
  EXPECT_NE(blas.sgemm, nullptr);
  EXPECT_THAT(blas.facts.file, HasSubstr("doctor_fake_openblas"));
  EXPECT_EQ(blas.facts.kind, "OpenBLAS");
  EXPECT_EQ(blas.facts.version, "0.3.29");
  EXPECT_EQ(blas.facts.core, "armv8");
  EXPECT_EQ(blas.facts.threads, "OpenMP");
  EXPECT_THAT(blas.facts.sve_cores, ElementsAre("A64FX"));
}

TEST(BlasTest, WhatOpenBlasWouldTakeByItselfIsFoundOutElsewhere) {
  ASSERT_EQ(setenv("OPENBLAS_CORETYPE", "Haswell", /*overwrite=*/1), 0);
  EXPECT_EQ(OwnOpenBlasCore({HVDLITE_FAKE_OPENBLAS}), "armv8");
  EXPECT_EQ(LoadBlas({HVDLITE_FAKE_OPENBLAS}).facts.core, "Haswell");
  ASSERT_EQ(unsetenv("OPENBLAS_CORETYPE"), 0);
  EXPECT_EQ(OwnOpenBlasCore({"libm.so.6"}), "");
}

TEST(BlasTest, ReferenceBlasIsAProblemAndSaysHowToReplaceIt) {
  const BlasFacts reference = {
      .file = "/usr/lib/x86_64-linux-gnu/blas/libblas.so.3.11.0",
      .kind = "reference"};
  EXPECT_THAT(JudgeBlas(reference, {.cpu_flags = kAvx512}),
              Says(Verdict::kProblem, "the reference BLAS, in /usr/lib",
                   "update-alternatives --auto libblas.so.3-x86_64-linux-gnu"));
  EXPECT_THAT(
      JudgeBlas(reference, {.cpu_flags = kAvx512,
                            .library_path = "/usr/lib/x86_64-linux-gnu/blas"}),
      Says(Verdict::kProblem, "reference", "unset LD_LIBRARY_PATH"));
  EXPECT_THAT(
      JudgeBlas(reference,
                {.cpu_flags = kAvx512,
                 .library_path = "/a:/usr/lib/x86_64-linux-gnu/blas:/b"}),
      Says(Verdict::kProblem, "reference", "export LD_LIBRARY_PATH=/a:/b"));
  EXPECT_THAT(ReferenceBlasRemedy("/opt/x/libblas.so.3", "/a"),
              HasSubstr("install OpenBLAS"));
}

TEST(BlasTest, ThreadsBesideThoseOfOpenMpAreAWarning) {
  BlasFacts facts = OpenBlas("Haswell");
  facts.threads = "pthreads";
  EXPECT_THAT(JudgeBlas(facts, {.cpu_flags = {}}),
              Says(Verdict::kWarning, "pthreads", "libopenblas0-openmp"));
  EXPECT_THAT(JudgeBlas(facts, {.cpu_flags = {}, .openmp = false}),
              IsOk("pthreads"));
  facts.threads = "none";
  EXPECT_THAT(JudgeBlas(facts, {.cpu_flags = {}}), HasVerdict(Verdict::kNote));
}

TEST(BlasTest, SaysWhyNoneWasFound) {
  EXPECT_THAT(
      JudgeBlas({.error = "libblas.so.3: cannot open"}, {.cpu_flags = {}}),
      Says(Verdict::kWarning, "cannot open", "--program"));
  EXPECT_THAT(
      JudgeBlas({.error = "none"}, {.cpu_flags = {}, .program = "prog"}),
      HasVerdict(Verdict::kNote));
}

TEST(BlasTest, CandidatesOfAProgramAreItsOwnLibraries) {
  EXPECT_THAT(BlasCandidates({{"libopenblas.so.0", "/o/libopenblas.so.0"},
                              {"libm.so.6", "/lib/libm.so.6"},
                              {"libblas.so.3", "/o/libblas.so.3"},
                              {"libmkl_rt.so.2", ""}}),
              ElementsAre("/o/libblas.so.3", "/o/libopenblas.so.0"));
  EXPECT_EQ(BlasCandidates({}).front(), "libblas.so.3");
}

TEST(BlasTest, LibrariesThatAreNoneAreToldOf) {
  const LoadedBlas blas = LoadBlas({"/nonexistent/libblas.so.3", "libm.so.6"});
  EXPECT_EQ(blas.sgemm, nullptr);
  EXPECT_EQ(blas.facts.file, "");
  EXPECT_THAT(blas.facts.error,
              AllOf(HasSubstr("/nonexistent"), HasSubstr("has no sgemm_")));
}

TEST(BlasSpeedTest, JudgesByTheShareOfThePeak) {
  const std::string core = "3.00 GHz, vectors of 16 floats (AVX3), 2 units";
  const std::vector<Finding> findings =
      JudgeBlasSpeed({{.gflops = 100, .peak_gflops = 192, .core = core},
                      {.gflops = 50, .peak_gflops = 192, .core = core},
                      {.gflops = 6, .peak_gflops = 192, .core = core},
                      {.gflops = 75, .peak_gflops = 192, .core = core}});
  ASSERT_EQ(findings.size(), 3U);
  EXPECT_THAT(findings[0],
              Says(Verdict::kProblem,
                   "6 GFLOP/s, 3.12 % of the core's peak (3.00 GHz", "blas"));
  EXPECT_THAT(findings[0].ranks, ElementsAre(2));
  EXPECT_THAT(findings[1], Says(Verdict::kWarning,
                                "50 to 75 GFLOP/s, 26 to 39.1 %", "blas"));
  EXPECT_THAT(findings[1].ranks, ElementsAre(1, 3));
  EXPECT_THAT(findings[2], IsOk("52.1 % of the core's peak"));
  EXPECT_THAT(findings[2].ranks, ElementsAre(0));
}

TEST(BlasSpeedTest, SaysTheCommandThatMendsTheKernels) {
  EXPECT_THAT(JudgeBlasSpeed({{.gflops = 40,
                               .peak_gflops = 100,
                               .remedy = "unset OPENBLAS_CORETYPE"}}),
              ElementsAre(Says(Verdict::kWarning, "40 %",
                               "unset OPENBLAS_CORETYPE (see the check blas")));
  EXPECT_THAT(JudgeBlasSpeed({{.gflops = 40, .peak_gflops = 100}}),
              ElementsAre(Says(Verdict::kWarning, "40 %", "slow_core")));
}

TEST(BlasSpeedTest, AnUnknownPeakIsNoReproach) {
  EXPECT_THAT(JudgeBlasSpeed({{.gflops = 3}}),
              ElementsAre(IsOk("cannot be measured")));
  EXPECT_THAT(JudgeBlasSpeed(std::vector<BlasSpeed>(1)),
              ElementsAre(Says(Verdict::kNote, "no BLAS", "")));
}

TEST(CorePeakTest, UnitsAreWholeAndOneAtLeast) {
  EXPECT_EQ(UnitsOf(1.93), 2);
  EXPECT_EQ(UnitsOf(0.97), 1);
  EXPECT_EQ(UnitsOf(0.3), 1);
  EXPECT_EQ(UnitsOf(3.9), 4);
}

TEST(CorePeakTest, PeakIsTheProductOfItsFactors) {
  const CorePeak peak = {.ghz = 3, .lanes = 16, .units = 2, .vectors = "AVX3"};
  EXPECT_DOUBLE_EQ(peak.gflops(), 192);
}

TEST(CorePeakTest, LoopsCountTheirOperations) {
  const FmaLoopKind loop = ThisCpusFmaLoop();
  EXPECT_GT(loop.lanes, 0);
  EXPECT_EQ(RunFewChains(10),
            static_cast<double>(2 * 10 * loop.chains_few * loop.lanes));
  EXPECT_EQ(RunManyChains(10),
            static_cast<double>(2 * 10 * loop.chains_many * loop.lanes));
}

}  // namespace
}  // namespace hvdlite::doctor
