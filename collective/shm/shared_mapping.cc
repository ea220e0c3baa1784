#include "collective/shm/shared_mapping.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/descriptor.h"
#include "base/mutex.h"
#include "base/status_macros.h"
#include "collective/shm/available_memory.h"

namespace hvdlite::collective {
namespace {

std::string LastError() { return std::strerror(errno); }

uint64_t RandomNumber() {
  uint64_t number = 0;
  // Up to 256 bytes come whole, once the system has booted.
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

// Mappings that threads of this process attach to: they are to see the same
// addresses (ThreadSanitizer tells places apart by their address). Only what
// is alive; looked up by nonce.
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
  // Large pages where the system offers them for shared memory; a hint.
  madvise(memory, bytes, MADV_HUGEPAGE);
  return absl::MakeSpan(static_cast<std::byte*>(memory), bytes);
}

// Piece by piece, since a signal undoes the piece that is being reserved.
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

// Identifies the memory behind a descriptor, so that nothing else is taken for
// it where process ids are not what they seem.
absl::StatusOr<uint64_t> Inode(int descriptor) {
  struct stat status = {};
  if (fstat(descriptor, &status) != 0) {
    return absl::UnavailableError(absl::StrCat("fstat failed: ", LastError()));
  }
  return static_cast<uint64_t>(status.st_ino);
}

}  // namespace

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
  close(address_.descriptor);  // now the nonce can be given again
}

absl::StatusOr<std::shared_ptr<SharedMapping>> SharedMapping::Create(
    size_t bytes) {
  // Reserving more than there is would not fail: it would have processes
  // killed.
  if (const size_t available = AvailableMemory(); bytes > available) {
    return absl::ResourceExhaustedError(
        absl::StrCat(bytes, " bytes of shared memory are wanted, but only ",
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
  // A forked child shares the number, but not the mappings.
  if (address.process == ThisProcess() && address.pid == getpid()) {
    LocalMappings& local = ThisProcessesMappings();
    base::MutexLock lock(&local.mutex);
    const auto found = local.by_nonce.find(address.nonce);
    std::shared_ptr<SharedMapping> mapping =
        found == local.by_nonce.end() ? nullptr : found->second.lock();
    if (mapping != nullptr) return mapping;
    return absl::UnavailableError(
        "the memory of another thread of this process is gone");
  }
  const std::string path =
      absl::StrCat("/proc/", address.pid, "/fd/", address.descriptor);
  base::Descriptor descriptor(open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!descriptor.valid()) {
    return absl::UnavailableError(absl::StrCat(
        "opening ", path, ", a peer's memory, failed: ", LastError()));
  }
  HVDLITE_ASSIGN_OR_RETURN(const uint64_t inode, Inode(descriptor.get()));
  if (inode != address.nonce) {
    return absl::UnavailableError(
        absl::StrCat(path,
                     " is not the peer's memory: it runs in another "
                     "container, probably"));
  }
  HVDLITE_ASSIGN_OR_RETURN(const absl::Span<std::byte> memory,
                           Map(descriptor.get(), address.bytes));
  return std::shared_ptr<SharedMapping>(
      new SharedMapping(address, memory, /*owner=*/false));
}

}  // namespace hvdlite::collective
