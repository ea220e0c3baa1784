// A world whose last rank does not submit what the others wait for. "hang
// asleep" asks what all ranks are doing, and then sleeps in a user function.
// "hang stopped" stops itself. The others print on stderr how the wait ends.
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <string>
#include <vector>

#include "base/config/config_loader.h"
#include "base/environment.h"
#include "negotiation/engine/coordinator.h"
#include "negotiation/world/world.h"
#include "tests/testing/fakes/sum_operation.h"

// It is outside of all namespaces, like a user's function.
__attribute__((noinline)) void ValidateOnOneRankAlone() {
  while (pause() < 0 && errno == EINTR) {
  }
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const auto config = hvdlite::LoadConfig(hvdlite::base::ProcessEnvironment());
  if (!config.ok()) return 3;
  const auto world = hvdlite::internal::World::Start(*config);
  if (!world.ok()) return 3;
  hvdlite::negotiation::Coordinator& coordinator = (*world)->coordinator();
  std::vector<float> values(1, 1);
  (void)hvdlite::testing::SubmitAndWait(
      coordinator, hvdlite::testing::Sum("together", values));
  const auto& topology = (*world)->topology();
  if (topology.rank == topology.size - 1) {
    if (std::string(argv[1]) == "stopped") {
      std::raise(SIGSTOP);
    } else {
      std::raise(SIGUSR2);
      ValidateOnOneRankAlone();
    }
  }
  const absl::Status status = hvdlite::testing::SubmitAndWait(
      coordinator, hvdlite::testing::Sum("validation", values));
  std::fprintf(stderr, "the wait has ended: %s\n", status.ToString().c_str());
  _exit(4);
}
