// Program is what all ranks of a world do in a random test, made from a seed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "negotiation/engine/coordinator.h"
#include "tests/testing/conformance/operation_case.h"

namespace hvdlite::testing {

struct ProgramStep {
  enum class Fault {
    kNone,
    kMismatch,  // rank `faulty` passes another shape
    kRefusal,   // rank `faulty` refuses
    kDoomed,    // rank `faulty` never submits it; the set is removed
    kLate,      // submitted after its set's removal: any result is correct
    kJoined,    // a rank that it needs has joined
  };
  // The runner fills in its process set, and the generator fills in `joined`.
  OperationCase operation;
  int set = 0;  // index in Program::sets; kAdd/kRemoveProcessSet: that one
  Fault fault = Fault::kNone;
  int faulty = -1;

  bool IsSubmittedBy(int rank) const {
    return operation.TakesPart(rank) &&
           !(fault == Fault::kDoomed && rank == faulty);
  }
  bool ends_set() const {
    return operation.request.collective == Collective::kRemoveProcessSet;
  }
};

// Steps are divided into blocks. A rank submits the steps of a block in its own
// order, and may then wait for any previous step that ends. This cannot
// deadlock: all ranks submit all their steps of a block before any rank waits
// for one, and no rank waits for later steps. At the end of the segment, all
// steps are awaited.
struct ProgramSegment {
  bool starts_with_barrier = false;
  std::vector<ProgramStep> steps;
  std::vector<int> block_ends;  // indices of steps; the last is steps.size()
  // Not empty: rank r submits the first steps_before_join[r] steps, and then
  // joins.
  std::vector<int> steps_before_join;
};

struct Program {
  uint64_t seed = 0;
  int size = 1;
  negotiation::CoordinatorOptions options;
  std::vector<std::vector<int>> sets;  // members; the first is the world
  std::vector<ProgramSegment> segments;
};

class ProgramGenerator {
 public:
  ProgramGenerator(uint64_t seed, int size) : random_(seed * 16 + size) {
    program_.seed = seed;
    program_.size = size;
  }

  Program Generate() {
    MakeOptions();
    program_.sets.push_back(Ranks());
    usable_.push_back(0);
    if (program_.size == 3 && Chance(30)) rings_ = 3;
    const int segments = 2 + Below(3);
    for (int i = 0; i < segments; ++i) {
      if (Chance(35)) {
        AddJoinSegment();
        if (Chance(30)) AddJoinSegment();
      } else {
        AddSegment();
      }
    }
    return std::move(program_);
  }

 private:
  int Below(int end) { return static_cast<int>(random_() % end); }
  bool Chance(int percent) { return Below(100) < percent; }
  template <typename T>
  T OneOf(std::initializer_list<T> values) {
    return *(values.begin() + Below(static_cast<int>(values.size())));
  }
  std::vector<int> Ranks() const {
    std::vector<int> ranks(program_.size);
    std::iota(ranks.begin(), ranks.end(), 0);
    return ranks;
  }

  void MakeOptions() {
    auto& options = program_.options;
    options.config.chunk_bytes = OneOf<int64_t>({100, 512, 4096, 1 << 20});
    options.config.min_batch_bytes = OneOf<int64_t>({0, 64, 2000, 1 << 20});
    options.config.fusion_threshold_bytes =
        OneOf<int64_t>({1, 256, 10000, 1 << 26});
    options.config.tree_arity = OneOf<int>({1, 2, 3, 8});
    options.config.join_average_over_world = Chance(30);
    options.config.stall_warning_seconds = 20;
    options.config.stall_failure_seconds = 40;
  }

  // ---- Process sets.
  std::vector<int> RandomMembers() {
    if (rings_ > 0) {
      const int first = --rings_;
      std::vector<int> ring = {first, (first + 1) % 3};
      std::sort(ring.begin(), ring.end());
      return ring;
    }
    std::vector<int> members = Ranks();
    if (Chance(15)) return members;
    std::shuffle(members.begin(), members.end(), random_);
    members.resize(1 + Below(program_.size));
    std::sort(members.begin(), members.end());
    return members;
  }

  ProgramStep AddSetStep() {
    ProgramStep step;
    step.set = static_cast<int>(program_.sets.size());
    program_.sets.push_back(RandomMembers());
    step.operation.members = Ranks();
    step.operation.request.name = absl::StrCat("add.", step.set);
    step.operation.request.collective = Collective::kAddProcessSet;
    step.operation.request.members = program_.sets.back();
    return step;
  }

  ProgramStep RemoveSetStep(int set) {
    ProgramStep step;
    step.set = set;
    step.operation.members = Ranks();
    step.operation.request.name = absl::StrCat("remove.", set);
    step.operation.request.collective = Collective::kRemoveProcessSet;
    return step;
  }

