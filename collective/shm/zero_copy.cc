#include "collective/shm/zero_copy.h"

#include "base/status_macros.h"

namespace hvdlite::collective {
namespace {

// A hash that is the same in every process, unlike absl::Hash.
uint64_t Mix(uint64_t hash, uint64_t value) {
  // FNV-1a over eight bytes at once; the final shift spreads high bits.
  hash = (hash ^ value) * 0x100000001b3;
  return hash ^ (hash >> 29);
}
constexpr uint64_t kSeed = 0xcbf29ce484222325;

}  // namespace

absl::StatusOr<TensorMemory> TensorMemoryRegistry::Allocate(size_t bytes) {
  HVDLITE_ASSIGN_OR_RETURN(std::shared_ptr<SharedMapping> mapping,
                           SharedMapping::Create(bytes));
  const absl::Span<std::byte> memory = mapping->bytes();
  base::MutexLock lock(&mutex_);
  for (auto entry = by_begin_.begin(); entry != by_begin_.end();) {
    entry = entry->second.expired() ? by_begin_.erase(entry) : ++entry;
  }
  by_begin_[memory.data()] = mapping;
  return TensorMemory{memory, std::move(mapping)};
}

std::shared_ptr<SharedMapping> TensorMemoryRegistry::Find(
    absl::Span<const std::byte> bytes) const {
  base::MutexLock lock(&mutex_);
  auto entry = by_begin_.upper_bound(bytes.data());
  if (entry == by_begin_.begin()) return nullptr;
  std::shared_ptr<SharedMapping> mapping = (--entry)->second.lock();
  if (mapping == nullptr) return nullptr;
  const absl::Span<std::byte> memory = mapping->bytes();
  const bool inside =
      bytes.data() + bytes.size() <= memory.data() + memory.size();
  return inside ? mapping : nullptr;
}

ZeroCopyBuckets::ZeroCopyBuckets(
    int rank, int size, std::shared_ptr<const TensorMemoryRegistry> registry)
    : rank_(rank), size_(size), registry_(std::move(registry)) {}

ZeroCopyNote ZeroCopyBuckets::Describe(absl::Span<const FusedTensor> tensors) {
  // Forgets mappings whose memory has been freed.
  for (auto entry = attached_.begin(); entry != attached_.end();) {
    entry = entry->second.own.expired() ? attached_.erase(entry) : ++entry;
  }
  std::shared_ptr<SharedMapping> mapping;
  uint64_t layout = kSeed;
  for (const FusedTensor& tensor : tensors) {
    if (tensor.output.empty()) continue;
    if (tensor.input.data() != tensor.output.data()) return {};
    if (mapping == nullptr) {
      mapping = registry_->Find(tensor.output);
      if (mapping == nullptr) return {};
    }
    const absl::Span<std::byte> memory = mapping->bytes();
    const std::byte* const begin = tensor.output.data();
    if (begin < memory.data() ||
        begin + tensor.output.size() > memory.data() + memory.size()) {
      return {};
    }
    layout = Mix(layout, static_cast<uint64_t>(begin - memory.data()));
    layout = Mix(layout, tensor.output.size());
  }
  if (mapping == nullptr) return {};
  const auto found = attached_.find(mapping->address().nonce);
  const bool known =
      found != attached_.end() && found->second.own.lock() == mapping;
  return {.eligible = 1,
          .address = mapping->address(),
          .layout = layout,
          .attached = known ? found->second.number : 0};
}

uint64_t ZeroCopyBuckets::NumberOf(absl::Span<const ZeroCopyNote> of_rank) {
  uint64_t number = kSeed;
  for (const ZeroCopyNote& note : of_rank) {
    number = Mix(Mix(number, note.address.process), note.address.nonce);
  }
  return number == 0 ? 1 : number;
}

std::optional<std::vector<std::byte*>> ZeroCopyBuckets::Agree(
    absl::Span<const ZeroCopyNote> of_rank) {
  for (const ZeroCopyNote& note : of_rank) {
    if (note.eligible == 0 || note.layout != of_rank.front().layout ||
        note.address.bytes != of_rank.front().address.bytes) {
      return std::nullopt;
    }
  }
  const uint64_t number = NumberOf(of_rank);
  bool all_attached = true;
  for (const ZeroCopyNote& note : of_rank) {
    all_attached = all_attached && note.attached == number;
  }
  const ZeroCopyNote& own = of_rank[static_cast<size_t>(rank_)];
  if (!all_attached) {
    if (own.attached != number) Attach(of_rank, number);
    return std::nullopt;
  }
  const Attached& attached = attached_.at(own.address.nonce);
  std::vector<std::byte*> begins;
  for (int rank = 0; rank < size_; ++rank) {
    const auto& mapping = attached.of_rank[static_cast<size_t>(rank)];
    begins.push_back(mapping == nullptr ? nullptr : mapping->bytes().data());
  }
  const std::shared_ptr<SharedMapping> mine = attached.own.lock();
  begins[static_cast<size_t>(rank_)] = mine->bytes().data();
  return begins;
}

void ZeroCopyBuckets::Attach(absl::Span<const ZeroCopyNote> of_rank,
                             uint64_t number) {
  absl::StatusOr<std::shared_ptr<SharedMapping>> mine =
      SharedMapping::Attach(of_rank[static_cast<size_t>(rank_)].address);
  if (!mine.ok()) return;
  Attached attached{.own = *mine, .number = number, .of_rank = {}};
  for (int rank = 0; rank < size_; ++rank) {
    if (rank == rank_) {
      attached.of_rank.push_back(nullptr);
      continue;
    }
    auto mapping =
        SharedMapping::Attach(of_rank[static_cast<size_t>(rank)].address);
    if (!mapping.ok()) return;  // buckets are packed instead
    attached.of_rank.push_back(*std::move(mapping));
  }
  attached_[(*mine)->address().nonce] = std::move(attached);
}

}  // namespace hvdlite::collective
