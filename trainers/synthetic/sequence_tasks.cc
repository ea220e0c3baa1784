#include <torch/types.h>

#include "trainers/models/language_model.h"
#include "trainers/models/small_networks.h"
#include "trainers/models/transformer.h"
#include "trainers/models/translator.h"
#include "trainers/synthetic/tasks.h"

namespace hvdlite::trainers {
namespace {

// Random tokens [N, T + 1]: a model reads the first T and predicts the last T.
template <typename Model>
SyntheticTask LanguageModelling(Model model, int64_t vocabulary, int64_t length,
                                const SyntheticTaskOptions& options) {
  const torch::Tensor tokens =
      torch::randint(vocabulary, {options.batch_size, length + 1},
                     GeneratorOf(options), torch::kInt64);
  return Classification(model, tokens.narrow(1, 0, length).contiguous(),
                        tokens.narrow(1, 1, length).contiguous());
}

}  // namespace

SyntheticTask MakeLstmTask(const SyntheticTaskOptions& options) {
  LstmClassifierOptions sizes;
  sizes.hidden = SizeOr(options.hidden, sizes.hidden);
  sizes.classes = SizeOr(options.classes, sizes.classes);
  // By default the rows of a handwritten digit.
  const int64_t length = SizeOr(options.sequence_length, 28);
  const at::Generator random = GeneratorOf(options);
  return Classification(
      LstmClassifier(sizes),
      torch::randn({options.batch_size, length, sizes.features}, random),
      torch::randint(sizes.classes, {options.batch_size}, random,
                     torch::kInt64));
}

// Sines of the same frequency with random phases, as in PyTorch's example
// "time_sequence_prediction".
SyntheticTask MakeWavesTask(const SyntheticTaskOptions& options) {
  constexpr int64_t kStepsPerRadian = 20;
  WavePredictorOptions sizes;
  sizes.hidden = SizeOr(options.hidden, sizes.hidden);
  const int64_t length = SizeOr(options.sequence_length, 1000);
  const torch::Tensor first = torch::randint(
      -4 * kStepsPerRadian, 4 * kStepsPerRadian, {options.batch_size, 1},
      GeneratorOf(options), torch::kFloat32);
  const torch::Tensor waves =
      ((first + torch::arange(length)) / kStepsPerRadian).sin();
  const torch::Tensor seen = waves.narrow(1, 0, length - 1);
  const torch::Tensor next = waves.narrow(1, 1, length - 1);
  WavePredictor model(sizes);
  return {.model = model.ptr(), .loss = [=]() mutable {
            return torch::mse_loss(model(seen).to(torch::kFloat32), next);
          }};
}

SyntheticTask MakeWordLanguageModelTask(const SyntheticTaskOptions& options) {
  WordLanguageModelOptions sizes;
  if (options.model == "word_language_model_gru") {
    sizes = {.vocabulary = 33'278,  // the vocabulary of WikiText-2
             .units = 656,
             .dropout = 0.5,
             .gru = true};
  }
  sizes.vocabulary = SizeOr(options.classes, sizes.vocabulary);
  sizes.units = SizeOr(options.hidden, sizes.units);
  return LanguageModelling(WordLanguageModel(sizes), sizes.vocabulary,
                           SizeOr(options.sequence_length, 35), options);
}

SyntheticTask MakeLanguageModelTask(const SyntheticTaskOptions& options) {
  LanguageModelOptions sizes;
  sizes.context = SizeOr(options.sequence_length, sizes.context);
  return LanguageModelling(LanguageModel(sizes), sizes.vocabulary,
                           sizes.context, options);
}

// Sentences without padding: each has all tokens, 50 by default.
SyntheticTask MakeTranslatorTask(const SyntheticTaskOptions& options) {
  constexpr double kSmoothing = 0.1;
  TranslatorOptions sizes;
  sizes.vocabulary = SizeOr(options.classes, sizes.vocabulary);
  sizes.units = SizeOr(options.hidden, sizes.units);
  const int64_t length = SizeOr(options.sequence_length, 50);
  const at::Generator random = GeneratorOf(options);
  const auto draw = [&](int64_t tokens) {
    return torch::randint(sizes.vocabulary, {options.batch_size, tokens},
                          random, torch::kInt64);
  };
  const torch::Tensor source = draw(length);
  const torch::Tensor target = draw(length + 1);
  const torch::Tensor fed = target.narrow(1, 0, length).contiguous();
  const torch::Tensor expected = target.narrow(1, 1, length).contiguous();
  Translator model(sizes);
  return {
      .model = model.ptr(), .loss = [=]() mutable {
        return torch::nn::functional::cross_entropy(
            model(source, fed).flatten(0, 1).to(torch::kFloat32),
            expected.flatten(),
            torch::nn::functional::CrossEntropyFuncOptions().label_smoothing(
                kSmoothing));
      }};
}

// Predicts a residue's structure from all residues and the structures before
// it. By default a sequence has the usual length of a protein, about 200
// residues.
SyntheticTask MakeTransformerTask(const SyntheticTaskOptions& options) {
  const int64_t length = SizeOr(options.sequence_length, 200);
  TransformerOptions sizes;
  sizes.max_length = length;
  const at::Generator random = GeneratorOf(options);
  const auto tokens = [&](int64_t vocabulary, int64_t count) {
    return torch::randint(kPaddingToken + 1, vocabulary,
                          {options.batch_size, count}, random, torch::kInt64);
  };
  const torch::Tensor source = tokens(sizes.source_vocabulary, length);
  const torch::Tensor target = tokens(sizes.target_vocabulary, length + 1);
  const torch::Tensor fed = target.narrow(1, 0, length).contiguous();
  const torch::Tensor expected = target.narrow(1, 1, length).flatten();
  const torch::Tensor positions =
      torch::arange(1, length + 1).expand({options.batch_size, length});
  Transformer model(sizes);
  return {.model = model.ptr(), .loss = [=]() mutable {
            return torch::nn::functional::cross_entropy(
                model(source, positions, fed, positions)
                    .flatten(0, 1)
                    .to(torch::kFloat32),
                expected);
          }};
}

}  // namespace hvdlite::trainers
