#include "torch_plugin/state/state_parts.h"

#include <ATen/core/List.h>
#include <hvdlite/elastic.h>
#include <torch/types.h>

#include <algorithm>
#include <exception>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "torch_plugin/state/archives.h"
#include "torch_plugin/throw_status.h"

namespace hvdlite::internal {

void FromArchive(const c10::IValue& value, at::Tensor& tensor) {
  const at::Tensor saved = value.toTensor();
  if (tensor.defined() && tensor.sizes() == saved.sizes() &&
      tensor.scalar_type() == saved.scalar_type()) {
    const torch::NoGradGuard no_grad;
    tensor.copy_(saved);
  } else {
    tensor = saved;
  }
}

}  // namespace hvdlite::internal

namespace hvdlite::elastic {
namespace {

using internal::ShapeOf;
using internal::ThrowError;

constexpr char kParts[] = "parts";  // descriptions of the parts, to compare
constexpr char kValues[] = "values";
constexpr char kSamplers[] = "samplers";

// Key of the i-th model or optimizer. The first one has the same key as in
// save_checkpoint().
std::string Key(const char* part, size_t i) {
  return i == 0 ? part : absl::StrCat(part, i);
}

std::vector<std::string> ToStrings(const c10::IValue& list) {
  std::vector<std::string> strings;
  internal::FromArchive(list, strings);
  return strings;
}

// Throws with the first difference unless both lists are equal.
void Check(const std::vector<std::string>& ours,
           const std::vector<std::string>& theirs) {
  const auto [own, other] =
      std::mismatch(ours.begin(), ours.end(), theirs.begin(), theirs.end());
  if (own == ours.end() && other == theirs.end()) return;
  if (other == theirs.end()) {
    ThrowError(absl::StrCat("it lacks ", *own, ", which this training has"));
  }
  ThrowError(own == ours.end()
                 ? absl::StrCat("it holds ", *other,
                                ", which this training does not have")
                 : absl::StrCat("it holds ", *other,
                                " where this training has ", *own));
}

}  // namespace

std::vector<std::string> StateParts::Describe(const std::string& name) const {
  std::vector<std::string> parts = {name};
  const auto add = [&](const std::string& owner, const char* what,
                       const auto& tensors) {
    for (const auto& item : tensors) {
      if (!item.value().defined()) continue;
      parts.push_back(absl::StrCat(owner, "'s ", what, " '", item.key(),
                                   "' of ", ShapeOf(item.value())));
    }
  };
  for (size_t i = 0; i < models.size(); ++i) {
    const std::string owner = Key("model", i);
    add(owner, "parameter", models[i]->named_parameters());
    add(owner, "buffer", models[i]->named_buffers());
  }
  for (const torch::optim::Optimizer* optimizer : optimizers) {
    parts.push_back(
        absl::StrCat("an optimizer ", internal::KindOf(*optimizer)));
    for (const auto& group : optimizer->param_groups()) {
      std::vector<std::string> shapes;
      for (const at::Tensor& tensor : group.params()) {
        shapes.push_back(ShapeOf(tensor));
      }
      parts.push_back(absl::StrCat("a parameter group (",
                                   absl::StrJoin(shapes, ", "), ")"));
    }
  }
  for (const DistributedSampler* sampler : samplers) {
    parts.push_back(
        absl::StrCat("a data set of ", sampler->dataset_size(), " samples"));
  }
  for (const Value& value : values) {
    parts.push_back(absl::StrCat("a value '", value.name, "'"));
  }
  return parts;
}

void StateParts::Write(torch::serialize::OutputArchive& archive,
                       const std::string& name) const {
  archive.write(kParts, internal::ToArchive(Describe(name)));
  for (size_t i = 0; i < models.size(); ++i) {
    internal::WritePart(archive, Key("model", i), *models[i]);
  }
  for (size_t i = 0; i < optimizers.size(); ++i) {
    internal::WriteOptimizer(archive, Key("optimizer", i), *optimizers[i]);
  }
  WriteRest(archive);
}

bool StateParts::Read(torch::serialize::InputArchive& archive,
                      const std::string& name, bool with_options) const {
  c10::IValue parts;
  if (!archive.try_read(kParts, parts)) return false;
  Check(Describe(name), ToStrings(parts));
  internal::Rollback rollback;
  for (torch::nn::Module* model : models) rollback.Take(*model);
  for (torch::optim::Optimizer* optimizer : optimizers) {
    rollback.Take(*optimizer);
  }
  for (size_t i = 0; i < models.size(); ++i) {
    internal::ReadPart(archive, Key("model", i), *models[i]);
  }
  for (size_t i = 0; i < optimizers.size(); ++i) {
    internal::ReadOptimizer(archive, Key("optimizer", i), with_options,
                            *optimizers[i]);
  }
  ReadRest(archive);
  rollback.Keep();
  return true;
}

void StateParts::WriteRest(torch::serialize::OutputArchive& archive) const {
  c10::List<int64_t> positions;
  for (const DistributedSampler* sampler : samplers) {
    positions.push_back(sampler->epoch());
    positions.push_back(sampler->position());
  }
  archive.write(kSamplers, positions);
  torch::serialize::OutputArchive nested(archive.compilation_unit());
  for (size_t i = 0; i < values.size(); ++i) {
    nested.write(absl::StrCat("value", i), values[i].get());
  }
  archive.write(kValues, nested);
}

void StateParts::ReadRest(torch::serialize::InputArchive& archive) const {
  c10::IValue positions;
  archive.read(kSamplers, positions);
  const auto numbers = positions.toIntVector();
  torch::serialize::InputArchive nested;
  archive.read(kValues, nested);
  // Make copies, since a tensor is overwritten in place. Values that cannot be
  // in an archive, such as an undefined tensor, have no copy.
  std::vector<std::optional<c10::IValue>> before;
  for (size_t i = 0; i < values.size(); ++i) {
    try {
      before.emplace_back(values[i].get().deepcopy());
    } catch (const c10::Error&) {
      before.emplace_back();
    }
    try {
      c10::IValue value;
      nested.read(absl::StrCat("value", i), value);
      values[i].set(value);
    } catch (const std::exception& error) {
      const std::string text = internal::TextOf(error);
      for (size_t j = 0; j <= i; ++j) {
        if (before[j]) values[j].set(*before[j]);
      }
      ThrowError(absl::StrCat("the value '", values[i].name,
                              "' is of another type: ", text));
    }
  }
  for (size_t i = 0; i < samplers.size(); ++i) {
    samplers[i]->resume(numbers.at(2 * i), numbers.at(2 * i + 1));
  }
}

}  // namespace hvdlite::elastic
