// Whole operations and random programs over MPI, one rank per process.
#include <gtest/gtest.h>

#include <functional>
#include <memory>

#include "base/clock.h"
#include "base/logging.h"
#include "collective/mpi/mpi_communicator.h"
#include "negotiation/channel/control_channel.h"
#include "tests/testing/conformance/operation_conformance.h"
#include "tests/testing/conformance/program.h"
#include "tests/testing/conformance/program_runner.h"

namespace hvdlite::testing {
namespace {

constexpr int kPrograms = 25;

// Runs the body with a coordinator of a new world.
void OverMpi(const negotiation::CoordinatorOptions& options,
             const std::function<void(ConformanceRank&)>& body) {
  base::SteadyClock clock;
  base::Logger logger(base::Severity::kWarning, -1);
  const auto session = collective::MpiSession::Start().value();
  const auto communicator = collective::CreateMpiCommunicator().value();
  const auto channel = negotiation::CreateMpiChannel().value();
  const auto coordinator = std::make_unique<Coordinator>(
      options, negotiation::CoordinatorEnvironment{
                   *channel, *communicator, session->topology(), clock, logger,
                   [](const absl::Status&) {}});
  ConformanceRank self(*coordinator, communicator->rank(),
                       communicator->size());
  body(self);
  const absl::Status status =
      coordinator->Shutdown("the test is over", absl::InfiniteDuration(), {});
  ASSERT_TRUE(status.ok()) << status;
}

INSTANTIATE_TEST_SUITE_P(Mpi, OperationConformance,
                         ::testing::Values(OperationBackend{"World", OverMpi}),
                         OperationBackendName);

TEST(MpiProgramTest, RandomProgramsGiveWhatTheyMust) {
  int size = 0;
  OverMpi({}, [&](ConformanceRank& self) { size = self.size(); });
  for (uint64_t seed = 1; seed <= kPrograms; ++seed) {
    const Program program = ProgramGenerator(seed, size).Generate();
    OverMpi(program.options, [&](ConformanceRank& self) {
      ProgramRunner(program, self.coordinator(), self.rank()).Run();
    });
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace hvdlite::testing
