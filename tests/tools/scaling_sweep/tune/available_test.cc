#include "tools/scaling_sweep/tune/available.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/testing/fakes/machine_files.h"
#include "tests/tools/scaling_sweep/tune/fake_machine.h"
#include "tests/tools/scaling_sweep/tune/tune_spec.h"

namespace hvdlite::scaling_sweep {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class AvailableTest : public ::testing::Test {
 protected:
  AvailableDimensions Of(const Dimensions& dimensions) {
    return Available(spec_, dimensions, premises_, machine_).value();
  }

  Spec spec_ = TuneSpec();
  FakeMachine machine_;
  Premises premises_ = {.exists = [](const std::string&) { return false; }};
};

TEST_F(AvailableTest, RefusedOptionIsLeftOutWithTheReason) {
  machine_.plan = LaunchPlan{.threads = 2, .openmp = "", .defaults = {}};
  const std::string reason = "libtc.so is not on this machine (Debian: libtc)";
  machine_.refusals["alloc=tc"] = reason;
  const AvailableDimensions available = Of(DimensionsFrom(spec_));
  EXPECT_THAT(available.left_out,
              ElementsAre(LeftOut{.option = "alloc=tc", .reason = reason}));
  ASSERT_THAT(available.dimensions, SizeIs(4));
  EXPECT_EQ(available.dimensions[3].option_size(), 2);
  // A dimension without a choice is removed.
  machine_.refusals["alloc=je"] = reason;
  EXPECT_THAT(Of(DimensionsFrom(spec_)).dimensions, SizeIs(3));
}

TEST_F(AvailableTest, LauncherWithoutPlansRefusesNothing) {
  machine_.refusals["alloc=tc"] = "what is --dry-run?";
  EXPECT_THAT(Of(DimensionsFrom(spec_)).left_out, IsEmpty());
}

TEST_F(AvailableTest, WorldsThatAreTooLargeOrTheSameAsTheDefaultsAreLeftOut) {
  class TwoRanksAreTooMany : public FakeMachine {
    absl::StatusOr<LaunchAnswer> Ask(const Configuration& asked) override {
      return LaunchAnswer{
          .plan = LaunchPlan{.threads = 2,
                             .oversubscribed = asked.ranks() > 1,
                             .openmp = "",
                             .defaults = {}},
          .refusal = ""};
    }
  };
  TwoRanksAreTooMany machine;
  const Dimensions dimensions = DimensionsFrom(spec_);
  EXPECT_THAT(Available(spec_, dimensions, premises_, machine)->left_out,
              ElementsAre(LeftOut{.option = "world=2",
                                  .reason = "more ranks or threads than this "
                                            "machine has cores"}));
  Dimensions same = {dimensions[2]};
  same[0].mutable_option(1)->set_ranks(0, 1);
  EXPECT_THAT(
      Available(spec_, same, premises_, machine)->left_out,
      ElementsAre(LeftOut{.option = "world=2",
                          .reason = "the same as hvdliterun's defaults"}));
}

TEST_F(AvailableTest, MissingLibrariesAreNotPreloaded) {
  Dimensions dimensions = {DimensionsFrom(spec_)[1]};
  Variable& variable = *dimensions[0].mutable_option(1)->mutable_environment(0);
  variable.set_name("LD_PRELOAD");
  variable.set_value("libc.so.6:/opt/intel/libiomp5.so");
  EXPECT_THAT(Of(dimensions).left_out,
              ElementsAre(LeftOut{.option = "blas=fast",
                                  .reason = "there is no "
                                            "/opt/intel/libiomp5.so; install "
                                            "its package, or correct the "
                                            "path"}));
  premises_.exists = [](const std::string&) { return true; };
  EXPECT_THAT(Of(dimensions).left_out, IsEmpty());
}

TEST_F(AvailableTest, OpenBlasKernelsNeedAProgramWithOpenBlas) {
  Dimensions dimensions = {DimensionsFrom(spec_)[1]};
  dimensions[0].mutable_option(1)->mutable_environment(0)->set_name(
      "OPENBLAS_CORETYPE");
  EXPECT_THAT(Of(dimensions).left_out, IsEmpty());  // the program is a script
  std::vector<support::Library>& libraries = premises_.libraries.emplace();
  libraries.push_back({.name = "libtorch_cpu.so", .path = "/l"});
  EXPECT_THAT(Of(dimensions).left_out, SizeIs(1));
  libraries.push_back({.name = "libblas.so.3", .path = "/b"});
  EXPECT_THAT(Of(dimensions).left_out, IsEmpty());
}

TEST_F(AvailableTest, DisabledHugePagesAreLeftOut) {
  Dimensions dimensions = {DimensionsFrom(spec_)[3]};
  dimensions[0].mutable_option(1)->mutable_launcher_flag()->Clear();
  dimensions[0].mutable_option(1)->add_launcher_flag("--huge-pages");
  EXPECT_THAT(Of(dimensions).left_out, IsEmpty());
  testing::MachineFiles files;
  files.Write("/sys/kernel/mm/transparent_hugepage/enabled",
              "always madvise [never]\n");
  premises_.files = files.files();
  EXPECT_THAT(Of(dimensions).left_out, SizeIs(1));
}

}  // namespace
}  // namespace hvdlite::scaling_sweep
