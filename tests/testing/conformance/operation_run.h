// OperationRun is one rank's part in an OperationCase.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "negotiation/engine/operation.h"
#include "tests/testing/conformance/operation_case.h"

namespace hvdlite::testing {

using Bytes = std::vector<std::byte>;

// Owns the memory of an operation, and compares its outputs with the expected
// ones. Every failure contains `label`. Must outlive the operation.
class OperationRun {
 public:
  OperationRun(OperationCase spec, int rank, std::string label)
      : spec_(std::move(spec)), rank_(rank), label_(std::move(label)) {}

  const OperationCase& spec() const { return spec_; }
  const std::string& label() const { return label_; }

  // Call this once. The request may be changed afterwards; then the operation
  // must not succeed.
  negotiation::Operation MakeOperation() {
    const Request& request = spec_.request;
    negotiation::Operation operation;
    operation.request = request;
    operation.absent = absl::c_linear_search(spec_.absent, rank_);
    // Output and input may overlap in these.
    const bool in_place = spec_.seed % 2 == 0 && !operation.absent &&
                          (request.collective == Collective::kAllreduce ||
                           request.collective == Collective::kAdasum ||
                           request.collective == Collective::kBroadcast);
    for (size_t i = 0; i < request.tensors.size(); ++i) {
      inputs_.push_back(operation.absent ? Bytes() : MakeInput(i));
      outputs_.push_back(in_place || request.rows_differ()
                             ? Bytes()
                             : Bytes(OutputBytes(i), std::byte{0xa5}));
    }
    if (in_place) outputs_ = std::exchange(inputs_, {});
    if (!operation.absent) {
      for (const Bytes& bytes : in_place ? outputs_ : inputs_) {
        operation.inputs.push_back(bytes);
      }
    }
    if (request.collective == Collective::kAllgather) {
      for (size_t i = 0; i < request.tensors.size(); ++i) {
        operation.rows.push_back(spec_.GatheredRows(i, rank_));
      }
    } else if (request.collective == Collective::kAlltoall) {
      operation.rows = spec_.SentRows(rank_);
    }
    if (request.rows_differ()) {
      operation.allocate = [this](const negotiation::RowsByMember& rows) {
        return Allocate(rows);
      };
    } else {
      operation.outputs = OutputSpans();
    }
    operation.done = [this](const absl::Status& status) {
      ++done_calls_;
      done_status_ = status;
    };
    return operation;
  }

  void Check(const negotiation::Completion& completion) {
    CheckDone(completion);
    if (!completion.status().ok()) {
      ADD_FAILURE() << label_ << ": " << completion.status();
      return;
    }
    const bool absent_everywhere =
        !spec_.absent.empty() &&
        spec_.absent.size() + spec_.joined.size() == spec_.members.size();
    EXPECT_EQ(completion.absent_everywhere(), absent_everywhere) << label_;
    if (absent_everywhere) return;
    if (spec_.request.rows_differ()) {
      EXPECT_EQ(allocations_, 1) << label_;
      EXPECT_EQ(rows_, ExpectedRows()) << label_;
    }
    for (size_t i = 0; i < spec_.request.tensors.size(); ++i) CheckTensor(i);
  }

  // The operation must have failed on this rank, with an error that contains
  // `text`.
  void CheckFailed(const negotiation::Completion& completion,
                   const std::string& text) {
    CheckDone(completion);
    EXPECT_EQ(completion.status().code(), absl::StatusCode::kInvalidArgument)
        << label_ << ": " << completion.status();
    EXPECT_NE(completion.status().message().find(text), absl::string_view::npos)
        << label_ << ": " << completion.status();
    EXPECT_EQ(allocations_, 0) << label_;
  }

  // The operation must have ended, with or without an error, and reported this
  // once.
  void CheckDone(const negotiation::Completion& completion) const {
    ASSERT_TRUE(completion.done()) << label_;
    EXPECT_EQ(done_calls_, 1) << label_;
    EXPECT_EQ(done_status_, completion.status()) << label_;
  }

 private:
  int64_t OutputBytes(size_t tensor) const {
    const TensorSpec& spec = spec_.request.tensors[tensor];
    if (spec_.request.collective != Collective::kReducescatter) {
      return negotiation::SizeBytes(spec);
    }
    const auto rows = collective::EvenRows(
        spec.shape.front(), static_cast<int>(spec_.members.size()));
    return rows[spec_.IndexOf(rank_)] * negotiation::RowBytes(spec);
  }

  Bytes MakeInput(size_t tensor) const {
    const Request& request = spec_.request;
    const TensorSpec& spec = request.tensors[tensor];
    if (request.collective == Collective::kBroadcast &&
        request.root_rank != rank_) {
      return Bytes(negotiation::SizeBytes(spec), std::byte{0xee});
    }
    int64_t count = Elements(spec);
    if (request.collective == Collective::kAllgather) {
      count *= spec_.GatheredRows(tensor, rank_);
    } else if (request.collective == Collective::kAlltoall) {
      int64_t rows = 0;
      for (const int64_t sent : spec_.SentRows(rank_)) rows += sent;
      count *= rows;
    }
    return Encode(spec.dtype, ElementsOf(spec_, tensor, rank_, 0, count));
  }

  negotiation::Outputs OutputSpans() {
    negotiation::Outputs spans;
    for (Bytes& bytes : outputs_) spans.push_back(absl::MakeSpan(bytes));
    return spans;
  }

  absl::StatusOr<negotiation::Outputs> Allocate(
      const negotiation::RowsByMember& rows) {
    ++allocations_;
    rows_ = rows;
    for (size_t i = 0; i < rows.size(); ++i) {
      int64_t sum = 0;
      for (const int64_t count : rows[i]) sum += count;
      outputs_[i].assign(sum * negotiation::RowBytes(spec_.request.tensors[i]),
                         std::byte{0xa5});
    }
    return OutputSpans();
  }

  negotiation::RowsByMember ExpectedRows() const {
    negotiation::RowsByMember rows(spec_.request.tensors.size());
    for (size_t i = 0; i < rows.size(); ++i) {
      for (const int member : spec_.members) {
        rows[i].push_back(spec_.request.collective == Collective::kAllgather
                              ? spec_.GatheredRows(i, member)
                              : spec_.SentRows(member, rank_));
      }
    }
    return rows;
  }

  void CheckTensor(size_t tensor) const {
    const DataType dtype = spec_.request.tensors[tensor].dtype;
    const std::vector<double> expected = ExpectedOutput(spec_, tensor, rank_);
    const std::vector<double> actual = Decode(dtype, outputs_[tensor]);
    ASSERT_EQ(actual.size(), expected.size()) << label_ << " tensor " << tensor;
    double largest = 0;
    for (const double value : expected) {
      largest = std::max(largest, std::abs(value));
    }
    for (size_t i = 0; i < expected.size(); ++i) {
      const double error = std::abs(actual[i] - expected[i]);
      if (error <= Tolerance(spec_, dtype, expected[i], largest)) continue;
      ADD_FAILURE() << label_ << " tensor " << tensor << " ("
                    << std::string(NameOf(dtype)) << ") is " << actual[i]
                    << " rather than " << expected[i] << " at " << i << " of "
                    << expected.size();
      return;
    }
  }

  const OperationCase spec_;
  const int rank_;
  const std::string label_;
  std::vector<Bytes> inputs_;
  std::vector<Bytes> outputs_;
  negotiation::RowsByMember rows_;
  int allocations_ = 0;
  int done_calls_ = 0;
  absl::Status done_status_;
};

}  // namespace hvdlite::testing
