#include "collective/shm/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <initializer_list>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <type_traits>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/descriptor.h"
#include "base/mutex.h"
#include "base/status_macros.h"

namespace hvdlite::collective {
namespace {

constexpr uint64_t kNoLimit = std::numeric_limits<uint64_t>::max();

// nullopt if there is no such file, or if it contains "max".
std::optional<uint64_t> NumberIn(const std::string& path) {
  std::ifstream file(path);
  std::string word;
  uint64_t number = 0;
  if (!(file >> word) || !absl::SimpleAtoi(word, &number)) return std::nullopt;
  return number;
}

// Sum of the lines "<name> <number>" with the given names.
uint64_t SumOfLines(const std::string& path,
                    std::initializer_list<absl::string_view> names) {
  std::ifstream file(path);
  std::string name;
  uint64_t sum = 0;
  for (uint64_t number = 0; file >> name >> number;) {
    if (absl::c_linear_search(names, name)) sum += number;
  }
  return sum;
}

uint64_t Left(uint64_t limit, uint64_t used, uint64_t reclaimable) {
  used -= std::min(used, reclaimable);
  return limit - std::min(limit, used);
}

// Memory that the limit of one cgroup leaves.
uint64_t LeftInVersion2(const std::string& group) {
  const auto limit = NumberIn(group + "/memory.max");
  const auto used = NumberIn(group + "/memory.current");
  if (!limit.has_value() || !used.has_value()) return kNoLimit;
  return Left(*limit, *used,
              SumOfLines(group + "/memory.stat",
                         {"active_file", "inactive_file", "slab_reclaimable"}));
}

uint64_t LeftInVersion1(const std::string& group) {
  const auto limit = NumberIn(group + "/memory.limit_in_bytes");
  const auto used = NumberIn(group + "/memory.usage_in_bytes");
  if (!limit.has_value() || !used.has_value()) return kNoLimit;
  return Left(*limit, *used,
              SumOfLines(group + "/memory.stat",
                         {"total_active_file", "total_inactive_file"}));
}

uint64_t LeftInCgroups(const std::string& root) {
  uint64_t left = kNoLimit;
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    // "4:memory:/job/task", or "0::/job/task" in version 2.
    const std::vector<std::string> words =
        absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (words.size() != 3) continue;
    const bool version2 = words[1].empty();
    const std::vector<absl::string_view> controllers =
        absl::StrSplit(words[1], ',');
    if (!version2 && !absl::c_linear_search(controllers, "memory")) continue;
    // The group and its ancestors. In a container the mount may begin at the
    // group itself; then only its top level can be read.
    const std::string mount =
        absl::StrCat(root, "/sys/fs/cgroup", version2 ? "" : "/memory");
    std::string path = words[2] == "/" ? "" : words[2];
    while (true) {
      left = std::min(left, version2 ? LeftInVersion2(mount + path)
                                     : LeftInVersion1(mount + path));
      if (path.empty()) break;
      const size_t slash = path.rfind('/');
      path.resize(slash == std::string::npos ? 0 : slash);
    }
  }
  return left;
}

// Memory available without swapping; all memory if the system does not report
// it.
uint64_t LeftInSystem(const std::string& root) {
  std::ifstream meminfo(root + "/proc/meminfo");
  for (std::string line; std::getline(meminfo, line);) {
    const std::vector<absl::string_view> words =
        absl::StrSplit(line, ' ', absl::SkipEmpty());
    uint64_t kilobytes = 0;
    if (words.size() >= 2 && words[0] == "MemAvailable:" &&
        absl::SimpleAtoi(words[1], &kilobytes)) {
      return kilobytes << 10;
    }
  }
  return static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) *
         static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

std::string LastError() { return std::strerror(errno); }

uint64_t RandomNumber() {
  uint64_t number = 0;
  // After boot, getrandom() returns up to 256 bytes completely.
  if (getrandom(&number, sizeof(number), 0) != sizeof(number)) {
    number = (static_cast<uint64_t>(getpid()) << 32) ^
             reinterpret_cast<uintptr_t>(&number);
  }
  return number;
}

uint64_t ThisProcess() {
  static const uint64_t number = RandomNumber();
  return number;
}

// Mappings that threads of this process attach to. Threads must see the same
// addresses, since ThreadSanitizer identifies memory by its address. Contains
// only live mappings; the key is the nonce.
struct LocalMappings {
  base::Mutex mutex;
  std::map<uint64_t, std::weak_ptr<SharedMapping>> by_nonce
      ABSL_GUARDED_BY(mutex);
};
LocalMappings& ThisProcessesMappings() {
  static LocalMappings* const mappings = new LocalMappings;
  return *mappings;
}

absl::StatusOr<absl::Span<std::byte>> Map(int descriptor, size_t bytes) {
  void* const memory =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (memory == MAP_FAILED) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "mapping ", bytes, " bytes of shared memory failed: ", LastError()));
  }
  // A hint: large pages, if the system offers them for shared memory.
  madvise(memory, bytes, MADV_HUGEPAGE);
  return absl::MakeSpan(static_cast<std::byte*>(memory), bytes);
}

