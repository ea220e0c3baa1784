#include "torch_plugin/optimizer/replica_check.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <hvdlite/ops.h>
#include <hvdlite/world.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "negotiation/protocol/rank_list.h"
#include "torch_plugin/ops/tensors.h"
#include "torch_plugin/throw_status.h"

namespace hvdlite::internal {
namespace {

// Steps between the checks of a long training.
constexpr uint32_t kPeriod = 100;
// Each of these checks compares one of this many parts of each tensor.
constexpr size_t kNumParts = 16;
// Tensors up to this size are always compared as a whole.
constexpr size_t kWholeBytes = 4096;

// Spreads every bit of `value` over all of them.
uint64_t Mix(uint64_t value) {
  value = (value ^ (value >> 32)) * 0xd6e8feb86659fd93;
  value = (value ^ (value >> 29)) * 0xd6e8feb86659fd93;
  return value ^ (value >> 32);
}

// Several independent lanes. Each step of a lane can be undone, so tensors that
// differ in one word never have the same hash. The rotation moves differences
// in the highest bits, such as signs, to lower bits.
uint64_t HashOf(absl::Span<const std::byte> bytes) {
  constexpr size_t kLanes = 8;
  constexpr size_t kBlock = kLanes * sizeof(uint64_t);
  std::array<uint64_t, kLanes> lanes;
  for (size_t lane = 0; lane < kLanes; ++lane) lanes[lane] = Mix(lane + 1);
  const auto add = [&](const std::byte* block) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      uint64_t word = 0;
      std::memcpy(&word, block + lane * sizeof(word), sizeof(word));
      lanes[lane] = std::rotl(lanes[lane] ^ word, 29) * 0x9e3779b97f4a7c15;
    }
  };
  size_t i = 0;
  for (; i + kBlock <= bytes.size(); i += kBlock) add(bytes.data() + i);
  if (i < bytes.size()) {
    std::array<std::byte, kBlock> rest = {};
    std::memcpy(rest.data(), bytes.data() + i, bytes.size() - i);
    add(rest.data());
  }
  uint64_t hash = bytes.size();
  for (const uint64_t lane : lanes) hash = Mix(hash ^ lane);
  return hash;
}

uint64_t HashOf(const at::Tensor& tensor, ReplicaCheck::Part part) {
  if (!tensor.defined() || tensor.numel() == 0) return 0;
  const at::Tensor dense =
      tensor.is_non_overlapping_and_dense() ? tensor : tensor.contiguous();
  const absl::Span<const std::byte> bytes = BytesOf(dense);
  if (part.count == 1 || bytes.size() <= kWholeBytes) return HashOf(bytes);
  const size_t begin = bytes.size() * part.index / part.count;
  const size_t end = bytes.size() * (part.index + 1) / part.count;
  return HashOf(bytes.subspan(begin, end - begin));
}

// The same, but all NaNs count as equal. If a sum has several NaNs, the one
// that results may depend on the rank.
uint64_t HashOfNumbers(const at::Tensor& tensor, ReplicaCheck::Part part) {
  if (!tensor.defined() ||
      (!tensor.is_floating_point() && !tensor.is_complex())) {
    return HashOf(tensor, part);
  }
  const at::NoGradGuard no_grad;
  at::Tensor numbers = tensor.detach().clone();
  if (numbers.is_complex()) {
    numbers = at::view_as_real(numbers.resolve_conj());
  }
  return HashOf(numbers.masked_fill_(at::isnan(numbers),
                                     std::numeric_limits<double>::quiet_NaN()),
                part);
}

// Returns the first step after `step` that is checked.
uint32_t NextCheck(const std::string& mode, uint32_t step) {
  if (mode == "every") return step + 1;
  for (const uint32_t begin : {2, 11}) {
    if (step < begin) return begin;
  }
  if (mode == "start") return std::numeric_limits<uint32_t>::max();
  return (step - 1) / kPeriod * kPeriod + kPeriod + 1;
}

