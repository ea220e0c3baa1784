// ReplicaCheck: compares the parameters of the ranks from time to time.
// ParameterSample: detects whether parameters have changed.
#pragma once

#include <ATen/core/Tensor.h>
#include <hvdlite/process_set.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "negotiation/world/world.h"
#include "torch_plugin/optimizer/parameters.h"

namespace hvdlite::internal {

struct ReplicaCheckOptions {
  // Prefix of the operations' names: "<prefix>.replicas".
  std::string name_prefix;
  ProcessSet process_set;
  // Compared like parameters.
  NamedParameters buffers;
};

// Compares a hash of the bits. Reductions give the same bits on all ranks, so
// the parameters must have the same bits, too. Config::check determines in
// which steps a check runs. The ranks agree on the number of the step before
// they call Run(). Use it in one thread at a time.
class ReplicaCheck {
 public:
  // The part of each tensor that is compared. Part 0 of 1 is the whole tensor.
  struct Part {
    size_t index = 0;
    size_t count = 1;
  };

  // `world` must outlive this object.
  ReplicaCheck(const World& world, NamedParameters parameters,
               ReplicaCheckOptions options);

  // Call it before the update of `step`; the first step after `joins` joins is
  // 1. If a check is due, it is collective and blocks. `changed_early`:
  // parameters have changed on this rank between backward() and the end of the
  // reduction. Returns DataLoss with the same text on all ranks if parameters
  // differ; the next call compares them again. If they were never equal (since
  // a join) this may be intended, so it is only a warning, except with "every".
  // join) that is a warning only, but for "every": it may be meant.
  absl::Status Run(uint32_t step, int64_t joins, bool changed_early);

 private:
  // Returns which tensors differ, on which ranks, and the likely cause. OK:
  // they differ only in NaNs.
  absl::Status CompareEachTensor(Part part, uint32_t step);
  // The likely cause of a difference.
  std::string Cause(uint32_t step, bool is_buffer) const;

  const base::Logger& logger_;
  const std::string mode_;
  const ReplicaCheckOptions options_;
  const size_t num_parameters_;
  NamedParameters tensors_;    // parameters, then buffers
  const int64_t first_joins_;  // value of joins() at construction
  int64_t joins_;
  uint32_t next_ = 1;   // the next step to check
  uint32_t equal_ = 0;  // the last step before which all ranks were equal
  bool changed_early_ = false;  // true on any rank
};

// Some bits of some parameters. Detects changes of the parameters if enough of
// them have changed, at almost no cost.
class ParameterSample {
 public:
  bool empty() const { return samples_.empty(); }
  void Clear() { samples_.clear(); }
  void Add(const at::Tensor& parameter);
  // Whether a parameter has changed since it was added.
  bool Changed() const;

 private:
  using Bits = std::array<uint64_t, 4>;
  struct Sample {
    at::Tensor parameter;
    size_t bytes = 0;
    Bits bits = {};
  };
  static Bits BitsOf(const at::Tensor& parameter);

  std::vector<Sample> samples_;
};

}  // namespace hvdlite::internal
