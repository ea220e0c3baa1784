// Runs a Program on one rank, and compares all outputs with the expected ones.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "negotiation/engine/coordinator.h"
#include "tests/testing/conformance/operation_run.h"
#include "tests/testing/conformance/program.h"

namespace hvdlite::testing {

class ProgramRunner {
 public:
  // How a test disturbs a program.
  struct Hooks {
    // Called if the world is lost with `status`; this ends the program. If it
    // is null, a lost world is a failure.
    std::function<void(const std::string& label, const absl::Status& status)>
        lost;
    // May change what is submitted.
    std::function<void(negotiation::Operation&)> adjust;
  };

  ProgramRunner(const Program& program, negotiation::Coordinator& coordinator,
                int rank, Hooks hooks = {})
      : program_(program),
        coordinator_(coordinator),
        rank_(rank),
        hooks_(std::move(hooks)),
        random_(program.seed * 64 + rank) {
    set_ids_[0] = 0;
  }

  void Run() {
    for (size_t i = 0; i < program_.segments.size(); ++i) {
      // One failure is enough; later ones follow from it.
      const absl::Status status = coordinator_.world_status();
      if (!status.ok()) {
        if (!IsLoss(Label(i, 0, ""), status)) {
          ADD_FAILURE() << Label(i, 0, "") << status;
        }
        return;
      }
      RunSegment(i);
    }
    // No rank leaves before all ranks have finished with their process sets.
    AwaitBarrier(program_.segments.size());
  }

 private:
  using Fault = ProgramStep::Fault;
  using CompletionPtr = std::shared_ptr<const negotiation::Completion>;

  struct Submitted {
    const ProgramStep* step;
    std::shared_ptr<OperationRun> run;
    CompletionPtr completion;
  };

  std::string Label(size_t segment, size_t step,
                    const std::string& name) const {
    return absl::StrCat("seed ", program_.seed, ", ", program_.size,
                        " ranks, segment ", segment, ", step ", step, ", rank ",
                        rank_, ": ", name);
  }
  bool Chance(int percent) {
    return static_cast<int>(random_() % 100) < percent;
  }
  // Reports a lost world to the test. Returns whether the world is lost and the
  // test expects it.
  bool IsLoss(const std::string& label, const absl::Status& status) const {
    if (status.code() != absl::StatusCode::kUnavailable || !hooks_.lost) {
      return false;
    }
    hooks_.lost(label, status);
    return true;
  }

  void RunSegment(size_t index) {
    const ProgramSegment& segment = program_.segments[index];
    if (segment.starts_with_barrier) AwaitBarrier(index);
    const size_t count = segment.steps_before_join.empty()
                             ? segment.steps.size()
                             : segment.steps_before_join[rank_];
    std::vector<Submitted> submitted;
    size_t begin = 0;
    for (const int block_end : segment.block_ends) {
      const size_t end = std::min<size_t>(block_end, count);
      SubmitBlock(index, begin, end, submitted);
      if (Chance(60)) WaitForSome(submitted);
      begin = std::max(begin, end);
    }
    CompletionPtr join;
    // This happens before or after waiting for the others.
    const bool early = Chance(50);
    if (!segment.steps_before_join.empty() && early) {
      join = SubmitJoin(index);
      if (join != nullptr && Chance(50)) CheckJoin(index, *join);
    }
    WaitForAll(submitted);
    if (!segment.steps_before_join.empty()) {
      if (!early) join = SubmitJoin(index);
      if (join != nullptr) CheckJoin(index, *join);
    }
    for (const Submitted& one : submitted) Check(one);
  }

  void AwaitBarrier(size_t segment) {
    negotiation::Operation barrier;
    barrier.request.name = "segment";
    barrier.request.collective = Collective::kBarrier;
    const auto completion = coordinator_.Submit(std::move(barrier));
    const absl::Status status =
        completion.ok() ? coordinator_.Wait(**completion) : completion.status();
    if (IsLoss(Label(segment, 0, "barrier"), status)) return;
    EXPECT_TRUE(status.ok()) << Label(segment, 0, "barrier: ") << status;
  }

  CompletionPtr SubmitJoin(size_t segment) {
    negotiation::Operation join;
    join.request.name = "join";
    join.request.collective = Collective::kJoin;
    auto completion = coordinator_.Submit(std::move(join));
    if (IsLoss(Label(segment, 0, "join"), completion.status())) return nullptr;
    EXPECT_TRUE(completion.ok())
        << Label(segment, 0, "join: ") << completion.status();
    return completion.ok() ? *completion : nullptr;
  }

  void CheckJoin(size_t segment, const negotiation::Completion& join) {
    const absl::Status status = coordinator_.Wait(join);
    if (IsLoss(Label(segment, 0, "join"), status)) return;
    EXPECT_TRUE(status.ok()) << Label(segment, 0, "join: ") << status;
    EXPECT_GE(join.value(), 0) << Label(segment, 0, "join: ");
    EXPECT_LT(join.value(), program_.size) << Label(segment, 0, "join: ");
  }

