// Commits of a training, kept in memory by a process that outlives its ranks
// (hvdliterun's), and reached from any host: what one rank puts there is there
// when the ranks are started again, though their hosts may be lost.
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

// Tells a rank's process the address of its job's store.
inline constexpr char kCommitStoreVariable[] = "HVDLITE_COMMIT_STORE";

struct StoredCommit {
  uint64_t number = 0;
  std::string bytes;
};

// The newest commit of each name. A thread per client serves it.
//
// What travels is not encrypted. Who does not know the address, of which a
// random part is a secret, can neither read nor write.
class CommitStore {
 public:
  // `host`: the name or address by which the ranks reach this host; with one
  // that is its own alone (127.0.0.1, localhost, or its name where /etc/hosts
  // gives that such an address) nobody else does. Errors:
  // InvalidArgument where no such host is known, ResourceExhausted.
  static absl::StatusOr<std::unique_ptr<CommitStore>> Start(
      const std::string& host);
  // Ends connections, too.
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

// For a rank; both block. A commit whose bytes have not all arrived, or not as
// they were sent, changes nothing; the one before stays until then. `number`:
// larger is newer; one that is there already stays, with success. Errors:
// FailedPrecondition if there is a newer one; PermissionDenied for a store of
// another job; DataLoss for bytes that changed on the way; ResourceExhausted if
// the store has no memory for them; Unavailable if it cannot be reached or does
// not answer for 30 s; InvalidArgument for what is no address.
absl::Status PutCommit(const std::string& address, const std::string& name,
                       uint64_t number, absl::string_view bytes);
// NotFound if there is none of that name; else as above.
absl::StatusOr<StoredCommit> GetCommit(const std::string& address,
                                       const std::string& name);

}  // namespace hvdlite::base
