#include "torch_plugin/state/archives.h"

#include <ATen/core/Dict.h>
#include <c10/util/Type.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/lbfgs.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>
#include <torch/types.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <sstream>
#include <typeinfo>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "torch_plugin/throw_status.h"

namespace hvdlite::internal {
namespace {

using torch::optim::Optimizer;
using torch::optim::OptimizerParamState;
using torch::serialize::InputArchive;
using torch::serialize::OutputArchive;

// The shape of each tensor, by the tensor's name.
using Shapes = std::map<std::string, std::string>;

void AddShapes(const torch::nn::Module& model, const std::string& prefix,
               Shapes& shapes) {
  const auto add = [&](const auto& tensors) {
    for (const auto& item : tensors) {
      shapes[prefix + item.key()] = ShapeOf(item.value());
    }
  };
  add(model.named_parameters(/*recurse=*/false));
  add(model.named_buffers(/*recurse=*/false));
  for (const auto& child : model.named_children()) {
    // LibTorch does not write other modules.
    if (!child.value()->is_serializable()) continue;
    AddShapes(*child.value(), absl::StrCat(prefix, child.key(), "."), shapes);
  }
}

void AddShapes(InputArchive& archive, const std::string& prefix,
               Shapes& shapes) {
  for (const std::string& key : archive.keys()) {
    at::Tensor tensor;
    InputArchive nested;
    if (archive.try_read(key, tensor)) {
      shapes[prefix + key] = ShapeOf(tensor);
    } else if (archive.try_read(key, nested)) {
      AddShapes(nested, absl::StrCat(prefix, key, "."), shapes);
    }
  }
}

std::string ListKey(const std::string& name) {
  return absl::StrCat(name, "_tensors");
}

// Throws with the first difference unless the archive has the same tensors as
// the model.
void Check(const Shapes& saved, const Shapes& own) {
  for (const auto& [name, shape] : own) {
    const auto found = saved.find(name);
    if (found == saved.end()) {
      ThrowError(absl::StrCat("it has no tensor '", name,
                              "', which this model has (", shape, ")"));
    }
    if (found->second == shape) continue;
    ThrowError(absl::StrCat("its tensor '", name, "' is ", found->second,
                            ", but this model's is ", shape));
  }
  for (const auto& [name, shape] : saved) {
    if (own.count(name) != 0) continue;
    ThrowError(absl::StrCat("it has a tensor '", name, "' (", shape,
                            "), which this model does not have"));
  }
}

// One of LibTorch's optimizers.
struct Kind {
  const std::type_info& type;
  const char* option;  // identifies the kind, except Adam or AdamW
  std::unique_ptr<OptimizerParamState> (*make_state)();
  // Whether the state belongs to the first parameter and covers all of them,
  // flattened. Otherwise each tensor of it has its parameter's shape.
  bool is_flat = false;
};

template <typename State>
std::unique_ptr<OptimizerParamState> Make() {
  return std::make_unique<State>();
}

const std::vector<Kind>& Kinds() {
  using namespace torch::optim;  // NOLINT: its classes only
  static const auto* const kinds = new std::vector<Kind>{
      {typeid(SGD), "dampening", Make<SGDParamState>},
      {typeid(Adam), "amsgrad", Make<AdamParamState>},
      {typeid(AdamW), "amsgrad", Make<AdamWParamState>},
      {typeid(Adagrad), "lr_decay", Make<AdagradParamState>},
      {typeid(RMSprop), "centered", Make<RMSpropParamState>},
      {typeid(LBFGS), "history_size", Make<LBFGSParamState>, true}};
  return *kinds;
}

// Returns null if `optimizer` is not one of LibTorch's.
const Kind* FindKind(const Optimizer& optimizer) {
  for (const Kind& kind : Kinds()) {
    if (kind.type == typeid(optimizer)) return &kind;
  }
  return nullptr;
}

std::string NameOf(const std::type_info& type) {
  return c10::demangle(type.name());
}

std::string KindKey(const std::string& name) {
  return absl::StrCat(name, "_kind");
}

// Key of the number of states that an optimizer had, for optimizers that are
// not LibTorch's.
std::string StatesKey(const std::string& name) {
  return absl::StrCat(name, "_states");
}

std::string GroupKey(const std::string& name, size_t group) {
  return absl::StrCat(name, "_group", group);
}

bool Has(InputArchive& archive, const std::string& key) {
  c10::IValue value;
  return archive.try_read(key, value);
}

// An optimizer in an archive.
struct SavedOptimizer {
  InputArchive& archive;
  std::string name;
  InputArchive optimizer;  // written by its save()
  // In LibTorch's format. None: another format, or one from before LibTorch
  // 1.5.
  std::optional<InputArchive> groups;