  void SubmitBlock(size_t segment, size_t begin, size_t end,
                   std::vector<Submitted>& submitted) {
    std::vector<size_t> order;
    for (size_t i = begin; i < end; ++i) {
      if (program_.segments[segment].steps[i].IsSubmittedBy(rank_)) {
        order.push_back(i);
      }
    }
    // A removal stays first.
    const size_t fixed =
        !order.empty() &&
                program_.segments[segment].steps[order.front()].ends_set()
            ? 1
            : 0;
    std::shuffle(order.begin() + fixed, order.end(), random_);
    for (const size_t i : order) Submit(segment, i, submitted);
  }

  void Submit(size_t segment, size_t index, std::vector<Submitted>& submitted) {
    const ProgramStep& step = program_.segments[segment].steps[index];
    OperationCase spec = step.operation;
    Request& request = spec.request;
    if (request.collective == Collective::kRemoveProcessSet) {
      request.removed = set_ids_.at(step.set);
    } else if (request.collective != Collective::kAddProcessSet) {
      request.process_set = set_ids_.at(step.set);
    }
    auto run = std::make_shared<OperationRun>(
        std::move(spec), rank_,
        Label(segment, index, step.operation.request.name));
    negotiation::Operation operation = run->MakeOperation();
    operation.keep_alive = run;
    operation.caller_waits = Chance(20);
    if (hooks_.adjust) hooks_.adjust(operation);
    if (step.fault == Fault::kMismatch && rank_ == step.faulty) {
      operation.request.tensors.back().shape.push_back(1);
    }
    if (step.fault == Fault::kRefusal && rank_ == step.faulty) {
      operation.request.local_error = "refused on purpose";
    }
    auto completion = coordinator_.Submit(std::move(operation));
    if (completion.ok()) {
      submitted.push_back({&step, std::move(run), *completion});
    } else if (step.fault == Fault::kLate &&
               completion.status().code() != absl::StatusCode::kUnavailable) {
      EXPECT_TRUE(IsAboutRemoval(completion.status()))
          << run->label() << completion.status();
    } else if (!IsLoss(run->label(), completion.status())) {
      ADD_FAILURE() << run->label() << ": " << completion.status();
    }
  }

  static bool IsAboutRemoval(const absl::Status& status) {
    return status.code() == absl::StatusCode::kInvalidArgument &&
           absl::StrContains(status.message(), "removed");
  }

  // Waits for some operations that have ended or certainly will.
  void WaitForSome(const std::vector<Submitted>& submitted) {
    for (const Submitted& one : submitted) {
      if (one.step->fault == Fault::kDoomed || !Chance(30)) continue;
      coordinator_.Wait(*one.completion).IgnoreError();
    }
  }

  // Waits in one or several threads.
  void WaitForAll(const std::vector<Submitted>& submitted) {
    std::vector<CompletionPtr> completions;
    for (const Submitted& one : submitted)
      completions.push_back(one.completion);
    std::shuffle(completions.begin(), completions.end(), random_);
    const size_t waiters = Chance(30) ? 3 : 1;
    std::vector<std::thread> threads;
    const auto wait = [&](size_t first) {
      for (size_t i = first; i < completions.size(); i += waiters) {
        coordinator_.Wait(*completions[i]).IgnoreError();
      }
    };
    for (size_t i = 1; i < waiters; ++i) threads.emplace_back(wait, i);
    wait(0);
    for (std::thread& thread : threads) thread.join();
  }

  void Check(const Submitted& one) {
    const negotiation::Completion& completion = *one.completion;
    if (IsLoss(one.run->label(), completion.status())) {
      return one.run->CheckDone(completion);
    }
    switch (one.step->fault) {
      case Fault::kNone:
        break;
      case Fault::kMismatch:
        return one.run->CheckFailed(completion, "disagree about the shape");
      case Fault::kRefusal:
        return one.run->CheckFailed(completion, "refused on purpose");
      case Fault::kDoomed:
        return one.run->CheckFailed(completion, "has been removed");
      case Fault::kLate:
        if (IsAboutRemoval(completion.status())) return;
        break;
      case Fault::kJoined:
        return one.run->CheckFailed(completion, "joined");
    }
    one.run->Check(completion);
    if (one.step->operation.request.collective == Collective::kAddProcessSet) {
      set_ids_[one.step->set] =
          static_cast<negotiation::ProcessSetId>(completion.value());
    }
  }

  const Program& program_;
  negotiation::Coordinator& coordinator_;
  const int rank_;
  const Hooks hooks_;
  std::mt19937_64 random_;
  std::map<int, negotiation::ProcessSetId> set_ids_;
};

}  // namespace hvdlite::testing
