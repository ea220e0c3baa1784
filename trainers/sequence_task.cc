#include "trainers/sequence_task.h"

#include <hvdlite/timeline.h>

#include <initializer_list>
#include <utility>

#include "trainers/data/sets/token_sets.h"
#include "trainers/models/language_model.h"
#include "trainers/models/transformer.h"
#include "trainers/step.h"

namespace hvdlite::trainers {
namespace {

// Formats the sizes that shape a model: ", layers 2, heads 8".
std::string Describe(
    std::initializer_list<std::pair<const char*, int64_t>> sizes) {
  std::string text;
  for (const auto& [name, size] : sizes) {
    text += std::string(", ") + name + " " + std::to_string(size);
  }
  return text;
}

// Returns the outputs of `model` as float32.
template <typename Model, typename... Inputs>
torch::Tensor ComputeLogits(bool bf16, Model& model, const Inputs&... inputs) {
  const Bfloat16Autocast autocast(bf16);
  return model(inputs...).to(torch::kFloat32);
}

// Predicts the structure of a residue from all residues and the structures
// before it. The decoder gets the true structures (teacher forcing).
class ProteinTask final : public SequenceTask {
 public:
  ProteinTask(ProteinSplit proteins, const TransformerOptions& options,
              bool bf16)
      : proteins_(std::move(proteins)),
        options_(options),
        bf16_(bf16),
        model_(options) {}

  std::string ModelName() const override {
    const TransformerLayerOptions& layer = options_.layer;
    return "a transformer for proteins" + Describe({{"layers", options_.layers},
                                                    {"d_model", layer.d_model},
                                                    {"d_inner", layer.d_inner},
                                                    {"heads", layer.heads},
                                                    {"d_k", layer.d_k}});
  }
  std::string Source() const override { return proteins_.source; }
  torch::nn::Module& model() override { return *model_; }
  int64_t size(Split split) const override {
    return static_cast<int64_t>(Proteins(split).size());
  }
  int64_t LengthOf(Split split, int64_t index) const override {
    return static_cast<int64_t>(
        Proteins(split)[static_cast<size_t>(index)].residues.size());
  }
  SequenceLoss Predict(Split split, const std::vector<int64_t>& indices,
                       double smoothing) override {
    const ProteinTokens tokens = MakeProteinTokens(Proteins(split), indices);
    if (split == Split::kTrain) {
      add_step_work(tokens.source.numel() + tokens.target.numel());
    }
    const torch::Tensor logits =
        ComputeLogits(bf16_, model_, tokens.source, tokens.source_positions,
                      tokens.target, tokens.target_positions);
    return ComputeSequenceLoss(logits, tokens.expected, kPaddingToken,
                               smoothing);
  }

 private:
  const ProteinSet& Proteins(Split split) const {
    return split == Split::kTrain ? proteins_.train : proteins_.test;
  }

  const ProteinSplit proteins_;
  const TransformerOptions options_;
  const bool bf16_;
  Transformer model_;
};

// Predicts the next byte in a window of text from the bytes before it.
class TextTask final : public SequenceTask {
 public:
  TextTask(std::string file, TextWindows text,
           const LanguageModelOptions& options, bool bf16)
      : file_(std::move(file)),
        text_(std::move(text)),
        options_(options),
        bf16_(bf16),
        model_(options) {}

  std::string ModelName() const override {
    return "a language model" + Describe({{"layers", options_.layers},
                                          {"d_model", options_.d_model},
                                          {"d_inner", options_.d_inner},
                                          {"heads", options_.heads},
                                          {"context", options_.context}});
  }
  std::string Source() const override { return file_; }
  torch::nn::Module& model() override { return *model_; }
  int64_t size(Split split) const override {
    return split == Split::kTrain ? text_.train_windows()
                                  : text_.test_windows();
  }
  int64_t LengthOf(Split /*split*/, int64_t /*index*/) const override {
    return options_.context;
  }
  SequenceLoss Predict(Split split, const std::vector<int64_t>& indices,
                       double smoothing) override {
    constexpr int64_t kNothingIgnored = -1;
    const torch::Tensor windows =
        split == Split::kTrain ? text_.Train(indices) : text_.Test(indices);
    if (split == Split::kTrain) add_step_work(windows.numel());
    const torch::Tensor logits =
        ComputeLogits(bf16_, model_, windows.narrow(1, 0, options_.context));
    return ComputeSequenceLoss(logits, windows.narrow(1, 1, options_.context),
                               kNothingIgnored, smoothing);
  }

 private:
  const std::string file_;
  const TextWindows text_;
  const LanguageModelOptions options_;
  const bool bf16_;
  LanguageModel model_;
};

TransformerOptions TransformerOptionsOf(const TransformerFlags& flags) {
  TransformerOptions options;
  options.layers = flags.layers;
  options.layer = {.d_model = flags.d_model,
                   .d_inner = flags.d_inner,
                   .heads = flags.heads,
                   .d_k = flags.d_k,
                   .d_v = flags.d_k,
                   .dropout = flags.dropout,
                   .attention_dropout = flags.attention_dropout};
  return options;
}

}  // namespace

std::unique_ptr<SequenceTask> MakeTask(const TransformerFlags& flags,
                                       support::ProgressStyle style) {
  if (flags.task == "lm") {
    return std::make_unique<TextTask>(
        flags.text, ReadTextWindows(flags.text, flags.context),
        LanguageModelOptions{.layers = flags.layers,
                             .d_model = flags.d_model,
                             .heads = flags.heads,
                             .d_inner = flags.d_inner,
                             .context = flags.context,
                             .dropout = flags.dropout},
        flags.bf16);
  }
  return std::make_unique<ProteinTask>(ReadProteinSplit(flags.data_dir, style),
                                       TransformerOptionsOf(flags), flags.bf16);
}

}  // namespace hvdlite::trainers
