// IdPool: at the root, which requests get ids, and which ids are forgotten.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/types/span.h"

namespace hvdlite::negotiation {

// Ids are small numbers: given out from 0 on, and again once they are free.
// "For a while" is counted in uses, one per operation that is decided; so the
// number of ids does not grow with that of operations or of requests. Pure.
class IdPool {
 public:
  // An id is forgotten when that many other uses, or an eighth more, have
  // followed its last one. A request that is used again within as many
  // different ones is worth an id.
  explicit IdPool(uint64_t max_idle_uses);

  // Whether the request was used a while ago; it counts as used. Of different
  // requests with one fingerprint the second may get an id at its first use.
  bool IsUsedAgain(uint64_t fingerprint);

  // An id that nobody uses, the lowest; it counts as used.
  uint32_t Take();
  void OnUse(uint32_t id);  // of an id that was taken
  // How many uses ago it was used last.
  uint64_t IdleUses(uint32_t id) const { return uses_ - last_use_[id]; }

  // This id is to be forgotten next.
  void Release(uint32_t id) { released_.push_back(id); }
  // The ids to forget now, ascending; they are not used until Return.
  std::vector<uint32_t> TakeForgotten();
  // These are forgotten without that TakeForgotten has said so.
  void Retire(absl::Span<const uint32_t> ids);
  // No rank knows these any more: they can be given out again.
  void Return(absl::Span<const uint32_t> ids);

 private:
  const uint64_t max_idle_uses_;
  // Fingerprints of requests without id: the latest, and those before them.
  absl::flat_hash_set<uint64_t> used_once_;
  absl::flat_hash_set<uint64_t> used_once_before_;
  uint64_t uses_ = 0;
  uint64_t next_sweep_ = 0;          // in uses_
  std::vector<uint64_t> last_use_;   // by id; 0: not in use
  std::vector<uint32_t> free_;       // a heap, the lowest in front
  std::vector<uint32_t> released_;
};

}  // namespace hvdlite::negotiation