  // ---- Operations.
  TensorSpec RandomTensor(Collective collective) {
    TensorSpec tensor;
    tensor.dtype = static_cast<DataType>(Below(collective::kNumDataTypes));
    if (collective == Collective::kAdasum) {
      tensor.dtype = OneOf({DataType::kFloat32, DataType::kFloat64,
                            DataType::kFloat16, DataType::kBFloat16});
    }
    const bool has_rows = collective == Collective::kReducescatter ||
                          collective == Collective::kAllgather ||
                          collective == Collective::kAlltoall;
    const int dimensions = Below(4);
    for (int i = 0; i < dimensions; ++i) tensor.shape.push_back(Below(6));
    if (Chance(15)) tensor.shape = {500 + Below(3000)};
    if (has_rows && tensor.shape.empty()) tensor.shape = {Below(9)};
    if (has_rows && collective != Collective::kReducescatter) {
      if (tensor.shape[0] >= 500) tensor.shape.push_back(300);
      tensor.shape[0] = kAnyLength;
    }
    return tensor;
  }

  Request RandomRequest(const std::vector<int>& members) {
    Request request;
    request.collective = OneOf({Collective::kAllreduce, Collective::kAllreduce,
                                Collective::kAllreduce, Collective::kBroadcast,
                                Collective::kBarrier, Collective::kAdasum,
                                Collective::kAllgather, Collective::kAlltoall,
                                Collective::kReducescatter});
    if (request.collective == Collective::kBarrier) return request;
    const bool groups = request.collective != Collective::kAlltoall;
    const int tensors = groups && Chance(25) ? 1 + Below(4) : 1;
    for (int i = 0; i < tensors; ++i) {
      request.tensors.push_back(RandomTensor(request.collective));
    }
    if (request.collective == Collective::kBroadcast) {
      request.root_rank = members[Below(static_cast<int>(members.size()))];
    }
    if (request.collective == Collective::kAllreduce ||
        request.collective == Collective::kReducescatter) {
      if (Chance(40)) {
        request.average = Chance(60);
      } else {
        request.op = static_cast<ReduceOp>(Below(collective::kNumReduceOps));
        for (const TensorSpec& tensor : request.tensors) {
          request.op = OpOrSum(tensor.dtype, request.op);
        }
      }
      request.prescale_factor = OneOf({1.0, 1.0, 1.0, 0.5});
      request.postscale_factor = OneOf({1.0, 1.0, 1.0, 2.0, 0.25});
      request.compression =
          static_cast<collective::Compression>(std::max(0, Below(5) - 2));
    }
    return request;
  }

