#include "timeline/record/step_meter.h"

#include <gtest/gtest.h>

#include <thread>

namespace hvdlite::timeline {
namespace {

// The value of the fake CPU clock of a thread.
int64_t cpu_ns = 0;

TEST(StepMeterTest, CpuTimeOfAStepExcludesWaits) {
  StepMeter meter([] { return cpu_ns; });
  cpu_ns = 1'000'000;
  EXPECT_EQ(meter.EndStep().cpu_us, -1);  // its start is unknown
  cpu_ns += 40'000;
  {
    const StepMeter::Wait wait(meter);
    cpu_ns += 7'000'000;
  }
  cpu_ns += 2'000;
  EXPECT_EQ(meter.EndStep().cpu_us, 42);
  EXPECT_EQ(meter.EndStep().cpu_us, 0);
}

TEST(StepMeterTest, WorkAddsUpWithinAStep) {
  StepMeter meter([] { return int64_t{0}; });
  EXPECT_EQ(meter.EndStep().work, -1);
  meter.AddWork(5);
  meter.AddWork(-3);
  meter.AddWork(2);
  EXPECT_EQ(meter.EndStep().work, 7);
  EXPECT_EQ(meter.EndStep().work, -1);
  meter.AddWork(0);
  EXPECT_EQ(meter.EndStep().work, 0);
}

TEST(StepMeterTest, CpuTimeIsUnknownAfterAChangeOfThread) {
  StepMeter meter([] { return cpu_ns; });
  cpu_ns = 1'000;
  meter.EndStep();
  cpu_ns = 9'000;
  std::thread([&] {
    EXPECT_EQ(meter.EndStep().cpu_us, -1);
    cpu_ns += 3'000;
    EXPECT_EQ(meter.EndStep().cpu_us, 3);
  }).join();
  EXPECT_EQ(meter.EndStep().cpu_us, -1);
}

}  // namespace
}  // namespace hvdlite::timeline
