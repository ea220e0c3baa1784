#include "trainers/transformer_flags.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "support/flags.h"
#include "support/input_error.h"

namespace hvdlite::trainers {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TransformerFlags, task, data_dir, text,
                                   context, layers, d_model, d_inner, heads,
                                   d_k, dropout, attention_dropout, bf16, deal,
                                   warmup_steps, lr_factor, smoothing, no_test,
                                   profile)

namespace {

constexpr char kTransformerHelp[] =
    "Trains a transformer, data-parallel: to predict the secondary structure\n"
    "of proteins (pssp), or the next byte of a text (lm).\n"
    "\n"
    "  mpirun -np 2 train_transformer --data-dir DIR\n"
    "  mpirun -np 2 train_transformer --task lm --text FILE --layers 6\n"
    "\n"
    "DIR holds cullpdb+profile_6133_filtered.npy.gz, for training, and\n"
    "cb513+profile_split1.npy.gz, for testing. If one of them is missing,\n"
    "cullpdb+profile_6133.npy.gz is divided into both sets. generate_pssp\n"
    "makes small files. With any number of ranks, a step processes\n"
    "--global-batch-size sequences and uses the gradient that one process\n"
    "would compute.\n";

void AddTaskFlags(CLI::App& app, TransformerFlags& flags) {
  app.add_option("--task", flags.task,
                 "Task: protein structure (pssp) or language model (lm)")
      ->check(CLI::IsMember({"pssp", "lm"}))
      ->group("Data");
  app.add_option("--data-dir", flags.data_dir,
                 "Directory with the protein files for --task pssp")
      ->group("Data");
  app.add_option("--text", flags.text, "Text file for --task lm")
      ->group("Data");
  app.add_option("--context", flags.context, "Bytes per sequence for --task lm")
      ->check(CLI::Range(1, 1 << 20))
      ->group("Data");
}

void AddModelFlags(CLI::App& app, TransformerFlags& flags) {
  const auto add = [&](const char* name, int64_t& value, const char* text) {
    app.add_option(name, value, text)
        ->check(support::Positive())
        ->group("Model");
  };
  add("--layers", flags.layers, "Layers; in pssp, of encoder and decoder each");
  add("--d-model", flags.d_model, "Width of the model");
  add("--d-inner", flags.d_inner, "Inner width of the feed-forward networks");
  add("--heads", flags.heads, "Number of attention heads");
  add("--d-k", flags.d_k,
      "Width of a head's keys and values in pssp; in lm it is --d-model by "
      "--heads");
  app.add_option("--dropout", flags.dropout, "Dropout probability")
      ->check(CLI::Range(0.0, 0.99))
      ->group("Model");
  app.add_option("--attention-dropout", flags.attention_dropout,
                 "Dropout probability of attention weights in pssp")
      ->check(CLI::Range(0.0, 0.99))
      ->group("Model");
  app.add_flag(
         "--bf16", flags.bf16,
         "Compute forward passes in bfloat16 where that is safe (autocast); "
         "weights and gradients stay float32. Far slower, with a warning, on "
         "a processor without instructions for it (avx512_bf16 or amx_bf16; "
         "Arm: bf16 or svebf16)")
      ->group("Model");
}

void AddTrainingFlags(CLI::App& app, TransformerFlags& flags) {
  AddBatchSizeFlags(app, flags.batch_size, "Sequences", "Training");
  app.add_option("--deal", flags.deal,
                 "How a step's sequences are divided among the ranks. length: "
                 "so that all ranks get sequences of similar length; random: "
                 "at random")
      ->check(CLI::IsMember({"length", "random"}))
      ->group("Training");
  app.add_option("--warmup-steps", flags.warmup_steps,
                 "Warm-up steps W: the learning rate of step s is --lr-factor "
                 "* d_model^-0.5 * min(s^-0.5, s * W^-1.5)")
      ->check(support::Positive())
      ->group("Training");
  app.add_option("--lr-factor", flags.lr_factor,
                 "Factor of the learning rate; see --warmup-steps")
      ->check(support::Positive())
      ->group("Training");
  app.add_option("--smoothing", flags.smoothing,
                 "Share of probability that a label's wrong tokens get; 0.1 "
                 "is usual")
      ->check(CLI::Range(0.0, 0.99))
      ->group("Training");
}

void CheckTransformerFlags(const TransformerFlags& flags) {
  if (flags.task == "pssp" && flags.data_dir.empty()) {
    throw support::InputError("--task pssp needs --data-dir DIR");
  }
  if (flags.task == "lm" && flags.text.empty()) {
    throw support::InputError("--task lm needs --text FILE");
  }
  if (flags.task == "lm" && flags.d_model % flags.heads != 0) {
    throw support::InputError("--heads " + std::to_string(flags.heads) +
                              " does not divide --d-model " +
                              std::to_string(flags.d_model));
  }
}

}  // namespace

support::CommandLine<TransformerFlags> ParseTransformerFlags(
    int argc, const char* const* argv) {
  return support::ParseFlags<TransformerFlags>(
      "train_transformer", kTransformerHelp, argc, argv,
      [](CLI::App& app, TransformerFlags& flags) {
        AddTaskFlags(app, flags);
        AddModelFlags(app, flags);
        AddTrainingFlags(app, flags);
        AddRunFlags(app, flags.run);
        app.add_flag("--no-test", flags.no_test,
                     "Do not test after each epoch, to measure speed");
        app.add_flag(
               "--profile", flags.profile,
               "Print rank 0's operators in descending order of self time")
            ->group("Run");
      },
      CheckTransformerFlags);
}

std::string ToJson(const TransformerFlags& flags) {
  using nlohmann::json;
  return SettingsText(
      json(flags).dump(-1, ' ', false, json::error_handler_t::replace),
      flags.batch_size, flags.run);
}

}  // namespace hvdlite::trainers