// "rank 1 has a different 'fc.weight' than ranks 0, 2-3"
std::string SidesText(const std::string& tensor,
                      const std::map<uint64_t, std::vector<int>>& sides) {
  const std::vector<int>* most = nullptr;
  for (const auto& [hash, ranks] : sides) {
    if (most == nullptr || ranks.size() > most->size() ||
        (ranks.size() == most->size() && ranks.front() < most->front())) {
      most = &ranks;
    }
  }
  std::vector<int> others;
  for (const auto& [hash, ranks] : sides) {
    if (&ranks != most) others.insert(others.end(), ranks.begin(), ranks.end());
  }
  return absl::StrCat(negotiation::FormatRanks(others),
                      others.size() == 1 ? " has" : " have", " a different '",
                      tensor, "' than ", negotiation::FormatRanks(*most));
}

}  // namespace

ReplicaCheck::ReplicaCheck(const World& world, NamedParameters parameters,
                           ReplicaCheckOptions options)
    : logger_(world.logger()),
      mode_(options.process_set.size() == 1 ? "off" : world.config().check),
      options_(std::move(options)),
      num_parameters_(parameters.size()),
      tensors_(std::move(parameters)),
      first_joins_(world.joins()),
      joins_(first_joins_) {
  tensors_.insert(tensors_.end(), options_.buffers.begin(),
                  options_.buffers.end());
}

absl::Status ReplicaCheck::Run(uint32_t step, int64_t joins,
                               bool changed_early) {
  if (mode_ == "off" || tensors_.empty()) return absl::OkStatus();
  if (joins != std::exchange(joins_, joins)) {
    next_ = 1;
    equal_ = 0;
  }
  if (step < next_) return absl::OkStatus();
  const bool sampled = mode_ == "periodic" && step > 11;
  const Part part =
      sampled ? Part{.index = step / kPeriod % kNumParts, .count = kNumParts}
              : Part{};
  uint64_t all = 0;
  for (const auto& [name, tensor] : tensors_) {
    all = Mix(all ^ HashOf(tensor, part));
  }
  // Exchange the largest hash and, by its complement, the smallest.
  const at::Tensor exchanged = at::empty({3}, at::kLong);
  auto* const numbers = exchanged.data_ptr<int64_t>();
  numbers[0] = static_cast<int64_t>(all);
  numbers[1] = ~numbers[0];
  numbers[2] = changed_early ? 1 : 0;
  const absl::Status status = StatusOfOperation([&] {
    allreduce_(exchanged, AllreduceOptions()
                              .name(options_.name_prefix + ".replicas")
                              .op(ReduceOp::Max)
                              .process_set(options_.process_set));
  });
  if (!status.ok()) return status;
  changed_early_ = numbers[2] != 0;
  if (numbers[0] != ~numbers[1]) {
    const absl::Status differ = CompareEachTensor(part, step);
    const bool tolerated = equal_ == 0 && mode_ != "every" && !changed_early_ &&
                           options_.buffers.empty();
    if (!tolerated || !absl::IsDataLoss(differ)) {
      HVDLITE_RETURN_IF_ERROR(differ);
    } else {
      if (hvdlite::rank() == options_.process_set.ranks().front()) {
        logger_.Warning(differ.message());
      }
      next_ = NextCheck(mode_, step);
      return absl::OkStatus();
    }
  }
  equal_ = step;
  next_ = NextCheck(mode_, step);
  return absl::OkStatus();
}

