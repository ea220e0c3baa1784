// DeathWatch: learns that processes of this node have ended.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/descriptor.h"

namespace hvdlite::negotiation {

// One thread at a time, but for descriptor().
class DeathWatch {
 public:
  // Watches `processes`, which are alive; this process itself is left out, and
  // so is everything where the system does not offer it (Linux before 5.3, some
  // sandboxes). Errors: ResourceExhausted when there are no descriptors left,
  // Unavailable if a process has ended already.
  static absl::StatusOr<std::unique_ptr<DeathWatch>> Create(
      absl::Span<const pid_t> processes);

  // Readable while Next() has something.
  int descriptor() const { return epoll_.get(); }

  // The index of a process that has ended, each once.
  std::optional<size_t> Next();

 private:
  explicit DeathWatch(base::Descriptor epoll) : epoll_(std::move(epoll)) {}
  absl::Status Add(size_t index, pid_t process);

  const base::Descriptor epoll_;
  std::vector<base::Descriptor> processes_;  // by index
};

}  // namespace hvdlite::negotiation
