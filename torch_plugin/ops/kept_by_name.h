// KeptByName: keeps an object from one call of an operation for the next call
// of the same name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "base/mutex.h"

namespace hvdlite::internal {

// Keeps up to `limit` values, each under a name within a process set. If there
// are more, drops a value whose name was not used recently. So names that are
// used once do not take memory for long. Taking a value and putting it back
// allocates nothing. Thread-safe.
template <typename Value>
class KeptByName {
 public:
  explicit KeptByName(size_t limit) : limit_(limit) {
    places_.reserve(limit);
    index_.reserve(limit);
  }

  // Returns the value of this name, which the caller then owns. Null if there
  // is none, or if another caller has taken it.
  std::unique_ptr<Value> Take(absl::string_view name, uint32_t process_set) {
    base::MutexLock lock(&mutex_);
    const auto found = index_.find({name, process_set});
    if (found == index_.end()) return nullptr;
    Place& place = places_[found->second];
    place.asked_for = true;
    return std::move(place.value);
  }

  // Keeps `value` for the next Take, unless there is already another value.
  void Put(absl::string_view name, uint32_t process_set,
           std::unique_ptr<Value> value) {
    // Destroyed after the lock is released.
    std::unique_ptr<Value> dropped;
    base::MutexLock lock(&mutex_);
    const auto found = index_.find({name, process_set});
    if (found != index_.end()) {
      std::unique_ptr<Value>& kept = places_[found->second].value;
      dropped = std::exchange(kept, std::move(value));
      return;
    }
    // Make the name before taking a place: a place always has a name.
    auto kept_name = std::make_unique<std::string>(name);
    const size_t number = FreePlace();
    Place& place = places_[number];
    dropped = std::move(place.value);
    place = {std::move(kept_name), process_set, std::move(value),
             /*asked_for=*/false};
    index_[{*place.name, process_set}] = number;
  }

 private:
  using Key = std::pair<absl::string_view, uint32_t>;  // name, process set
  struct Place {
    std::unique_ptr<std::string> name;  // keys refer to it
    uint32_t process_set = 0;
    std::unique_ptr<Value> value;  // null: a caller has taken it
    bool asked_for = false;        // since hand_ last passed
  };

  // Returns the number of a place that no key refers to.
  size_t FreePlace() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (places_.size() < limit_) {
      places_.emplace_back();
      return places_.size() - 1;
    }
    while (std::exchange(places_[hand_].asked_for, false)) Advance();
    const size_t number = hand_;
    Advance();
    index_.erase({*places_[number].name, places_[number].process_set});
    return number;
  }
  void Advance() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    hand_ = (hand_ + 1) % limit_;
  }

  const size_t limit_;
  base::Mutex mutex_;
  std::vector<Place> places_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<Key, size_t> index_ ABSL_GUARDED_BY(mutex_);
  // Where the search for a value to drop begins.
  size_t hand_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace hvdlite::internal
