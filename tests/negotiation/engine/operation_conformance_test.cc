// Whole operations in process: every rank a coordinator.
#include "tests/testing/conformance/operation_conformance.h"

#include "tests/testing/worlds/coordinated_world.h"

namespace hvdlite::testing {
namespace {

OperationBackend InProcessRanks(int size) {
  return {
      .name = absl::StrCat("Ranks", size),
      .run_ranks = [size](const negotiation::CoordinatorOptions& options,
                          const std::function<void(ConformanceRank&)>& body) {
        CoordinatedWorld world(size, options);
        world.OnEveryRank([&](int rank) {
          ConformanceRank self(world[rank], rank, size);
          body(self);
        });
      }};
}

INSTANTIATE_TEST_SUITE_P(InProcess, OperationConformance,
                         ::testing::Values(InProcessRanks(1), InProcessRanks(2),
                                           InProcessRanks(3), InProcessRanks(4),
                                           InProcessRanks(8)),
                         OperationBackendName);

}  // namespace
}  // namespace hvdlite::testing
