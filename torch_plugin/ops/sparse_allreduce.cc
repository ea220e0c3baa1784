#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <hvdlite/ops.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "torch_plugin/ops/operation_call.h"
#include "torch_plugin/ops/sixteen_bits.h"
#include "torch_plugin/ops/tensors.h"
#include "torch_plugin/throw_status.h"

namespace hvdlite {
namespace {

using internal::IsSixteenBit;
using internal::OperationCall;
using internal::Submission;

// Whether LibTorch can add such tensors.
bool IsAddable(const at::Tensor& tensor) {
  const auto& type = *FindTraits(internal::DataTypeOf(tensor));
  return type.kind != collective::NumberKind::kUnsigned || type.bytes == 1;
}

// Why `coo` cannot be reduced; empty if it can.
std::string SparseError(const at::Tensor& coo, ReduceOp op) {
  if (!coo.defined()) return "the tensor is undefined";
  if (coo.layout() != at::kSparse) {
    return "the tensor is not a sparse COO tensor; pass tensor.to_sparse(), or "
           "call allreduce()";
  }
  if (!coo.device().is_cpu()) {
    return absl::StrCat("the tensor is on ", coo.device().str(),
                        ", but only CPU tensors are supported");
  }
  if (op != ReduceOp::Average && op != ReduceOp::Sum) {
    return absl::StrCat("sparse tensors do not support ", internal::NameOf(op),
                        "; use Average or Sum");
  }
  std::string error = internal::TensorError(coo._values());
  if (error.empty() && !IsAddable(coo._values())) {
    return absl::StrCat("LibTorch cannot add sparse tensors of ",
                        NameOf(internal::DataTypeOf(coo._values())),
                        "; convert the tensor to int32 or int64");
  }
  return error;
}

// Checks that all ranks have the same shape, sparse dimensions, dtype and
// options. It runs an allreduce with these options on tensors without elements,
// whose first dimensions are the values to compare.
OperationCall AgreementCall(const at::Tensor& coo,
                            const AllreduceOptions& options) {
  OperationCall call("sparse_allreduce", options.name(), options.process_set());
  call.SetRequest(internal::RequestOf(options));
  call.SetLocalError(SparseError(coo, options.op()));
  call.Prepare([&] {
    std::vector<int64_t> shape = coo.sizes().vec();
    shape.push_back(0);
    for (const at::Tensor& empty :
         {at::empty(shape, coo._values().options()),
          at::empty({coo.sparse_dim(), 0}, coo._values().options())}) {
      call.SetLocalError(internal::ReductionError(call.request(),
                                                  internal::DataTypeOf(empty)));
      call.Add(empty, {.input = empty, .output = empty, .result = empty});
    }
  });
  return call;
}

at::ScalarType WireType(const at::Tensor& values, Compression compression) {
  const at::ScalarType type = values.scalar_type();
  if (compression == Compression::None ||
      (type != at::kFloat && type != at::kDouble)) {
    return type;
  }
  return compression == Compression::FP16 ? at::kHalf : at::kBFloat16;
}

// Returns `coo` as it is reduced. It is coalesced unless coalescing would add
// 16-bit floats, and round, before the other ranks' values have arrived.
at::Tensor Contribution(const at::Tensor& coo) {
  return IsSixteenBit(coo._values()) ? coo : coo.coalesce();
}

bool IsIntegral(const at::Tensor& values) {
  return !values.is_floating_point() && !values.is_complex();
}

// Scales as the data plane does: integers in float64, truncated toward zero.
at::Tensor Scaled(const at::Tensor& values, double factor) {
  if (factor == 1) return values;
  if (!IsIntegral(values)) return values.mul(factor);
  return values.to(at::kDouble).mul(factor).trunc().to(values.scalar_type());
}

// Facts about all ranks together.
struct Total {
  int64_t values;
  int64_t ranks;  // number of ranks that have not joined
};

// Whether an allreduce of the dense tensor sends fewer bytes to each rank than
// all indices and values. It sends about twice the tensor.
bool DenseIsSmaller(const at::Tensor& coo, const Total& total,
                    Compression compression) {
  const at::Tensor& values = coo._values();
  const auto value_bytes =
      static_cast<double>(c10::elementSize(WireType(values, compression)));
  // ReduceDense() converts them to float32.
  const double dense_bytes = IsSixteenBit(values) ? 4 : value_bytes;
  double elements_of_value = 1;
  for (int64_t dim = 1; dim < values.dim(); ++dim) {
    elements_of_value *= static_cast<double>(values.size(dim));
  }
  double elements = 1;
  for (const int64_t length : coo.sizes()) {
    elements *= static_cast<double>(length);
  }
  const double gathered = static_cast<double>(total.values) *
                          (static_cast<double>(coo.sparse_dim() * 8) +
                           elements_of_value * value_bytes);
  return 2 * elements * dense_bytes < gathered;
}

// The next two functions multiply values by one factor before the sum. It
// contains the factor for 16-bit sums, the scales and the divisor of an
// average. So no sum overflows if the result does not.
at::Tensor ReduceDense(const at::Tensor& coo, AllreduceOptions options,
                       double factor) {
  const at::Tensor dense = internal::WidenedDense(coo);
  if (IsSixteenBit(coo._values())) {
    options.op(ReduceOp::Sum)
        .prescale_factor(factor)
        .postscale_factor(1)
        .compression(Compression::None);
  }
  return allreduce(dense, options)
      .to(coo.scalar_type())
      .to_sparse(coo.sparse_dim())
      .coalesce();
}

at::Tensor ReduceGathered(const at::Tensor& coo, const std::string& name,
                          const AllreduceOptions& options, int64_t divisor,
                          double factor) {
  const at::ScalarType type = coo._values().scalar_type();
  const bool widens = IsSixteenBit(coo._values());
  OperationCall call("sparse_allreduce", name, options.process_set());
  call.request().collective = negotiation::Collective::kAllgather;
  call.Prepare([&] {
    call.AddRows(coo._indices().t());
    call.AddRows(
        widens ? coo._values()
               : Scaled(coo._values(), options.prescale_factor())
                     .to(WireType(coo._values(), options.compression())));
  });
  const std::vector<at::Tensor> gathered = call.Run()->results();
  const at::Tensor all = widens ? gathered[1].to(at::kFloat).mul_(factor)
                                : gathered[1].to(type);
  const at::Tensor sum =
      at::_sparse_coo_tensor_unsafe(gathered[0].t(), all, coo.sizes())
          .coalesce();
  at::Tensor values = sum._values();
  if (widens) {
    values = values.to(type);
  } else {
    if (divisor != 1 && IsIntegral(values)) {
      values = at::div(values, at::scalar_tensor(divisor, values.options()),
                       "trunc");
      divisor = 1;
    }
    values = Scaled(values,
                    options.postscale_factor() / static_cast<double>(divisor));
  }
  return at::_sparse_coo_tensor_unsafe(sum._indices(), values, coo.sizes())
      ._coalesced_(true);
}

}  // namespace

at::Tensor sparse_allreduce(const at::Tensor& coo,
                            const AllreduceOptions& options) {
  const at::NoGradGuard no_grad;
  OperationCall agreement = AgreementCall(coo, options);
  const std::string name = agreement.name();
  const bool average_over_all =
      agreement.world().config().join_average_over_world;
  const int size = agreement.members().size();
  at::Tensor mine;
  agreement.Prepare([&] { mine = Contribution(coo); });
  const auto agreed = agreement.Submit(Submission::kAsynchronous);
  // Take part even with an error: only then do all ranks know of it.
  const at::Tensor counts = at::ones({2}, at::kLong);
  counts[0] = mine.defined() ? mine._nnz() : 0;
  allreduce_(counts, AllreduceOptions()
                         .name(name + ".counts")
                         .op(ReduceOp::Sum)
                         .process_set(options.process_set()));
  internal::ThrowIfError(agreed->Wait());
  const Total total{.values = counts[0].item<int64_t>(),
                    .ranks = counts[1].item<int64_t>()};

  const int64_t divisor = options.op() != ReduceOp::Average ? 1
                          : average_over_all                ? size
                                                            : total.ranks;
  const double factor = options.prescale_factor() * options.postscale_factor() /
                        static_cast<double>(divisor);
  AllreduceOptions reduction = options;
  reduction.name(name + ".dense");
  if (DenseIsSmaller(mine, total, options.compression())) {
    return ReduceDense(mine, reduction, factor);
  }
  return ReduceGathered(mine, name + ".gather", options, divisor, factor);
}

}  // namespace hvdlite
