#include <torch/types.h>

#include "trainers/models/language_model.h"
#include "trainers/models/small_networks.h"
#include "trainers/models/transformer.h"
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

SyntheticTask MakeWordLanguageModelTask(const SyntheticTaskOptions& options) {
  const WordLanguageModelOptions sizes;
  return LanguageModelling(WordLanguageModel(sizes), sizes.vocabulary,
                           SizeOr(options.sequence_length, 35), options);
}

SyntheticTask MakeLanguageModelTask(const SyntheticTaskOptions& options) {
  LanguageModelOptions sizes;
  sizes.context = SizeOr(options.sequence_length, sizes.context);
  return LanguageModelling(LanguageModel(sizes), sizes.vocabulary,
                           sizes.context, options);
}

// A residue's structure from all residues and the structures before it. By
// default, sequences of the proteins' usual length, about 200 residues.
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
                model(source, positions, fed, positions).flatten(0, 1),
                expected);
          }};
}

}  // namespace hvdlite::trainers
