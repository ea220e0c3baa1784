// IdPool decides at the root which requests get ids, and which ids are
// forgotten.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/types/span.h"

namespace hvdlite::negotiation {

// Ids are small numbers, given out from 0 on, and again once they are free.
// Time is counted in uses, one per operation that is decided. So the number of
// ids grows neither with that of operations nor with that of requests. There is
// no I/O, thread or clock.
class IdPool {
 public:
  // An id is forgotten after this number of uses of other ids (or up to an
  // eighth more) since its last use. A request gets an id if it is used again
  // within this number of different requests.
  explicit IdPool(uint64_t max_idle_uses);

  // Whether the request was used a while ago; counts as a use. If two requests
  // have the same fingerprint, the second may get an id at its first use.
  bool IsUsedAgain(uint64_t fingerprint);

  // Returns the lowest free id; counts as a use.
  uint32_t Take();
  void OnUse(uint32_t id);  // for an id from Take
  // How many uses ago it was last used.
  uint64_t IdleUses(uint32_t id) const { return uses_ - last_use_[id]; }

  // This id is to be forgotten next.
  void Release(uint32_t id) { released_.push_back(id); }
  // The ids to forget now, ascending. They stay unused until Return.
  std::vector<uint32_t> TakeForgotten();
  // These ids are forgotten, although TakeForgotten did not return them.
  void Retire(absl::Span<const uint32_t> ids);
  // No rank knows these any more: they can be given out again.
  void Return(absl::Span<const uint32_t> ids);

 private:
  const uint64_t max_idle_uses_;
  // Fingerprints of requests without id: the latest, and the earlier ones.
  absl::flat_hash_set<uint64_t> used_once_;
  absl::flat_hash_set<uint64_t> used_once_before_;
  uint64_t uses_ = 0;
  uint64_t next_sweep_ = 0;          // in uses_
  std::vector<uint64_t> last_use_;   // by id; 0: not in use
  std::vector<uint32_t> free_;       // a heap, lowest first
  std::vector<uint32_t> released_;
};

}  // namespace hvdlite::negotiation
