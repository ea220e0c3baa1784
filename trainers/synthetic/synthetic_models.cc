#include "trainers/synthetic/synthetic_models.h"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/types.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "support/input_error.h"
#include "trainers/models/small_networks.h"
#include "trainers/synthetic/tasks.h"

namespace hvdlite::trainers {
namespace {

struct SyntheticModel {
  std::string name;
  SyntheticTask (*make)(const SyntheticTaskOptions&);
  std::vector<std::string> flags;  // flags that change its shape
  int64_t min_image_size = 1;
};

const std::vector<std::string> kImageFlags = {"--classes", "--data-format",
                                              "--image-size"};
const std::vector<std::string> kWideImageFlags = {"--classes", "--data-format",
                                                  "--hidden", "--image-size"};
const std::vector<std::string> kWordFlags = {"--classes", "--hidden",
                                             "--sequence-length"};
const std::vector<std::string> kSequenceFlag = {"--sequence-length"};

const std::vector<SyntheticModel>& SyntheticModels() {
  static const std::vector<SyntheticModel> models = {
      {"resnet18", MakeResNetTask, kImageFlags, 8},
      {"resnet34", MakeResNetTask, kImageFlags, 8},
      {"resnet50", MakeResNetTask, kImageFlags, 8},
      {"resnet101", MakeResNetTask, kImageFlags, 8},
      {"resnet152", MakeResNetTask, kImageFlags, 8},
      {"alexnet", MakeAlexNetTask, kWideImageFlags, 63},
      {"vgg16", MakeVgg16Task, kWideImageFlags, 32},
      {"conv3d", MakeConv3dTask, {"--classes", "--hidden", "--width"}},
      {"conv3d_volumes", MakeConv3dVolumesTask, {}},
      {"ssd300", MakeSsd300Task, {"--classes", "--data-format"}},
      {"lstm_layer", MakeLstmLayerTask, {"--hidden", "--sequence-length"}},
      {"lstm", MakeLstmTask, kWordFlags},
      {"wave_predictor", MakeWavesTask, {"--hidden", "--sequence-length"}},
      {"word_language_model", MakeWordLanguageModelTask, kWordFlags},
      {"word_language_model_gru", MakeWordLanguageModelTask, kWordFlags},
      {"transformer", MakeTransformerTask, kSequenceFlag},
      {"translator", MakeTranslatorTask, kWordFlags},
      {"language_model", MakeLanguageModelTask, kSequenceFlag},
      {"neural_collaborative_filtering", MakeFilteringTask, {}},
      {"neural_collaborative_filtering_20m", MakeFilteringTask, {}},
      {"mlp", MakeMlpTask, {"--classes", "--hidden"}},
      {"polynomial_regression", MakePolynomialTask, {}},
      {"dcgan", MakeDcganTask, {"--data-format", "--width"}},
      {"vae", MakeVaeTask, {"--hidden"}},
      {"super_resolution",
       MakeSuperResolutionTask,
       {"--data-format", "--image-size"},
       2},
      {"style_transfer",
       MakeStyleTransferTask,
       {"--data-format", "--image-size"},
       16},
      {"cart_pole", MakeCartPoleTask, {}},
      {"ball_game", MakeBallGameTask, kSequenceFlag},
      {"image_loading",
       MakeImageLoadingTask,
       {"--data-dir", "--image-size", "--workers"}},
  };
  return models;
}

const SyntheticModel& Find(const std::string& name) {
  for (const SyntheticModel& model : SyntheticModels()) {
    if (model.name == name) return model;
  }
  throw std::invalid_argument("no synthetic model '" + name + "'");
}

// The given flags that change the shape of models.
std::vector<std::string> ShapingFlags(const SyntheticTaskOptions& options) {
  std::vector<std::string> given;
  const auto add = [&](const char* flag, bool is_given) {
    if (is_given) given.push_back(flag);
  };
  add("--classes", options.classes != 0);
  add("--data-dir", !options.data_dir.empty());
  add("--data-format", options.data_format == "NHWC");
  add("--hidden", options.hidden != 0);
  add("--image-size", options.image_size != 0);
  add("--sequence-length", options.sequence_length != 0);
  add("--width", options.width != 0);
  add("--workers", options.workers != 0);
  return given;
}

std::string List(const std::vector<std::string>& flags) {
  std::string list;
  for (const std::string& flag : flags) {
    list += (list.empty() ? "" : ", ") + flag;
  }
  return list.empty() ? "none" : list;
}

}  // namespace

SyntheticTask MakeMlpTask(const SyntheticTaskOptions& options) {
  MlpOptions sizes;
  for (size_t i = 1; i + 1 < sizes.widths.size(); ++i) {
    sizes.widths[i] = SizeOr(options.hidden, sizes.widths[i]);
  }
  sizes.widths.back() = SizeOr(options.classes, sizes.widths.back());
  const at::Generator random = GeneratorOf(options);
  return Classification(
      Mlp(sizes),
      torch::randn({options.batch_size, sizes.widths.front()}, random),
      torch::randint(sizes.widths.back(), {options.batch_size}, random,
                     torch::kInt64));
}

// Predicts whether a user interacts with an item.
SyntheticTask MakeFilteringTask(const SyntheticTaskOptions& options) {
  NeuralCollaborativeFilteringOptions sizes;
  if (options.model == "neural_collaborative_filtering_20m") {
    sizes = {.users = 138'493,  // MovieLens-20M
             .items = 26'744,
             .factors = 64,
             .widths = {256, 256, 128, 64}};
  }
  const at::Generator random = GeneratorOf(options);
  const auto draw = [&](int64_t limit) {
    return torch::randint(limit, {options.batch_size}, random, torch::kInt64);
  };
  const torch::Tensor users = draw(sizes.users);
  const torch::Tensor items = draw(sizes.items);
  const torch::Tensor labels = draw(2).to(torch::kFloat32);
  NeuralCollaborativeFiltering model(sizes);
  return {.model = model.ptr(), .loss = [=]() mutable {
            return torch::nn::functional::binary_cross_entropy_with_logits(
                model(users, items).to(torch::kFloat32), labels);
          }};
}

SyntheticTask MakePolynomialTask(const SyntheticTaskOptions& options) {
  constexpr int64_t kDegree = 4;
  at::Generator random = GeneratorOf(options);
  const torch::Tensor weight = 5 * torch::randn({kDegree, 1}, random);
  const torch::Tensor bias = 5 * torch::randn({1}, random);
  const torch::Tensor exponents = torch::arange(1, kDegree + 1);
  torch::nn::Linear model(kDegree, 1);
  return {.model = model.ptr(), .loss = [=, n = options.batch_size]() mutable {
            const torch::Tensor powers =
                torch::randn({n, 1}, random).pow(exponents);
            return torch::smooth_l1_loss(model(powers),
                                         powers.mm(weight) + bias);
          }};
}

at::Generator GeneratorOf(const SyntheticTaskOptions& options) {
  return at::detail::createCPUGenerator(options.seed);
}

int64_t SizeOr(int64_t size, int64_t published) {
  return size != 0 ? size : published;
}

at::MemoryFormat MemoryFormatOf(const SyntheticTaskOptions& options) {
  return options.data_format == "NHWC" ? at::MemoryFormat::ChannelsLast
                                       : at::MemoryFormat::Contiguous;
}

std::vector<std::string> SyntheticModelNames() {
  std::vector<std::string> names;
  for (const SyntheticModel& model : SyntheticModels()) {
    names.push_back(model.name);
  }
  return names;
}

void RequireSuitable(const SyntheticTaskOptions& options) {
  const SyntheticModel& model = Find(options.model);
  for (const std::string& flag : ShapingFlags(options)) {
    if (std::ranges::find(model.flags, flag) != model.flags.end()) continue;
    throw support::InputError(flag + " does not suit --model " + model.name +
                              "; its flags are: " + List(model.flags));
  }
  if (options.workers != 0 && options.data_dir.empty()) {
    throw support::InputError(
        "--workers needs --data-dir, which names the directory of the images");
  }
  if (options.image_size != 0 && options.image_size < model.min_image_size) {
    throw support::InputError(
        "--image-size is " + std::to_string(options.image_size) + "; --model " +
        model.name + " needs at least " + std::to_string(model.min_image_size));
  }
}

SyntheticTask MakeSyntheticTask(const SyntheticTaskOptions& options) {
  RequireSuitable(options);
  return Find(options.model).make(options);
}

}  // namespace hvdlite::trainers