// Reserves in pieces, since a signal undoes the piece in progress.
absl::Status Reserve(int descriptor, size_t bytes) {
  constexpr size_t kPieceBytes = size_t{64} << 20;
  size_t begin = 0;
  while (begin < bytes) {
    const size_t piece = std::min(kPieceBytes, bytes - begin);
    const int error = posix_fallocate(descriptor, static_cast<off_t>(begin),
                                      static_cast<off_t>(piece));
    if (error == 0) begin += piece;
    if (error != 0 && error != EINTR) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "reserving ", bytes,
          " bytes of shared memory failed: ", std::strerror(error)));
    }
  }
  return absl::OkStatus();
}

// Identifies the memory behind a descriptor. So other memory is never mistaken
// for it, even if process ids are from another namespace.
absl::StatusOr<uint64_t> Inode(int descriptor) {
  struct stat status = {};
  if (fstat(descriptor, &status) != 0) {
    return absl::UnavailableError(absl::StrCat("fstat failed: ", LastError()));
  }
  return static_cast<uint64_t>(status.st_ino);
}

// Returns each rank's `mine`, by rank.
template <typename T>
absl::StatusOr<std::vector<T>> GatherFromAll(Communicator& communicator,
                                             const T& mine) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::vector<T> all(static_cast<size_t>(communicator.size()));
  all[static_cast<size_t>(communicator.rank())] = mine;
  const std::vector<size_t> bytes(all.size(), sizeof(T));
  HVDLITE_RETURN_IF_ERROR(communicator.Allgather(
      absl::MakeSpan(reinterpret_cast<std::byte*>(all.data()),
                     all.size() * sizeof(T)),
      bytes));
  return all;
}

// All ranks of the node reserve at the same time.
absl::StatusOr<std::shared_ptr<SharedMapping>> ReserveSegment(
    size_t bytes, size_t num_ranks, const std::string& file_system_root) {
  const size_t available = AvailableMemory(file_system_root);
  if (bytes > available / num_ranks) {
    return absl::ResourceExhaustedError(
        absl::StrCat(num_ranks, " ranks need ", bytes,
                     " bytes of shared memory each, but only ", available,
                     " bytes of memory are available to them"));
  }
  return SharedMapping::Create(bytes);
}

}  // namespace

size_t AvailableMemory(const std::string& root) {
  return std::min(LeftInSystem(root), LeftInCgroups(root));
}

SharedMapping::SharedMapping(const Address& address,
                             absl::Span<std::byte> bytes, bool owner)
    : address_(address), bytes_(bytes), owner_(owner) {}

SharedMapping::~SharedMapping() {
  munmap(bytes_.data(), bytes_.size());
  if (!owner_) return;
  {
    LocalMappings& local = ThisProcessesMappings();
    base::MutexLock lock(&local.mutex);
    local.by_nonce.erase(address_.nonce);
  }
  close(address_.descriptor);  // now the nonce may be reused
}

