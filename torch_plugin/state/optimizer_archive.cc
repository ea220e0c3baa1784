#include "torch_plugin/state/optimizer_archive.h"

#include <c10/util/Type.h>
#include <torch/optim/lbfgs.h>
#include <torch/serialize/input-archive.h>
#include <torch/serialize/output-archive.h>

#include <sstream>
#include <typeinfo>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace hvdlite::internal {
namespace {

constexpr char kOptimizer[] = "optimizer";

std::string GroupKey(size_t group) { return absl::StrCat("group", group); }

// LibTorch cannot write lists with undefined tensors, such as `al` of LBFGS's
// state is up to the size of the history; each iteration computes it anew.
void DropScratch(torch::optim::Optimizer& optimizer) {
  for (auto& item : optimizer.state()) {
    auto* const state =
        dynamic_cast<torch::optim::LBFGSParamState*>(item.second.get());
    if (state != nullptr) state->al().reset();
  }
}

}  // namespace

std::string Describe(const torch::optim::Optimizer& optimizer) {
  std::string result = absl::StrCat(c10::demangle(typeid(optimizer).name()),
                                    " with parameter groups");
  for (const auto& group : optimizer.param_groups()) {
    std::vector<std::string> shapes;
    for (const at::Tensor& parameter : group.params()) {
      shapes.push_back(
          absl::StrCat("[", absl::StrJoin(parameter.sizes(), ", "), "]"));
    }
    absl::StrAppend(&result, " (", absl::StrJoin(shapes, ", "), ")");
  }
  return result;
}

std::string Serialized(torch::optim::Optimizer& optimizer) {
  DropScratch(optimizer);
  torch::serialize::OutputArchive archive;
  torch::serialize::OutputArchive state(archive.compilation_unit());
  optimizer.save(state);
  archive.write(kOptimizer, state);
  // LibTorch's own archive of an optimizer has the options, but loading it does
  // not set them; hence once more.
  for (size_t i = 0; i < optimizer.param_groups().size(); ++i) {
    torch::serialize::OutputArchive options(archive.compilation_unit());
    optimizer.param_groups()[i].options().serialize(options);
    archive.write(GroupKey(i), options);
  }
  std::ostringstream stream;
  archive.save_to(stream);
  return std::move(stream).str();
}

void Load(const std::string& bytes, torch::optim::Optimizer& optimizer) {
  std::istringstream stream(bytes);
  torch::serialize::InputArchive archive;
  archive.load_from(stream);
  // Loading adds; what the archive does not have must go.
  optimizer.state().clear();
  torch::serialize::InputArchive state;
  archive.read(kOptimizer, state);
  optimizer.load(state);
  for (size_t i = 0; i < optimizer.param_groups().size(); ++i) {
    torch::serialize::InputArchive options;
    archive.read(GroupKey(i), options);
    optimizer.param_groups()[i].options().serialize(options);
  }
}

}  // namespace hvdlite::internal
