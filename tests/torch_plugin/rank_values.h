// The values that ranks put into operations, and the expected results, computed
// from every rank's values in double.
#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <hvdlite/ops.h>
#include <hvdlite/world.h>

#include <vector>

#include "torch_plugin/ops/libtorch_versions.h"

namespace hvdlite {

// The dtypes that every LibTorch has.
inline constexpr at::ScalarType kDtypes[] = {
    at::kFloat, at::kDouble, at::kHalf,         at::kBFloat16,
    at::kInt,   at::kLong,   at::kByte,         at::kChar,
    at::kBool,  at::kShort,  at::kComplexFloat, at::kComplexDouble};
inline constexpr ReduceOp kOps[] = {ReduceOp::Average, ReduceOp::Sum,
                                    ReduceOp::Min, ReduceOp::Max,
                                    ReduceOp::Product};

inline AllreduceOptions With(ReduceOp op) { return AllreduceOptions().op(op); }

// Whether tensors of the type can be reduced by `op`.
inline bool HasOp(at::ScalarType type, ReduceOp op) {
  if (at::isComplexType(type)) {
    return op == ReduceOp::Average || op == ReduceOp::Sum;
  }
  return type != at::kBool || op != ReduceOp::Average;
}

// Whether LibTorch can do little more with the type than copy it.
inline bool IsOnlyCopied(at::ScalarType type) {
  return type == internal::kUint16 || type == internal::kUint32 ||
         type == internal::kUint64;
}

// Small integers, also as parts of complex numbers, different for each rank,
// element and salt. They are exact in every dtype, and so are their sums and
// products over up to four ranks.
inline at::Tensor Values(int rank, at::IntArrayRef shape, at::ScalarType type,
                         int salt = 0) {
  if (IsOnlyCopied(type)) return Values(rank, shape, at::kByte, salt).to(type);
  int64_t count = 1;
  for (const int64_t length : shape) count *= length;
  const at::Tensor mixed =
      at::arange(count, at::kLong).mul(7).add(rank * 5 + salt).view(shape);
  if (type == at::kBool) return mixed.remainder(3).ne(0);
  if (type == at::kByte) return mixed.remainder(4).to(type);
  if (at::isComplexType(type)) {
    return at::complex(mixed.remainder(5).sub(2).to(at::kDouble),
                       mixed.mul(3).remainder(7).sub(3).to(at::kDouble))
        .to(type);
  }
  return mixed.remainder(5).sub(2).to(type);
}

// Returns the reduction of `tensors`, which have the same shape and dtype.
inline at::Tensor Reduced(const std::vector<at::Tensor>& tensors, ReduceOp op) {
  const at::ScalarType type = tensors.front().scalar_type();
  if (at::isComplexType(type)) {
    const at::Tensor sum = at::stack(tensors).to(at::kComplexDouble).sum(0);
    const auto count = static_cast<double>(tensors.size());
    return (op == ReduceOp::Average ? sum / count : sum).to(type);
  }
  std::vector<at::Tensor> numbers;
  for (const at::Tensor& tensor : tensors) {
    numbers.push_back(tensor.to(at::kDouble));
  }
  const at::Tensor all = at::stack(numbers);
  if (type == at::kBool) {
    const bool any = op == ReduceOp::Sum || op == ReduceOp::Max;
    return any ? all.ne(0).any(0) : all.ne(0).all(0);
  }
  switch (op) {
    case ReduceOp::Average: {
      const at::Tensor mean = all.mean(0);
      const bool is_float = at::isFloatingType(type);
      return (is_float ? mean : mean.trunc()).to(type);
    }
    case ReduceOp::Sum:
      return all.sum(0).to(type);
    case ReduceOp::Min:
      return all.amin(0).to(type);
    case ReduceOp::Max:
      return all.amax(0).to(type);
    default:
      return all.prod(0).to(type);
  }
}

// The same for the Values of `ranks`.
inline at::Tensor ReducedValues(const std::vector<int>& ranks,
                                at::IntArrayRef shape, at::ScalarType type,
                                ReduceOp op, int salt = 0) {
  std::vector<at::Tensor> tensors;
  for (const int rank : ranks)
    tensors.push_back(Values(rank, shape, type, salt));
  return Reduced(tensors, op);
}

// Compares to the last bit.
inline bool Same(const at::Tensor& actual, const at::Tensor& expected) {
  if (actual.scalar_type() != expected.scalar_type()) return false;
  return IsOnlyCopied(actual.scalar_type())
             ? actual.to(at::kLong).equal(expected.to(at::kLong))
             : actual.equal(expected);
}

// Compares with a tolerance for rounding, as needed for averages and 16-bit
// floats.
inline bool Close(const at::Tensor& actual, const at::Tensor& expected) {
  if (actual.scalar_type() != expected.scalar_type() ||
      actual.sizes() != expected.sizes()) {
    return false;
  }
  if (actual.is_complex()) {
    return Close(at::view_as_real(actual.resolve_conj()),
                 at::view_as_real(expected.resolve_conj()));
  }
  if (!actual.is_floating_point()) return Same(actual, expected);
  const bool is_short = actual.element_size() == 2;
  return at::allclose(actual.to(at::kDouble), expected.to(at::kDouble),
                      is_short ? 1e-2 : 1e-6, is_short ? 1e-2 : 1e-6);
}

// Calls run(set) on the members of several sets: all ranks; the even and the
// odd ranks at the same time; the last and the first rank, given in this order.
template <typename Run>
void ForSeveralSets(Run run) {
  const auto traced = [&](const ProcessSet& set) {
    SCOPED_TRACE("ranks " + ::testing::PrintToString(set.ranks()));
    if (set.included()) run(set);
  };
  traced(ProcessSet());
  std::vector<int> by_parity[2];
  for (int i = 0; i < size(); ++i) by_parity[i % 2].push_back(i);
  // A set needs a rank. In a world of one rank there are no odd ranks.
  std::vector<ProcessSet> sets = {add_process_set(by_parity[0])};
  if (size() > 1) sets.push_back(add_process_set(by_parity[1]));
  for (const ProcessSet& set : sets) traced(set);
  if (size() > 1) {
    sets.push_back(add_process_set({size() - 1, 0}));
    traced(sets.back());
  }
  for (const ProcessSet& set : sets) remove_process_set(set);
}

}  // namespace hvdlite
