// CommitStore: keeps the commits of a training in the memory of a process that
// outlives the ranks (hvdliterun). Ranks reach it from any host. So a commit
// survives the loss of the host that made it.
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/descriptor.h"
#include "base/mutex.h"

namespace hvdlite::base {

// Holds the address of the job's store, for a rank's process.
inline constexpr char kCommitStoreVariable[] = "HVDLITE_COMMIT_STORE";

struct StoredCommit {
  uint64_t number = 0;
  std::string bytes;
};

// Keeps the newest commit of each name. One thread serves each client.
//
// The traffic is not encrypted. A random part of the address is a secret:
// without it a process can neither read nor write.
class CommitStore {
 public:
  // `host`: the name or address by which the ranks reach this host. With a
  // loopback address (127.0.0.1, localhost, or a name that /etc/hosts maps to
  // one) only this host reaches the store. Errors: InvalidArgument for an
  // unknown host, ResourceExhausted.
  static absl::StatusOr<std::unique_ptr<CommitStore>> Start(
      const std::string& host);
  // Closes the connections, too.
  ~CommitStore();
  CommitStore(const CommitStore&) = delete;
  CommitStore& operator=(const CommitStore&) = delete;

  const std::string& address() const { return address_; }

 private:
  struct Client {
    Descriptor connection;
    bool ended = false;
    std::thread thread;
  };

  CommitStore(Descriptor listener, std::string address, std::string secret);
  void Accept();
  void Serve(const Descriptor& connection);
  void EndClients(bool all);

  const Descriptor listener_;
  const std::string address_;
  const std::string secret_;
  Mutex mutex_;
  std::map<std::string, std::shared_ptr<const StoredCommit>> commits_
      ABSL_GUARDED_BY(mutex_);
  std::list<Client> clients_ ABSL_GUARDED_BY(mutex_);
  std::atomic<bool> ending_ = false;
  std::thread accepting_;
};

// For ranks. PutCommit() and GetCommit() block. A commit that arrives
// incomplete or changed is ignored, and the store keeps the commit before. A
// larger `number` is newer. A commit that is already there stays, and the call
// succeeds.
//
// Errors: FailedPrecondition if the store has a newer commit; PermissionDenied
// if the store belongs to another job; DataLoss if bytes changed in transit;
// ResourceExhausted if the store has no memory for the commit; Unavailable if
// the store cannot be reached or does not answer for 30 s; InvalidArgument if
// `address` is not the address of a store.
absl::Status PutCommit(const std::string& address, const std::string& name,
                       uint64_t number, absl::string_view bytes);
// NotFound if the store has no commit of that name; other errors as above.
absl::StatusOr<StoredCommit> GetCommit(const std::string& address,
                                       const std::string& name);

}  // namespace hvdlite::base