absl::Status ReplicaCheck::CompareEachTensor(Part part, uint32_t step) {
  const auto columns = static_cast<int64_t>(1 + tensors_.size());
  const at::Tensor mine = at::empty({1, columns}, at::kLong);
  auto* hashes = mine.data_ptr<int64_t>();
  *hashes++ = hvdlite::rank();
  for (const auto& [name, tensor] : tensors_) {
    *hashes++ = static_cast<int64_t>(HashOfNumbers(tensor, part));
  }
  at::Tensor rows;
  const absl::Status status = StatusOfOperation([&] {
    rows = allgather(mine, AllgatherOptions()
                               .name(options_.name_prefix + ".replicas.hashes")
                               .process_set(options_.process_set));
  });
  if (!status.ok()) return status;

  const auto* const numbers = rows.data_ptr<int64_t>();
  size_t first = tensors_.size();
  size_t differing = 0;
  std::map<uint64_t, std::vector<int>> first_sides;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    std::map<uint64_t, std::vector<int>> sides;
    for (int64_t row = 0; row < rows.size(0); ++row) {
      const int64_t* const begin = numbers + row * columns;
      sides[static_cast<uint64_t>(begin[1 + i])].push_back(
          static_cast<int>(begin[0]));
    }
    if (sides.size() < 2) continue;
    if (differing++ > 0) continue;
    first = i;
    first_sides = std::move(sides);
  }
  if (differing == 0) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(
      "DistributedOptimizer '", options_.name_prefix,
      "': the ranks' replicas of the model differ before the update of step ",
      step, equal_ == 0 ? "" : absl::StrCat(", but not before step ", equal_),
      ": ", SidesText(tensors_[first].first, first_sides), " (first of ",
      differing, " that differ of ", tensors_.size(), "). ",
      Cause(step, first >= num_parameters_),
      " HVDLITE_CHECK=off turns this comparison off."));
}

std::string ReplicaCheck::Cause(uint32_t step, bool is_buffer) const {
  if (changed_early_) {
    return "Parameters changed between backward() and the end of the "
           "reduction. Possible cause: the program calls inner().step() "
           "instead of step().";
  }
  if (is_buffer) {
    return "Every rank computes this buffer from its own data. Use "
           "SyncBatchNorm, or broadcast the buffer by broadcast_parameters(), "
           "or leave it out of check_buffers.";
  }
  if (equal_ == 0) {
    return joins_ == first_joins_
               ? "Possible causes: no broadcast_parameters() before the first "
                 "step, or parameters that were changed after it."
               : "Ranks that have joined missed the last steps of the others: "
                 "call broadcast_parameters(*model, join()).";
  }
  if (step == 2) {
    return "The first step had different results. Possible causes: another "
           "learning rate, other options or another state of the optimizer on "
           "some rank (call broadcast_optimizer_state()), or gradients that "
           "were changed between synchronize() and step().";
  }
  return "Possible causes: inner().step() instead of step(), a skipped step or "
         "another learning rate on some rank, or code that changes parameters "
         "or reduced gradients on some ranks only.";
}

void ParameterSample::Add(const at::Tensor& parameter) {
  samples_.push_back({.parameter = parameter,
                      .bytes = parameter.nbytes(),
                      .bits = BitsOf(parameter)});
}

bool ParameterSample::Changed() const {
  return std::any_of(samples_.begin(), samples_.end(),
                     [](const Sample& sample) {
                       return sample.parameter.nbytes() == sample.bytes &&
                              BitsOf(sample.parameter) != sample.bits;
                     });
}

ParameterSample::Bits ParameterSample::BitsOf(const at::Tensor& parameter) {
  Bits bits = {};
  if (parameter.numel() == 0 || !parameter.is_non_overlapping_and_dense()) {
    return bits;
  }
  const absl::Span<const std::byte> bytes = BytesOf(parameter);
  const size_t size = std::min(bytes.size(), sizeof(uint64_t));
  for (size_t i = 0; i < bits.size(); ++i) {
    const size_t begin = (bytes.size() - size) * i / (bits.size() - 1);
    std::memcpy(&bits[i], bytes.data() + begin, size);
  }
  return bits;
}

}  // namespace hvdlite::internal
