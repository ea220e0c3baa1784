// Memory that processes of a host share: its available size, mappings, and
// segments for the ranks of a node.
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

// Bytes that this process can use without swapping and without being killed:
// what the system has available, or the rest of the memory limits of its cgroup
// (version 1 or 2) and that cgroup's ancestors, whichever is less. File pages
// count as available, since the system drops them when memory is needed.
// Unreadable limits are ignored. `root` is the root of the file system; tests
// use their own.
size_t AvailableMemory(const std::string& root = "/");

// Anonymous shared memory (memfd). It has no name, so a crash leaves nothing
// behind, and it does not count against the size of /dev/shm. It is initially
// zero and page-aligned. Thread-safe.
class SharedMapping {
 public:
  // Tells a process of the same node where to find the memory. Plain bytes that
  // can be sent; valid while the mapping exists.
  struct Address {
    uint64_t process = 0;  // identifies the process, even if pids are equal
    uint64_t nonce = 0;    // identifies a mapping in its process
    uint64_t bytes = 0;
    int32_t pid = 0;
    int32_t descriptor = 0;
  };

  // Reserves the memory immediately, on the NUMA node of the calling thread (or
  // by its memory policy). Without that, lack of memory would cause SIGBUS at
  // the first access. `bytes` is rounded up to whole pages. Errors:
  // ResourceExhausted, Unavailable.
  static absl::StatusOr<std::shared_ptr<SharedMapping>> Create(size_t bytes);

  // Maps another process's memory; within one process, returns the same
  // mapping. Unavailable if that process or its memory cannot be accessed
  // (another container, another user).
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

// One segment per rank, all of the same size. Every rank sees all segments, at
// its own addresses. Users must synchronise their accesses.
class NodeMemory {
 public:
  // Collective over `communicator`, for all its nodes at once. `node` lists, in
  // ascending order, the ranks that probably share memory with this one,
  // including itself; it is the same on all of them. Create() tests whether
  // they do. Each rank reserves its own segment of `bytes` zeros, so the
  // segment is on its own NUMA node. The node must have enough memory for the
  // segments of all its ranks (see AvailableMemory() for `file_system_root`).
  // Errors are the same on all ranks of `communicator`: Unavailable names a
  // rank and its reason, and nothing is kept. `communicator` is not needed
  // afterwards.
  static absl::StatusOr<std::unique_ptr<NodeMemory>> Create(
      Communicator& communicator, absl::Span<const int> node, size_t bytes,
      const std::string& file_system_root = "/");

  // The same if all ranks of the communicator are on one node.
  static absl::StatusOr<std::unique_ptr<NodeMemory>> Create(Communicator& node,
                                                            size_t bytes);

  // Rank and number of ranks within the node.
  int rank() const { return rank_; }
  int size() const { return static_cast<int>(segments_.size()); }

  // The segment of `rank`: page-aligned, at least the `bytes` given to
  // Create().
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
