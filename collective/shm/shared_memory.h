// Memory that the processes of a host share: how much there is, a mapping of
// it, and the segments of a node's ranks.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "collective/communicator.h"

namespace hvdlite::collective {

// Bytes that this process can have without swapping, and without being killed
// for them: what the system has available, or what the memory limits of its
// cgroup (version 1 or 2) and of those above leave, if that is less. File pages
// count as available, since the system drops them where memory is wanted. What
// cannot be read does not limit. `root` is that of the file system: another one
// in tests.
size_t AvailableMemory(const std::string& root = "/");

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

// A segment per rank, all of the same size, which every rank sees (at addresses
// of its own). Synchronisation is up to its users.
class NodeMemory {
 public:
  // Collective over `communicator`, for all its nodes at once. `node` are the
  // ranks that are thought to share memory with this one, ascending, itself
  // among them, and the same on all of them; whether they do is found out here.
  // Each rank reserves its own segment of `bytes` zeros, which so lies on its
  // own NUMA node, unless the node has too little memory for the segments of
  // all its ranks (see AvailableMemory for `file_system_root`). Errors, the
  // same on all ranks of `communicator`: Unavailable, naming one of them and
  // its reason; nothing is kept then. `communicator` is not needed afterwards.
  static absl::StatusOr<std::unique_ptr<NodeMemory>> Create(
      Communicator& communicator, absl::Span<const int> node, size_t bytes,
      const std::string& file_system_root = "/");

  // The same where all ranks of the communicator are on one node.
  static absl::StatusOr<std::unique_ptr<NodeMemory>> Create(Communicator& node,
                                                            size_t bytes);

  // Counted within the node.
  int rank() const { return rank_; }
  int size() const { return static_cast<int>(segments_.size()); }

  // That of `rank`; at least the `bytes` given to Create, page-aligned.
  absl::Span<std::byte> segment(int rank) const {
    return segments_[static_cast<size_t>(rank)]->bytes();
  }

 private:
  NodeMemory(int rank, std::vector<std::shared_ptr<SharedMapping>> segments)
      : rank_(rank), segments_(std::move(segments)) {}

  const int rank_;
  const std::vector<std::shared_ptr<SharedMapping>> segments_;
};

}  // namespace hvdlite::collective