absl::StatusOr<std::shared_ptr<SharedMapping>> SharedMapping::Create(
    size_t bytes) {
  // Reserving more memory than available would not fail: the kernel would kill
  // processes.
  if (const size_t available = AvailableMemory(); bytes > available) {
    return absl::ResourceExhaustedError(
        absl::StrCat(bytes, " bytes of shared memory are needed, but only ",
                     available, " bytes of memory are available"));
  }
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  bytes = std::max<size_t>(1, (bytes + page - 1) / page) * page;
  base::Descriptor descriptor(memfd_create("hvdlite", MFD_CLOEXEC));
  if (!descriptor.valid()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("memfd_create failed: ", LastError()));
  }
  HVDLITE_RETURN_IF_ERROR(Reserve(descriptor.get(), bytes));
  HVDLITE_ASSIGN_OR_RETURN(const absl::Span<std::byte> memory,
                           Map(descriptor.get(), bytes));
  HVDLITE_ASSIGN_OR_RETURN(const uint64_t inode, Inode(descriptor.get()));
  const Address address = {.process = ThisProcess(),
                           .nonce = inode,
                           .bytes = bytes,
                           .pid = getpid(),
                           .descriptor = descriptor.release()};
  std::shared_ptr<SharedMapping> mapping(
      new SharedMapping(address, memory, /*owner=*/true));
  LocalMappings& local = ThisProcessesMappings();
  base::MutexLock lock(&local.mutex);
  local.by_nonce[address.nonce] = mapping;
  return mapping;
}

absl::StatusOr<std::shared_ptr<SharedMapping>> SharedMapping::Attach(
    const Address& address) {
  // A forked child has the same number, but not the mappings.
  if (address.process == ThisProcess() && address.pid == getpid()) {
    LocalMappings& local = ThisProcessesMappings();
    base::MutexLock lock(&local.mutex);
    const auto found = local.by_nonce.find(address.nonce);
    std::shared_ptr<SharedMapping> mapping =
        found == local.by_nonce.end() ? nullptr : found->second.lock();
    if (mapping != nullptr) return mapping;
    return absl::UnavailableError(
        "another thread of this process has freed its memory");
  }
  const std::string path =
      absl::StrCat("/proc/", address.pid, "/fd/", address.descriptor);
  base::Descriptor descriptor(open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!descriptor.valid()) {
    return absl::UnavailableError(absl::StrCat(
        "cannot open ", path, ", the memory of a peer: ", LastError()));
  }
  HVDLITE_ASSIGN_OR_RETURN(const uint64_t inode, Inode(descriptor.get()));
  if (inode != address.nonce) {
    return absl::UnavailableError(
        absl::StrCat(path,
                     " is not the peer's memory; the peer probably runs in "
                     "another container"));
  }
  HVDLITE_ASSIGN_OR_RETURN(const absl::Span<std::byte> memory,
                           Map(descriptor.get(), address.bytes));
  return std::shared_ptr<SharedMapping>(
      new SharedMapping(address, memory, /*owner=*/false));
}

absl::StatusOr<std::unique_ptr<NodeMemory>> NodeMemory::Create(
    Communicator& communicator, absl::Span<const int> node, size_t bytes,
    const std::string& file_system_root) {
  absl::StatusOr<std::shared_ptr<SharedMapping>> own =
      ReserveSegment(bytes, node.size(), file_system_root);
  HVDLITE_RETURN_IF_ERROR(AgreeOn(communicator, own.status()));
  HVDLITE_ASSIGN_OR_RETURN(const auto addresses,
                           GatherFromAll(communicator, (*own)->address()));
  int place = 0;
  std::vector<std::shared_ptr<SharedMapping>> segments;
  absl::Status attached;
  for (const int rank : node) {
    const bool is_own = rank == communicator.rank();
    if (is_own) place = static_cast<int>(segments.size());
    absl::StatusOr<std::shared_ptr<SharedMapping>> segment =
        is_own ? std::move(own)
               : SharedMapping::Attach(addresses[static_cast<size_t>(rank)]);
    attached = segment.status();
    if (!attached.ok()) break;
    segments.push_back(*std::move(segment));
  }
  // Also keeps all ranks here until every rank has attached.
  HVDLITE_RETURN_IF_ERROR(AgreeOn(communicator, attached));
  return std::unique_ptr<NodeMemory>(
      new NodeMemory(place, std::move(segments)));
}

absl::StatusOr<std::unique_ptr<NodeMemory>> NodeMemory::Create(
    Communicator& node, size_t bytes) {
  std::vector<int> all(static_cast<size_t>(node.size()));
  std::iota(all.begin(), all.end(), 0);
  return Create(node, all, bytes);
}

}  // namespace hvdlite::collective
