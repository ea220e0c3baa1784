#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "support/libraries.h"
#include "tests/tools/doctor/checks/expect_findings.h"
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
  ExpectFindings(JudgeBlas(OpenBlas("SkylakeX"), {.cpu_flags = kAvx512}), "ok");
}

TEST(BlasTest, KernelsOfAnOldProcessorAreAProblem) {
  ExpectFindings(JudgeBlas(OpenBlas("Prescott"), {.cpu_flags = kAvx512}),
                 "problem");
  ExpectFindings(
      JudgeBlas(OpenBlas("Prescott"), {.cpu_flags = {"avx2", "fma"}}),
      "problem");
  ExpectFindings(JudgeBlas(OpenBlas("Prescott"), {.cpu_flags = {"sse2"}}),
                 "ok");
}

const BlasEnvironment kA64fx = {.cpu_flags = {"asimd", "sve"},
                                .cpu_implementer = "0x46"};
const BlasEnvironment kGraviton3 = {.cpu_flags = {"asimd", "sve"},
                                    .cpu_implementer = "0x41"};

TEST(BlasTest, CoreTypeFromEnvironmentIsReported) {
  BlasFacts facts = OpenBlas("Haswell");
  facts.own_core = "Cooperlake";
  BlasEnvironment around = {.cpu_flags = kAvx512, .asked_core = "Haswell"};
  ExpectFindings(JudgeBlas(facts, around), "problem");
  // This OpenBLAS would not choose good kernels itself.
  facts.own_core = "Prescott";
  ExpectFindings(JudgeBlas(facts, around), "problem");
  // A core that computes 16 floats per cycle: one long vector or two short
  // ones.
  around.floats_per_cycle = 16;
  ExpectFindings(JudgeBlas(facts, around), "note");
  around.floats_per_cycle = 32;
  ExpectFindings(JudgeBlas(facts, around), "problem");
  around.cpu_flags = {"avx2", "fma"};
  ExpectFindings(JudgeBlas(facts, around), "ok");
  facts.own_core = "Zen";
  ExpectFindings(JudgeBlas(facts, around), "ok");
}

TEST(BlasTest, BetterCoreTypeFromEnvironmentIsOk) {
  BlasFacts facts = OpenBlas("SkylakeX");
  facts.own_core = "Prescott";
  ExpectFindings(
      JudgeBlas(facts, {.cpu_flags = kAvx512, .asked_core = "SkylakeX"}), "ok");
}

TEST(BlasTest, OnArmWorseCoreTypeFromEnvironmentIsReported) {
  BlasFacts facts = OpenBlas("armv8");
  facts.own_core = "neoversev1";
  ExpectFindings(JudgeBlas(facts, kGraviton3), "note");
}

TEST(BlasTest, KernelsWithoutSveAreAProblemWithLongVectors) {
  BlasFacts debian12 = OpenBlas("armv8");
  ExpectFindings(JudgeBlas(debian12, kA64fx), "problem");
  ExpectFindings(JudgeBlas(debian12, kGraviton3), "note");
  ExpectFindings(JudgeBlas(debian12, {.cpu_flags = {"asimd"}}), "ok");
  ExpectFindings(JudgeBlas(OpenBlas("a64fx"), kA64fx), "ok");
  ExpectFindings(JudgeBlas(OpenBlas("neoversev1"), kGraviton3), "ok");
}

TEST(BlasTest, AvailableSveKernelsAreRecommended) {
  BlasFacts facts = OpenBlas("ARMV8");
  facts.sve_cores = {"A64FX", "ARMV8SVE"};
  ExpectFindings(JudgeBlas(facts, kA64fx), "problem");
  ExpectFindings(JudgeBlas(facts, kGraviton3), "note");
  facts.sve_cores = {"ARMV8SVE"};
  ExpectFindings(JudgeBlas(facts, kA64fx), "problem");
}

