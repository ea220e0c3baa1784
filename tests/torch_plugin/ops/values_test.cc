// The results of every operation, in every form, on several process sets:
// tensors of every dtype, with one to three dimensions and any strides.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/torch_plugin/rank_values.h"

namespace hvdlite {
namespace {

using Tensors = std::vector<at::Tensor>;

// A way to run an operation on tensors, one by one or as a group.
struct Form {
  std::string name;
  std::function<Tensors(const Tensors&)> run;

  bool in_place() const { return name.back() == '_'; }
  // Calls one after the other.
  bool blocks() const {
    return name.find("async") == name.npos && name.find("grouped") == name.npos;
  }
};

template <typename Call>
Form Each(const char* name, Call call) {
  return {name, [=](const Tensors& inputs) {
            Tensors outputs;
            for (const at::Tensor& one : inputs) outputs.push_back(call(one));
            return outputs;
          }};
}

// All of them are in flight at once.
template <typename Submit>
Form Async(const char* name, Submit submit) {
  return {name, [=](const Tensors& inputs) {
            std::vector<Work> works;
            for (const at::Tensor& one : inputs) works.push_back(submit(one));
            Tensors outputs;
            for (const Work& work : works) outputs.push_back(work.wait());
            return outputs;
          }};
}

// Checks that an operation is done after the wait.
Tensors WaitFor(const GroupWork& work) {
  Tensors results = work.wait();
  EXPECT_TRUE(work.is_completed());
  EXPECT_TRUE(work.wait_for(std::chrono::milliseconds(0)));
  return results;
}

// An operation of a process set with some options.
struct Operation {
  std::string name;
  std::vector<Form> forms;
  // The rows that a member has of tensor `index`.
  std::function<int64_t(int member, size_t index)> rows;
  // The result of this rank for the members' tensors.
  std::function<at::Tensor(const Tensors&)> expected;
  std::function<bool(at::ScalarType)> takes;
  bool is_exact = true;
};

bool TakesAll(at::ScalarType /*type*/) { return true; }

std::vector<Form> AllreduceForms(const AllreduceOptions& options) {
  return {
      Each("allreduce", [=](auto& one) { return allreduce(one, options); }),
      Each("allreduce_", [=](auto& one) { return allreduce_(one, options); }),
      Async("allreduce_async",
            [=](auto& one) { return allreduce_async(one, options); }),
      Async("allreduce_async_",
            [=](auto& one) { return allreduce_async_(one, options); }),
      {"grouped_allreduce",
       [=](auto& all) { return grouped_allreduce(all, options); }},
      {"grouped_allreduce_",
       [=](auto& all) { return grouped_allreduce_(all, options); }},
      {"grouped_allreduce_async",
       [=](auto& all) {
         return WaitFor(grouped_allreduce_async(all, options));
       }},
      {"grouped_allreduce_async_",
       [=](auto& all) {
         return WaitFor(grouped_allreduce_async_(all, options));
       }},
  };
}

std::vector<Form> ReducescatterForms(const ReducescatterOptions& options) {
  return {
      Each("reducescatter",
           [=](auto& one) { return reducescatter(one, options); }),
      Async("reducescatter_async",
            [=](auto& one) { return reducescatter_async(one, options); }),
      {"grouped_reducescatter",
       [=](auto& all) { return grouped_reducescatter(all, options); }},
      {"grouped_reducescatter_async",
       [=](auto& all) {
         return WaitFor(grouped_reducescatter_async(all, options));
       }},
  };
}

// Returns `factor` times the tensor. Integers are multiplied in float64 and
// truncated toward zero.
at::Tensor Scaled(const at::Tensor& tensor, double factor) {
  const at::ScalarType type = tensor.scalar_type();
  if (factor == 1 || type == at::kBool) return tensor;
  const at::Tensor product =
      tensor.to(tensor.is_complex() ? at::kComplexDouble : at::kDouble)
          .mul(factor);
  const bool is_whole = !tensor.is_complex() && !tensor.is_floating_point();
  return (is_whole ? product.trunc() : product).to(type);
}

struct Reduction {
  ReduceOp op;
  double prescale = 1;
  double postscale = 1;
};

const std::vector<Reduction> kReductions = {
    {ReduceOp::Average},     {ReduceOp::Sum},          {ReduceOp::Min},
    {ReduceOp::Max},         {ReduceOp::Product},      {ReduceOp::Sum, 1.7, 1},
    {ReduceOp::Sum, 1, 1.7}, {ReduceOp::Average, 2, 3}};

// allreduce() and reducescatter().
std::vector<Operation> Reductions(const ProcessSet& set,
                                  const std::vector<Reduction>& reductions) {
  std::vector<Operation> operations;
  for (const Reduction& reduction : reductions) {
    const auto& [op, prescale, postscale] = reduction;
    const bool is_scaled = prescale != 1 || postscale != 1;
    Operation reducing = {
        "op " + std::to_string(static_cast<int>(op)) + " scaled by " +
            std::to_string(prescale) + " and " + std::to_string(postscale),
        AllreduceForms(AllreduceOptions()
                           .op(op)
                           .prescale_factor(prescale)
                           .postscale_factor(postscale)
                           .process_set(set)),
        [](int /*member*/, size_t index) { return index == 5 ? 0 : 3; },
        [=](Tensors tensors) {
          for (at::Tensor& tensor : tensors) {
            tensor = Scaled(tensor, reduction.prescale);
          }
          return Scaled(Reduced(tensors, reduction.op), reduction.postscale);
        },
        [=](at::ScalarType type) {
          return HasOp(type, reduction.op) && (!is_scaled || type != at::kBool);
        },
        /*is_exact=*/op != ReduceOp::Average && !is_scaled};
    Operation scattering = reducing;
    scattering.forms = ReducescatterForms(ReducescatterOptions()
                                              .op(op)
                                              .prescale_factor(prescale)
                                              .postscale_factor(postscale)
                                              .process_set(set));
    scattering.rows = [](int /*member*/, size_t index) {
      return std::vector<int64_t>{8, 3, 7, 0, 1, 2}[index % 6];
    };
    scattering.expected = [=](const Tensors& tensors) {
      // The first ranks have the remainder.
      return reducing.expected(tensors).tensor_split(
          set.size())[static_cast<size_t>(set.rank())];
    };
    operations.push_back(reducing);
    operations.push_back(scattering);
  }
  return operations;
}

// Tensors of one type, which LibTorch may only be able to copy.
at::Tensor Concatenated(const Tensors& parts) {
  const at::ScalarType type = parts.front().scalar_type();
  if (!IsOnlyCopied(type)) return at::cat(parts);
  Tensors bytes;
  for (const at::Tensor& part : parts) bytes.push_back(part.to(at::kByte));
  return at::cat(bytes).to(type);
}

Operation Gathering(const ProcessSet& set) {
  const auto options = AllgatherOptions().process_set(set);
  return {
      "allgather",
      {Each("allgather", [=](auto& one) { return allgather(one, options); }),
       Async("allgather_async",
             [=](auto& one) { return allgather_async(one, options); }),
       {"grouped_allgather",
        [=](auto& all) { return grouped_allgather(all, options); }},
       {"grouped_allgather_async",
        [=](auto& all) {
          return WaitFor(grouped_allgather_async(all, options));
        }}},
      // The first member has no rows of some tensors.
      [](int member, size_t index) {
        if (index % 3 == 0) return 2;
        return index % 3 == 1 ? 1 + member : member * static_cast<int>(index);
      },
      Concatenated,
      TakesAll};
}

Operation Broadcasting(const ProcessSet& set, int root) {
  const auto options = BroadcastOptions().process_set(set);
  const auto member = static_cast<size_t>(
      std::find(set.ranks().begin(), set.ranks().end(), root) -
      set.ranks().begin());
  return {
      "from rank " + std::to_string(root),
      {Each("broadcast",
            [=](auto& one) { return broadcast(one, root, options); }),
       Each("broadcast_",
            [=](auto& one) { return broadcast_(one, root, options); }),
       Async("broadcast_async",
             [=](auto& one) { return broadcast_async(one, root, options); }),
       Async("broadcast_async_",
             [=](auto& one) { return broadcast_async_(one, root, options); })},
      [](int /*member*/, size_t /*index*/) { return 2; },
      [=](const Tensors& tensors) { return tensors[member]; },
      TakesAll};
}

// Number of rows that member `from` sends to member `to`.
int64_t RowsFromTo(int from, int to) { return (2 * from + 3 * to + 1) % 4; }

Operation Exchanging(const ProcessSet& set, at::ScalarType splits_type) {
  const auto options = AlltoallOptions().process_set(set);
  const int members = set.size();
  const int me = set.rank();
  const auto sent_before = [](int from, int to) {
    int64_t rows = 0;
    for (int other = 0; other < to; ++other) rows += RowsFromTo(from, other);
    return rows;
  };
  std::vector<int64_t> sent;
  std::vector<int64_t> received;
  for (int other = 0; other < members; ++other) {
    sent.push_back(RowsFromTo(me, other));
    received.push_back(RowsFromTo(other, me));
  }
  const at::Tensor splits = at::tensor(sent, splits_type);
  const at::Tensor received_splits = at::tensor(received, splits_type);
  const auto output_of = [=](const std::tuple<at::Tensor, at::Tensor>& result) {
    EXPECT_TRUE(Same(std::get<1>(result), received_splits));
    return std::get<0>(result);
  };
  return {"alltoall",
          {Each("alltoall",
                [=](auto& one) {
                  return output_of(alltoall(one, splits, options));
                }),
           Each("alltoall_async",
                [=](auto& one) {
                  const AlltoallWork work =
                      alltoall_async(one, splits, options);
                  const at::Tensor output = output_of(work.wait());
                  EXPECT_TRUE(work.is_completed());
                  EXPECT_TRUE(work.wait_for(std::chrono::milliseconds(0)));
                  return output;
                })},
          [=](int member, size_t /*index*/) {
            return sent_before(member, members);
          },
          [=](const Tensors& tensors) {
            Tensors parts;
            for (int from = 0; from < members; ++from) {
              parts.push_back(tensors[static_cast<size_t>(from)].narrow(
                  0, sent_before(from, me), RowsFromTo(from, me)));
            }
            return Concatenated(parts);
          },
          TakesAll};
}

std::vector<Operation> OperationsOf(const ProcessSet& set,
                                    const std::vector<Reduction>& reductions) {
  std::vector<Operation> operations = Reductions(set, reductions);
  operations.push_back(Gathering(set));
  for (const int root : set.ranks()) {
    operations.push_back(Broadcasting(set, root));
  }
  operations.push_back(Exchanging(set, at::kInt));
  operations.push_back(Exchanging(set, at::kLong));
  return operations;
}

// The same values in other layouts: contiguous, with gaps, or with the
// dimensions reversed and, for complex numbers, with lazy conjugation.
at::Tensor Laid(const at::Tensor& tensor, size_t index) {
  const size_t way = (index + index / 3 + 2) % 3;
  if (way == 0) return tensor.clone();
  if (way == 1) {
    std::vector<int64_t> sizes = tensor.sizes().vec();
    sizes.push_back(2);
    return at::empty(sizes, tensor.options()).select(-1, 1).copy_(tensor);
  }
  const at::Tensor turned =
      tensor.transpose(0, -1).clone(at::MemoryFormat::Contiguous);
  if (!tensor.is_complex()) return turned.transpose(0, -1);
  return turned.conj().resolve_conj().transpose(0, -1).conj();
}

// Shape {rows}, {rows, `width`} or {rows, 2, 3}.
std::vector<int64_t> Shape(int64_t rows, size_t index, int64_t width) {
  if (index % 3 == 0) return {rows};
  return index % 3 == 1 ? std::vector<int64_t>{rows, width}
                        : std::vector<int64_t>{rows, 2, 3};
}

// Runs every form of the operation on one tensor of each type. The tensors are
// numbered from `first`.
void ExpectValues(const Operation& operation, const ProcessSet& set,
                  const std::vector<at::ScalarType>& types, size_t first = 0,
                  int64_t width = 5) {
  SCOPED_TRACE(operation.name);
  Tensors inputs;
  Tensors expected;
  for (size_t i = 0; i < types.size(); ++i) {
    const size_t index = first + i;
    Tensors of_members;
    for (int member = 0; member < set.size(); ++member) {
      of_members.push_back(
          Values(set.ranks()[static_cast<size_t>(member)],
                 Shape(operation.rows(member, index), index, width), types[i],
                 static_cast<int>(index)));
    }
    inputs.push_back(of_members[static_cast<size_t>(set.rank())]);
    expected.push_back(operation.expected(of_members));
  }
  for (const Form& form : operation.forms) {
    Tensors mine;
    for (size_t i = 0; i < inputs.size(); ++i) {
      mine.push_back(Laid(inputs[i], first + i));
    }
    const Tensors outputs = form.run(mine);
    ASSERT_EQ(outputs.size(), inputs.size());
    for (size_t i = 0; i < outputs.size(); ++i) {
      EXPECT_TRUE(operation.is_exact ? Same(outputs[i], expected[i])
                                     : Close(outputs[i], expected[i]))
          << form.name << " of " << types[i] << ", tensor " << first + i;
      EXPECT_TRUE(form.in_place() ? outputs[i].is_same(mine[i])
                                  : Same(mine[i], inputs[i]))
          << form.name << " of " << types[i] << ", tensor " << first + i;
    }
  }
}

TEST(ValuesTest, EveryOperationFormDtypeAndProcessSet) {
  std::vector<at::ScalarType> types(std::begin(kDtypes), std::end(kDtypes));
  for (const at::ScalarType type :
       {internal::kUint16, internal::kUint32, internal::kUint64}) {
    if (type != at::ScalarType::Undefined) types.push_back(type);
  }
  ForSeveralSets([&](const ProcessSet& set) {
    for (const Operation& operation : OperationsOf(set, kReductions)) {
      Operation at_once = operation;
      std::erase_if(at_once.forms,
                    [](const Form& form) { return form.blocks(); });
      std::vector<at::ScalarType> taken;
      for (const at::ScalarType type : types) {
        if (!operation.takes(type)) continue;
        ExpectValues(at_once, set, std::vector<at::ScalarType>(3, type),
                     /*first=*/taken.size() % 2 * 3);
        taken.push_back(type);
      }
      ExpectValues(operation, set, taken);
    }
  });
}

TEST(ValuesTest, TensorsLargerThanAChunk) {
  for (Operation& operation : OperationsOf(ProcessSet(), {{ReduceOp::Sum}})) {
    operation.forms.resize(2);
    size_t largest = 0;
    operation.expected = [&, expected =
                                 operation.expected](const Tensors& tensors) {
      const at::Tensor mine = tensors[static_cast<size_t>(rank())];
      const at::Tensor result = expected(tensors);
      largest = std::max({largest, mine.nbytes(), result.nbytes()});
      return result;
    };
    ExpectValues(operation, {}, {at::kInt, at::kInt}, /*first=*/0,
                 /*width=*/1'200'000);
    EXPECT_GT(static_cast<int64_t>(largest), Config::from_env().chunk_bytes)
        << operation.name;
  }
}

TEST(ValuesTest, ManyOperationsInFlightInAnyOrder) {
  constexpr int kCount = 40;
  const auto named = [](auto options, int tensor) {
    return options.name("many." + std::to_string(tensor));
  };
  using Submit = std::function<Work(int tensor)>;
  using Expected = std::function<at::Tensor(int tensor)>;
  const std::pair<Submit, Expected> operations[] = {
      {[&](int tensor) {
         return allreduce_async(at::full({100}, tensor),
                                named(With(ReduceOp::Sum), tensor));
       },
       [](int tensor) { return at::full({100}, tensor * size()); }},
      {[&](int tensor) {
         return allgather_async(at::full({tensor % 4}, tensor),
                                named(AllgatherOptions(), tensor));
       },
       [](int tensor) { return at::full({tensor % 4 * size()}, tensor); }},
      {[&](int tensor) {
         return reducescatter_async(
             at::full({4 * size(), 2}, tensor),
             named(ReducescatterOptions().op(ReduceOp::Sum), tensor));
       },
       [](int tensor) {
         return at::full({4, 2}, tensor * size());
       }},
  };
  for (const auto& [submit, expected] : operations) {
    std::vector<std::pair<int, Work>> works;
    for (int i = 0; i < kCount; ++i) {
      const int tensor = (i * 7 + rank() * 13) % kCount;
      works.emplace_back(tensor, submit(tensor));
    }
    for (const auto& [tensor, work] : works) {
      EXPECT_TRUE(work.wait().equal(expected(tensor))) << tensor;
    }
  }
}

}  // namespace
}  // namespace hvdlite
