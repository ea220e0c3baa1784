// SharedMapping: memory of one process that others can map, too.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace hvdlite::collective {

// Anonymous memory behind a descriptor (memfd): it has no name, so that a crash
// leaves nothing behind, and does not count against the size of /dev/shm. It
// begins with zeros on a page boundary. Thread-safe.
class SharedMapping {
 public:
  // Where a process of the same node finds the memory. Plain bytes, to be sent
  // as such; valid while the mapping exists.
  struct Address {
    uint64_t process = 0;  // tells processes apart, whatever their pids
    uint64_t nonce = 0;    // tells mappings of one process apart
    uint64_t bytes = 0;
    int32_t pid = 0;
    int32_t descriptor = 0;
  };

  // Reserves the memory here and now, on the NUMA node of the calling thread
  // (or as its memory policy says), rather than at the first access, where a
  // lack of it ends in SIGBUS. `bytes` is rounded up to whole pages. Errors:
  // ResourceExhausted, Unavailable.
  static absl::StatusOr<std::shared_ptr<SharedMapping>> Create(size_t bytes);

  // Maps another process's memory; within one process, the same mapping.
  // Errors: Unavailable when that process or its memory cannot be reached from
  // here (another container, another user).
  static absl::StatusOr<std::shared_ptr<SharedMapping>> Attach(
      const Address& address);

  ~SharedMapping();
  SharedMapping(const SharedMapping&) = delete;
  SharedMapping& operator=(const SharedMapping&) = delete;

  absl::Span<std::byte> bytes() const { return bytes_; }
  const Address& address() const { return address_; }

 private:
  SharedMapping(const Address& address, absl::Span<std::byte> bytes,
                bool owner);

  const Address address_;
  const absl::Span<std::byte> bytes_;
  const bool owner_;
};

}  // namespace hvdlite::collective