TEST(BlasTest, ReadsVersionAndKernelsOfOpenBlas) {
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

TEST(BlasTest, FindsOwnCoreTypeDespiteTheEnvironment) {
  ASSERT_EQ(setenv("OPENBLAS_CORETYPE", "Haswell", /*overwrite=*/1), 0);
  EXPECT_EQ(support::OwnOpenBlasCore({HVDLITE_FAKE_OPENBLAS}), "armv8");
  EXPECT_EQ(LoadBlas({HVDLITE_FAKE_OPENBLAS}).facts.core, "Haswell");
  ASSERT_EQ(unsetenv("OPENBLAS_CORETYPE"), 0);
  EXPECT_EQ(support::OwnOpenBlasCore({"libm.so.6"}), "");
}

TEST(BlasTest, ReferenceBlasIsAProblemWithRemedy) {
  const BlasFacts reference = {
      .file = "/usr/lib/x86_64-linux-gnu/blas/libblas.so.3.11.0",
      .kind = "reference"};
  ExpectFindings(JudgeBlas(reference, {.cpu_flags = kAvx512}), "problem");
  ExpectFindings(
      JudgeBlas(reference, {.cpu_flags = kAvx512,
                            .library_path = "/usr/lib/x86_64-linux-gnu/blas"}),
      "problem");
  ExpectFindings(
      JudgeBlas(reference,
                {.cpu_flags = kAvx512,
                 .library_path = "/a:/usr/lib/x86_64-linux-gnu/blas:/b"}),
      "problem");
  ExpectFindings(JudgeBlas({.file = "/opt/x/libblas.so.3", .kind = "reference"},
                           {.cpu_flags = kAvx512, .library_path = "/a"}),
                 "problem");
}

TEST(BlasTest, ThreadsBesideOpenMpAreAWarning) {
  BlasFacts facts = OpenBlas("Haswell");
  facts.threads = "pthreads";
  ExpectFindings(JudgeBlas(facts, {.cpu_flags = {}}), "warning");
  ExpectFindings(JudgeBlas(facts, {.cpu_flags = {}, .openmp = false}), "ok");
  facts.threads = "none";
  ExpectFindings(JudgeBlas(facts, {.cpu_flags = {}}), "note");
}

TEST(BlasTest, MissingBlasIsReportedWithReason) {
  ExpectFindings(
      JudgeBlas({.error = "libblas.so.3: cannot open"}, {.cpu_flags = {}}),
      "warning");
  ExpectFindings(
      JudgeBlas({.error = "none"}, {.cpu_flags = {}, .program = "prog"}),
      "note");
}

TEST(BlasTest, CandidatesOfAProgramAreItsOwnLibraries) {
  EXPECT_THAT(BlasCandidates({{"libopenblas.so.0", "/o/libopenblas.so.0"},
                              {"libm.so.6", "/lib/libm.so.6"},
                              {"libblas.so.3", "/o/libblas.so.3"},
                              {"libmkl_rt.so.2", ""}}),
              ElementsAre("/o/libblas.so.3", "/o/libopenblas.so.0"));
  EXPECT_EQ(BlasCandidates({}).front(), "libblas.so.3");
}

TEST(BlasTest, LibrariesWithoutBlasAreReported) {
  const LoadedBlas blas = LoadBlas({"/nonexistent/libblas.so.3", "libm.so.6"});
  EXPECT_EQ(blas.sgemm, nullptr);
  EXPECT_EQ(blas.facts.file, "");
  EXPECT_THAT(blas.facts.error,
              AllOf(HasSubstr("/nonexistent"), HasSubstr("has no sgemm_")));
}

TEST(BlasSpeedTest, JudgesByTheShareOfThePeak) {
  const std::string core = "3.00 GHz, vectors of 16 floats (AVX3), 2 units";
  ExpectFindings(
      JudgeBlasSpeed({{.gflops = 100, .peak_gflops = 192, .core = core},
                      {.gflops = 50, .peak_gflops = 192, .core = core},
                      {.gflops = 6, .peak_gflops = 192, .core = core},
                      {.gflops = 75, .peak_gflops = 192, .core = core}}),
      "problem warning ok");
}

TEST(BlasSpeedTest, RemedyIsTheCommandForBetterKernels) {
  ExpectFindings(JudgeBlasSpeed({{.gflops = 40,
                                  .peak_gflops = 100,
                                  .remedy = "unset OPENBLAS_CORETYPE"}}),
                 "warning");
  ExpectFindings(JudgeBlasSpeed({{.gflops = 40, .peak_gflops = 100}}),
                 "warning");
}

TEST(BlasSpeedTest, UnknownPeakIsOk) {
  ExpectFindings(JudgeBlasSpeed({{.gflops = 3}}), "ok");
  ExpectFindings(JudgeBlasSpeed(std::vector<BlasSpeed>(1)), "note");
}

TEST(CorePeakTest, UnitsAreAWholeNumberOfAtLeastOne) {
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
