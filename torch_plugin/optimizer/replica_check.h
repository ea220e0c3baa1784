// ReplicaCheck: compares the parameters of the ranks that train together, now
// and then. ParameterSample: tells whether parameters have changed.
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
  // Of the operations' names: "<prefix>.replicas".
  std::string name_prefix;
  ProcessSet process_set;
  // Compared like parameters.
  NamedParameters buffers;
};

// Compares a hash of the bits: reductions give the same bits on all ranks, and
// so does what follows from them. Config::check says when, by the number of the
// step, which the ranks have agreed on before they come here. One thread at a
// time.
class ReplicaCheck {
 public:
  // What is looked at of each tensor; all of it: part 0 of 1.
  struct Part {
    size_t index = 0;
    size_t count = 1;
  };

  // `world` outlives it.
  ReplicaCheck(const World& world, NamedParameters parameters,
               ReplicaCheckOptions options);

  // Before the update of `step`, the first after `joins` joins being 1.
  // Collective, and blocks, where a check is due. `changed_early`: parameters
  // have changed on this rank between backward() and the end of the reduction.
  // DataLoss, with the same text on all ranks: they differ; then the next
  // call compares them again. Where they have never been the same (since a
  // join) that is a warning only, but for "every": it may be meant.
  absl::Status Run(uint32_t step, int64_t joins, bool changed_early);

 private:
  // Says which tensors differ, where, and why. OK: it is but the NaNs.
  absl::Status CompareEachTensor(Part part, uint32_t step);
  // What is likely to have gone wrong.
  std::string Cause(uint32_t step, bool is_buffer) const;

  const base::Logger& logger_;
  const std::string mode_;
  const ReplicaCheckOptions options_;
  const size_t num_parameters_;
  NamedParameters tensors_;    // parameters, then buffers
  const int64_t first_joins_;  // before this
  int64_t joins_;
  uint32_t next_ = 1;   // step that is checked next
  uint32_t equal_ = 0;  // step before which all ranks were last the same
  bool changed_early_ = false;  // on any rank
};

// Some bits of some parameters. Tells that they have changed if enough
// parameters have, at next to no cost.
class ParameterSample {
 public:
  bool empty() const { return samples_.empty(); }
  void Clear() { samples_.clear(); }
  void Add(const at::Tensor& parameter);
  // Since they were added.
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