  bool FindOptions(size_t group, InputArchive& options) {
    if (archive.try_read(GroupKey(name, group), options)) return true;
    InputArchive whole;
    return groups &&
           groups->try_read(absl::StrCat("param_groups/", group), whole) &&
           whole.try_read("options", options);
  }
};

SavedOptimizer Find(InputArchive& archive, const std::string& name) {
  SavedOptimizer saved = {archive, name, {}, std::nullopt};
  if (!archive.try_read(name, saved.optimizer)) {
    ThrowError(absl::StrCat("it has no optimizer '", name, "'"));
  }
  InputArchive groups;
  if (saved.optimizer.try_read("param_groups", groups) &&
      Has(groups, "param_groups/size")) {
    saved.groups = std::move(groups);
  }
  return saved;
}

void CheckKind(SavedOptimizer& saved, const Optimizer& optimizer,
               const Kind* kind) {
  std::string other;
  c10::IValue written;
  InputArchive options;
  if (saved.archive.try_read(KindKey(saved.name), written)) {
    other = written.toStringRef();
    if (other == KindOf(optimizer)) return;
  } else if (kind != nullptr && saved.FindOptions(0, options)) {
    // The archive is from before kinds were written.
    if (Has(options, kind->option)) return;
    other = "an optimizer of another kind";
    for (const Kind& one : Kinds()) {
      if (!Has(options, one.option)) continue;
      other = NameOf(one.type);
      break;
    }
  } else {
    return;
  }
  ThrowError(absl::StrCat("its optimizer is ", other, ", but this one is ",
                          KindOf(optimizer)));
}

size_t ReadSize(InputArchive& archive, const std::string& key) {
  at::Tensor size;
  archive.read(key, size);
  return static_cast<size_t>(size.item<int64_t>());
}

void CheckSize(const char* what, size_t saved, size_t own) {
  if (saved == own) return;
  ThrowError(absl::StrCat("its optimizer has ", saved, " ", what,
                          ", but this one has ", own));
}

// Throws unless `state` can belong to parameter `place` of `parameters`.
void CheckState(InputArchive& state, const Kind& kind, size_t group,
                const std::vector<at::Tensor>& parameters, size_t place) {
  int64_t elements = 0;
  for (const at::Tensor& parameter : parameters) elements += parameter.numel();
  for (const std::string& key : state.keys()) {
    at::Tensor tensor;
    if (!state.try_read(key, tensor)) continue;
    const bool fits = kind.is_flat
                          ? (key != "d" && key != "prev_flat_grad") ||
                                tensor.numel() == elements
                          : tensor.sizes() == parameters[place].sizes();
    if (fits) continue;
    ThrowError(absl::StrCat(
        "its optimizer's '", key, "' of parameter ", place, " in group ", group,
        " is ", ShapeOf(tensor), ", but ",
        kind.is_flat ? absl::StrCat("the parameters have ", elements,
                                    " elements together")
                     : absl::StrCat("this parameter is ",
                                    ShapeOf(parameters[place]))));
  }
}

// LibTorch 1.13 uses strings as keys, later versions use pointers.
template <typename Key>
Key KeyOf(const at::Tensor& parameter) {
  if constexpr (std::is_same_v<Key, std::string>) {
    std::ostringstream text;
    text << parameter.unsafeGetTensorImpl();
    return text.str();
  } else {
    return parameter.unsafeGetTensorImpl();
  }
}

// Replaces LibTorch's load(), which differs by version: 1.13 ignores the
// options, and later versions do not find the state in archives of 1.13.
void ReadStates(SavedOptimizer& saved, const Kind& kind, Optimizer& optimizer) {
  using States = std::decay_t<decltype(optimizer.state())>;
  InputArchive states;
  saved.optimizer.read("state", states);
  auto& groups = optimizer.param_groups();
  CheckSize("parameter groups", ReadSize(*saved.groups, "param_groups/size"),
            groups.size());
  for (size_t i = 0; i < groups.size(); ++i) {
    const std::vector<at::Tensor>& parameters = groups[i].params();
    InputArchive group;
    saved.groups->read(absl::StrCat("param_groups/", i), group);
    CheckSize(absl::StrCat("parameters in group ", i).c_str(),
              ReadSize(group, "params/size"), parameters.size());
    for (size_t j = 0; j < parameters.size(); ++j) {
      c10::IValue key;
      group.read(absl::StrCat("params/", j), key);
      InputArchive archive;
      if (!states.try_read(key.toStringRef(), archive)) continue;
      CheckState(archive, kind, i, parameters, j);
      std::unique_ptr<OptimizerParamState> state = kind.make_state();
      state->serialize(archive);
      optimizer.state()[KeyOf<States::key_type>(parameters[j])] =
          std::move(state);
    }
  }
}

std::vector<std::unique_ptr<torch::optim::OptimizerOptions>> CopyOptions(
    const Optimizer& optimizer) {
  std::vector<std::unique_ptr<torch::optim::OptimizerOptions>> options;
  for (const auto& group : optimizer.param_groups()) {
    options.push_back(group.options().clone());
  }
  return options;
}

void SetOptions(
    std::vector<std::unique_ptr<torch::optim::OptimizerOptions>> options,
    Optimizer& optimizer) {
  for (size_t i = 0; i < options.size(); ++i) {
    optimizer.param_groups()[i].set_options(std::move(options[i]));
  }
}

// While an object exists, LBFGS has no `al`, which each iteration computes
// again. LibTorch cannot write this list, since it has undefined tensors up to
// the size of the history.
class WithoutScratch {
 public:
  explicit WithoutScratch(const Optimizer& optimizer) {
    for (const auto& item : optimizer.state()) {
      auto* const state =
          dynamic_cast<torch::optim::LBFGSParamState*>(item.second.get());
      if (state == nullptr) continue;
      scratch_.emplace_back(state, state->al());
      state->al().reset();
    }
  }
  ~WithoutScratch() {
    for (auto& [state, al] : scratch_) state->al(std::move(al));
  }
  WithoutScratch(const WithoutScratch&) = delete;
  WithoutScratch& operator=(const WithoutScratch&) = delete;

