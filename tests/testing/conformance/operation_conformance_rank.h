// ConformanceRank: one rank of the suite in operation_conformance.h.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "negotiation/engine/coordinator.h"
#include "tests/testing/conformance/operation_conformance_run.h"

namespace hvdlite::testing {

using negotiation::Coordinator;
using negotiation::Operation;
using negotiation::ProcessSetId;

// All ranks make the same calls, but for what is said to be of one rank alone.
class ConformanceRank {
 public:
  ConformanceRank(Coordinator& coordinator, int rank, int size)
      : coordinator_(coordinator), rank_(rank), size_(size) {}

  Coordinator& coordinator() { return coordinator_; }
  int rank() const { return rank_; }
  int size() const { return size_; }
  std::vector<int> World() const {
    std::vector<int> ranks(size_);
    std::iota(ranks.begin(), ranks.end(), 0);
    return ranks;
  }

  // An operation under a new name.
  OperationCase Case(Collective collective, std::vector<TensorSpec> tensors) {
    OperationCase spec;
    spec.request.collective = collective;
    spec.request.name = absl::StrCat("operation ", next_);
    spec.request.tensors.assign(tensors.begin(), tensors.end());
    spec.members = World();
    spec.seed = next_++;
    return spec;
  }

  // Submits it, if this rank takes part; Finish() tells whether it is right.
  void Start(const OperationCase& spec) {
    if (!spec.TakesPart(rank_)) return;
    auto run = std::make_unique<OperationRun>(
        spec, rank_,
        absl::StrCat("rank ", rank_, " of ", size_, ": ", spec.request.name,
                     " ", std::string(NameOf(spec.request.collective)), " ",
                     std::string(NameOf(spec.request.op))));
    auto completion = coordinator_.Submit(run->MakeOperation());
    ASSERT_TRUE(completion.ok()) << run->label() << completion.status();
    started_.push_back({std::move(run), *std::move(completion)});
  }
  void Finish() {
    for (const Started& one : started_) {
      coordinator_.Wait(*one.completion).IgnoreError();
      one.run->Check(*one.completion);
    }
    started_.clear();
  }
  void Check(const OperationCase& spec) {
    Start(spec);
    Finish();
  }

  // Submits and waits; the status of either.
  absl::Status Status(Operation operation, int64_t* value = nullptr) {
    const auto completion = coordinator_.Submit(std::move(operation));
    if (!completion.ok()) return completion.status();
    absl::Status status = coordinator_.Wait(**completion);
    if (value != nullptr) *value = (*completion)->value();
    return status;
  }

  // It fails on all ranks, with the same text, which names `text`; `change`
  // makes this rank's part in it. The world stays healthy.
  void CheckFails(const OperationCase& spec,
                  const std::function<void(Operation&)>& change,
                  const std::string& text) {
    OperationRun run(spec, rank_, spec.request.name);
    Operation operation = run.MakeOperation();
    change(operation);
    CheckSameError(Status(std::move(operation)), text);
    CheckHealthy();
  }
  void CheckSameError(const absl::Status& status, const std::string& text) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), text))
        << "'" << text << "' is not in: " << status;
    for (const std::string& other : Texts(std::string(status.message()))) {
      EXPECT_EQ(other, std::string(status.message()));
    }
  }
  void CheckHealthy() { Check(Case(Collective::kAllreduce, {{.shape = {3}}})); }

  // What every rank passes.
  std::vector<std::string> Texts(const std::string& text) {
    Operation gather;
    gather.request.name = absl::StrCat("texts ", next_++);
    gather.request.collective = Collective::kAllgather;
    gather.request.tensors = {{DataType::kUint8, {kAnyLength}}};
    gather.inputs = {
        {reinterpret_cast<const std::byte*>(text.data()), text.size()}};
    gather.rows = {static_cast<int64_t>(text.size())};
    std::string all;
    std::vector<int64_t> lengths;
    gather.allocate = [&](const negotiation::RowsByMember& rows) {
      lengths = rows[0];
      all.resize(std::accumulate(lengths.begin(), lengths.end(), size_t{0}));
      return negotiation::Outputs{
          {reinterpret_cast<std::byte*>(all.data()), all.size()}};
    };
    const absl::Status status = Status(std::move(gather));
    EXPECT_TRUE(status.ok()) << status;
    std::vector<std::string> texts;
    size_t begin = 0;
    for (const int64_t length : lengths) {
      texts.push_back(all.substr(begin, length));
      begin += length;
    }
    return texts;
  }

  // ---- Process sets.
  Operation AddOperation(std::vector<int> members) {
    Operation operation;
    operation.request.name = absl::StrCat("add ", next_++);
    operation.request.collective = Collective::kAddProcessSet;
    operation.request.members = std::move(members);
    return operation;
  }
  ProcessSetId Add(std::vector<int> members) {
    int64_t id = 0;
    const absl::Status status = Status(AddOperation(std::move(members)), &id);
    EXPECT_TRUE(status.ok()) << status;
    return static_cast<ProcessSetId>(id);
  }
  Operation RemoveOperation(ProcessSetId id) {
    Operation operation;
    operation.request.name = absl::StrCat("remove ", next_++);
    operation.request.collective = Collective::kRemoveProcessSet;
    operation.request.removed = id;
    return operation;
  }

  // ---- Join.
  int64_t Join() {
    Operation operation;
    operation.request.name = "join";
    operation.request.collective = Collective::kJoin;
    int64_t last = -1;
    const absl::Status status = Status(std::move(operation), &last);
    EXPECT_TRUE(status.ok()) << status;
    return last;
  }

 private:
  struct Started {
    std::unique_ptr<OperationRun> run;
    std::shared_ptr<const negotiation::Completion> completion;
  };

  Coordinator& coordinator_;
  const int rank_;
  const int size_;
  int next_ = 0;
  std::vector<Started> started_;
};

struct OperationBackend {
  std::string name;  // letters and digits
  // Makes a new world of coordinators and runs the body on every rank of it
  // that is in this process.
  std::function<void(const negotiation::CoordinatorOptions& options,
                     const std::function<void(ConformanceRank&)>& body)>
      run_ranks;
};

inline void PrintTo(const OperationBackend& backend, std::ostream* out) {
  *out << backend.name;
}

inline std::string OperationBackendName(
    const ::testing::TestParamInfo<OperationBackend>& info) {
  return info.param.name;
}

class OperationConformance : public ::testing::TestWithParam<OperationBackend> {
 protected:
  // Chunks are small, so that many operations take several.
  void Run(const std::function<void(ConformanceRank&)>& body) {
    negotiation::CoordinatorOptions options;
    options.config.chunk_bytes = 1000;
    options.config.tree_arity = 2;
    options.config.stall_warning_seconds = 20;
    options.config.stall_failure_seconds = 40;
    GetParam().run_ranks(options, body);
  }
};

}  // namespace hvdlite::testing