  // Names are used again, usually with the same request, so that they get ids.
  // `shared`: also in several process sets, which needs a barrier in between.
  ProgramStep OperationStep(bool shared) {
    ProgramStep step;
    step.set =
        Chance(40) ? 0 : usable_[Below(static_cast<int>(usable_.size()))];
    OperationCase& operation = step.operation;
    operation.members = program_.sets[step.set];
    std::string& name = operation.request.name;
    const int number = Below(30);
    if (shared && Chance(50)) {
      name = absl::StrCat("shared.", number);
      if (Contains(name)) name = absl::StrCat("once.", next_name_++);
      operation.request = Named(RandomRequest(operation.members), name);
    } else {
      name = absl::StrCat("set", step.set, ".", number);
      if (Contains(name)) name = absl::StrCat("once.", next_name_++);
      if (Chance(70)) {
        std::swap(random_, name_random_);
        random_.seed(program_.seed * 1000 + step.set * 100 + number);
        operation.request = Named(RandomRequest(operation.members), name);
        std::swap(random_, name_random_);
      } else {
        operation.request = Named(RandomRequest(operation.members), name);
      }
    }
    if (operation.request.collective == Collective::kAdasum) {
      operation.request.compression = static_cast<collective::Compression>(
          number % collective::kNumCompressions);
    }
    names_.push_back(operation.request.name);
    operation.seed = static_cast<int>(random_() % 100'000);
    operation.max_rows = OneOf<int64_t>({0, 1, 5});
    operation.average_over_all =
        program_.options.config.join_average_over_world;
    const auto collective = operation.request.collective;
    if ((collective == Collective::kAllreduce ||
         collective == Collective::kAdasum) &&
        Chance(25)) {
      const bool all = Chance(30);
      for (const int rank : operation.members) {
        if (all || Chance(50)) operation.absent.push_back(rank);
      }
    }
    return step;
  }

  static Request Named(Request request, std::string name) {
    request.name = std::move(name);
    return request;
  }
  bool Contains(const std::string& name) const {
    return absl::c_linear_search(names_, name);
  }

  void AddFault(ProgramStep& step) {
    std::vector<int> able;
    for (const int rank : step.operation.members) {
      if (step.operation.TakesPart(rank)) able.push_back(rank);
    }
    if (able.empty() || step.fault != ProgramStep::Fault::kNone) return;
    step.faulty = able[Below(static_cast<int>(able.size()))];
    if (Chance(5)) {
      step.fault = ProgramStep::Fault::kRefusal;
    } else if (Chance(8) && able.size() > 1 &&
               !step.operation.request.tensors.empty()) {
      step.fault = ProgramStep::Fault::kMismatch;
    }
  }

  // ---- Segments.
  void EndBlocks(ProgramSegment& segment) {
    const int longest = OneOf({1, 3, 10, 100});
    const int count = static_cast<int>(segment.steps.size());
    for (int end = 0; end < count;) {
      const int begin = end;
      // A removal begins a block: everything before it is submitted first.
      do {
        ++end;
      } while (end < count && end - begin < longest &&
               !segment.steps[end].ends_set());
      segment.block_ends.push_back(end);
    }
  }

  void AddSegment() {
    ProgramSegment segment;
    names_.clear();
    segment.starts_with_barrier = Chance(60);
    const int steps = 10 + Below(31);
    std::vector<int> added;
    std::vector<int> removed;
    for (int i = 0; i < steps; ++i) {
      if (program_.size > 1 && Chance(i == 0 ? 80 : 7)) {
        segment.steps.push_back(AddSetStep());
        added.push_back(segment.steps.back().set);
      } else if (usable_.size() > 1 && Chance(6)) {
        const int index = 1 + Below(static_cast<int>(usable_.size()) - 1);
        removed.push_back(usable_[index]);
        AddRemoval(segment, index);
      } else {
        segment.steps.push_back(OperationStep(segment.starts_with_barrier));
        AddFault(segment.steps.back());
      }
    }
    usable_.insert(usable_.end(), added.begin(), added.end());
    EndBlocks(segment);
    program_.segments.push_back(std::move(segment));
  }

  // Sometimes adds operations that never become ready, and some that are too
  // late.
  void AddRemoval(ProgramSegment& segment, int index) {
    const int set = usable_[index];
    const std::vector<int> keep = usable_;
    usable_ = {set};
    const auto with_fault = [&](ProgramStep::Fault fault) {
      ProgramStep step;
      do {
        step = OperationStep(segment.starts_with_barrier);
      } while (step.set != set);
      step.fault = fault;
      step.faulty = step.operation.members.front();
      return step;
    };
    if (program_.sets[set].size() > 1 && Chance(50)) {
      segment.steps.push_back(with_fault(ProgramStep::Fault::kDoomed));
    }
    segment.steps.push_back(RemoveSetStep(set));
    if (Chance(50)) {
      ProgramStep late = with_fault(ProgramStep::Fault::kLate);
      segment.steps.push_back(std::move(late));
    }
    usable_ = keep;
    usable_.erase(usable_.begin() + index);
  }

  void AddJoinSegment() {
    ProgramSegment segment;
    names_.clear();
    segment.starts_with_barrier = Chance(30);
    const int steps = 5 + Below(20);
    for (int rank = 0; rank < program_.size; ++rank) {
      segment.steps_before_join.push_back(Chance(20) ? 0 : Below(steps + 1));
    }
    for (int i = 0; i < steps; ++i) {
      ProgramStep step = OperationStep(segment.starts_with_barrier);
      OperationCase& operation = step.operation;
      for (const int rank : operation.members) {
        if (segment.steps_before_join[rank] <= i) {
          operation.joined.push_back(rank);
        }
      }
      std::erase_if(operation.absent, [&](int rank) {
        return absl::c_linear_search(operation.joined, rank);
      });
      const auto collective = operation.request.collective;
      const bool needs_all = collective == Collective::kAlltoall ||
                             collective == Collective::kReducescatter;
      const bool needs_root =
          collective == Collective::kBroadcast &&
          absl::c_linear_search(operation.joined, operation.request.root_rank);
      if (!operation.joined.empty() && (needs_all || needs_root)) {
        step.fault = ProgramStep::Fault::kJoined;
      }
      AddFault(step);
      segment.steps.push_back(std::move(step));
    }
    EndBlocks(segment);
    program_.segments.push_back(std::move(segment));
  }

  std::mt19937_64 random_;
  std::mt19937_64 name_random_;
  Program program_;
  std::vector<int> usable_;         // process sets that operations may use
  std::vector<std::string> names_;  // of the current segment
  int next_name_ = 0;
  int rings_ = 0;  // remaining sets of a ring of three ranks
};

}  // namespace hvdlite::testing