 private:
  using State = torch::optim::LBFGSParamState;
  using Scratch = std::decay_t<decltype(std::declval<State&>().al())>;
  std::vector<std::pair<State*, Scratch>> scratch_;
};

}  // namespace

std::string KindOf(const Optimizer& optimizer) {
  return NameOf(typeid(optimizer));
}

std::string ShapeOf(const at::Tensor& tensor) {
  return absl::StrCat(c10::toString(tensor.scalar_type()), " [",
                      absl::StrJoin(tensor.sizes(), ", "), "]");
}

void WriteModel(OutputArchive& archive, const std::string& name,
                const torch::nn::Module& model) {
  WritePart(archive, name, model);
  Shapes shapes;
  AddShapes(model, "", shapes);
  c10::Dict<std::string, std::string> list;
  for (const auto& [tensor, shape] : shapes) list.insert(tensor, shape);
  archive.write(ListKey(name), c10::IValue(list));
}

void ReadModel(InputArchive& archive, const std::string& name,
               torch::nn::Module& model) {
  InputArchive nested;
  if (!archive.try_read(name, nested)) {
    ThrowError(absl::StrCat("it has no model '", name, "'"));
  }
  Shapes saved, own;
  c10::IValue list;
  if (archive.try_read(ListKey(name), list)) {
    AddShapes(model, "", own);
    for (const auto& item : list.toGenericDict()) {
      saved[item.key().toStringRef()] = item.value().toStringRef();
    }
  } else {
    // The archive is from before the list was written: compare with all that
    // the model's save() writes.
    AddShapes(nested, "", saved);
    OutputArchive writing;
    model.save(writing);
    std::stringstream bytes;
    writing.save_to(bytes);
    InputArchive reading;
    reading.load_from(bytes);
    AddShapes(reading, "", own);
  }
  Check(saved, own);
  Rollback rollback;
  rollback.Take(model);
  model.load(nested);
  rollback.Keep();
}

void WriteOptimizer(OutputArchive& archive, const std::string& name,
                    const Optimizer& optimizer) {
  archive.write(KindKey(name), c10::IValue(KindOf(optimizer)));
  {
    const WithoutScratch without(optimizer);
    WritePart(archive, name, optimizer);
  }
  if (FindKind(optimizer) != nullptr) return;  // save() wrote the options
  archive.write(StatesKey(name),
                static_cast<int64_t>(optimizer.state().size()));
  for (size_t i = 0; i < optimizer.param_groups().size(); ++i) {
    OutputArchive options(archive.compilation_unit());
    try {
      optimizer.param_groups()[i].options().serialize(options);
    } catch (const c10::Error&) {
      return;  // not implemented, so its save() has to write them
    }
    archive.write(GroupKey(name, i), options);
  }
}

void ReadOptimizer(InputArchive& archive, const std::string& name,
                   bool with_options, Optimizer& optimizer) {
  SavedOptimizer saved = Find(archive, name);
  const Kind* const kind = FindKind(optimizer);
  CheckKind(saved, optimizer, kind);
  Rollback rollback;
  rollback.Take(optimizer);
  if (kind != nullptr && saved.groups) {
    ReadStates(saved, *kind, optimizer);
  } else if (saved.optimizer.keys().empty()) {
    c10::IValue states;
    if (archive.try_read(StatesKey(name), states) && states.toInt() > 0) {
      ThrowError(absl::StrCat("save() of ", KindOf(optimizer),
                              " has not written its state; implement save() "
                              "and load() to use it in a checkpoint"));
    }
  } else {
    auto own = CopyOptions(optimizer);
    optimizer.load(saved.optimizer);
    if (!with_options) SetOptions(std::move(own), optimizer);
  }
  for (size_t i = 0; with_options && i < optimizer.param_groups().size(); ++i) {
    InputArchive options;
    if (!saved.FindOptions(i, options)) continue;
    optimizer.param_groups()[i].options().serialize(options);
  }
  rollback.Keep();
}

void Rollback::Take(torch::nn::Module& model) {
  const auto take = [&](const std::vector<at::Tensor>& tensors) {
    for (const at::Tensor& tensor : tensors) {
      tensors_.emplace_back(tensor, tensor.detach());
    }
  };
  take(model.parameters());
  take(model.buffers());
}

void Rollback::Take(Optimizer& optimizer) {
  optimizers_.push_back({&optimizer, {}, CopyOptions(optimizer)});
  std::swap(optimizers_.back().states, optimizer.state());
}

void Rollback::Keep() {
  tensors_.clear();
  optimizers_.clear();
}

Rollback::~Rollback() {
  const torch::NoGradGuard no_grad;
  for (auto& [tensor, memory] : tensors_) tensor.set_(memory);
  // Go backwards, since one may have been taken twice.
  std::for_each(optimizers_.rbegin(), optimizers_.rend(), [](Before& before) {
    std::swap(before.optimizer->state(), before.states);
    SetOptions(std::move(before.options), *before.optimizer);
  });
}

}  // namespace hvdlite::internal
