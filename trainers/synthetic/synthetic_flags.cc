#include "trainers/synthetic/synthetic_flags.h"

#include <CLI/CLI.hpp>
#include <filesystem>

#include "support/flags.h"
#include "support/input_error.h"
#include "trainers/synthetic/synthetic_models.h"

namespace hvdlite::trainers {
namespace {

constexpr char kSyntheticHelp[] =
    "Trains a model on one random batch, data-parallel, to measure speed:\n"
    "\n"
    "  mpirun -np 2 train_synthetic --model resnet50 --batch-size-per-rank 32\n"
    "  mpirun -np 2 train_synthetic --model mlp --repeat 100 --report DIR\n"
    "  train_synthetic --model resnet18 --instances 4\n"
    "\n"
    "Rank 0 prints the speed of all ranks together and its own loss, as\n"
    "tf_cnn_benchmarks does. A loss that is not finite ends the program with\n"
    "exit code 1.\n";

void AddModelFlags(CLI::App& app, SyntheticTaskOptions& task) {
  app.add_option("--model", task.model,
                 "What to compute; image_loading: no model, but loading and "
                 "augmenting images")
      ->check(CLI::IsMember(SyntheticModelNames()))
      ->group("Model");
  app.add_option("--data-dir", task.data_dir,
                 "Folders of JPEG and PNG files that image_loading loads, "
                 "DOMAIN/CLASS/*.jpg (generate_pacs makes some); without it, "
                 "small images from memory")
      ->group("Model");
  app.add_option("--workers", task.workers,
                 "Threads that load and change images of --data-dir ahead; 0: "
                 "the one that waits for them")
      ->check(CLI::Range(0, 1024))
      ->group("Model");
  app.add_option("--data-format", task.data_format,
                 "Layout of images and weights")
      ->check(CLI::IsMember({"NCHW", "NHWC"}))
      ->group("Model");
  const auto add = [&](const char* name, int64_t& value, const char* text) {
    app.add_option(name, value, text)
        ->check(CLI::Range(0, 1 << 20))
        ->group("Model");
  };
  add("--image-size", task.image_size,
      "Side of the images in pixels. This and the sizes below: 0 for that of "
      "the model's publication; smaller ones are for tests");
  add("--classes", task.classes,
      "Classes that images belong to, or words of a vocabulary");
  add("--sequence-length", task.sequence_length,
      "Tokens of a sequence, or steps of a game in a batch");
  add("--width", task.width, "Channels of the narrowest convolution");
  add("--hidden", task.hidden,
      "Width of the hidden linear or recurrent layers");
}

void AddTrainingFlags(CLI::App& app, SyntheticFlags& flags) {
  CLI::Option* forward =
      app.add_flag("--forward-only", flags.forward_only,
                   "Compute losses in evaluation mode, without gradients")
          ->group("Training");
  app.add_flag("--gradients-only", flags.gradients_only,
               "Compute losses in evaluation mode and this rank's gradients, "
               "which grow from batch to batch; update nothing")
      ->excludes(forward)
      ->group("Training");
  app.add_flag("--bf16", flags.bf16,
               "Compute convolutions, matrix products and what else profits in "
               "bfloat16, from float32 weights; far slower, with a warning, on "
               "a processor without avx512_bf16 or amx_bf16 (Arm: bf16, "
               "svebf16)")
      ->group("Training");
  app.add_option(
         "--optimizer", flags.optimizer,
         "sgd; momentum: SGD with momentum 0.9 and weight decay 0.0005; "
         "or adam")
      ->check(CLI::IsMember({"sgd", "momentum", "adam"}))
      ->group("Training");
  app.add_option("--lr", flags.lr, "Learning rate")
      ->check(support::Positive())
      ->group("Training");
  app.add_option("--clip-norm", flags.clip_norm,
                 "Scale gradients down to this norm of all together; 0: leave "
                 "them")
      ->check(support::NotNegative())
      ->group("Training");
  app.add_flag("--fp16-allreduce", flags.fp16_allreduce,
               "Send gradients with 16 bits")
      ->group("Training");
  app.add_flag("--use-adasum", flags.use_adasum,
               "Combine gradients by Adasum instead of averaging them")
      ->group("Training");
  app.add_flag("--views", flags.views,
               "Keep gradients in the memory that they are reduced in "
               "(gradient_as_fusion_view)")
      ->group("Training");
}

void AddTimingFlags(CLI::App& app, SyntheticFlags& flags) {
  const auto add = [&](const char* name, int64_t& value, const char* text) {
    return app.add_option(name, value, text)->group("Timing");
  };
  CLI::Option* warmup = add("--num-warmup-batches", flags.num_warmup_batches,
                            "Batches before those that are timed")
                            ->check(support::NotNegative());
  CLI::Option* batches =
      add("--num-batches", flags.num_batches, "Batches that are timed")
          ->check(support::Positive());
  CLI::Option* display =
      add("--display-every", flags.display_every, "Batches between two lines")
          ->check(support::Positive());
  CLI::Option* repeat =
      add("--repeat", flags.repeat,
          "Time this many observations of --number batches each, as Mila's "
          "training benchmarks do, and print a line for each; 0: time "
          "--num-batches")
          ->check(support::NotNegative())
          ->excludes(warmup)
          ->excludes(batches)
          ->excludes(display);
  add("--number", flags.number, "Batches of an observation")
      ->check(support::Positive())
      ->needs(repeat);
  add("--skip", flags.skip, "First observations that are left out")
      ->check(support::NotNegative())
      ->needs(repeat);
}

void AddReportFlags(CLI::App& app, SyntheticFlags& flags) {
  app.add_option("--report", flags.report,
                 "File (*.json), or folder for a file NAME.json, that rank 0 "
                 "appends a report to; studies/bench_report compares them")
      ->group("Run");
  app.add_option("--name", flags.name,
                 "Name of the benchmark in its report; if not given, the "
                 "model's")
      ->group("Run");
  app.add_flag("--check", flags.check,
               "Compare the ranks' parameters at the end; exit code 1 if they "
               "differ")
      ->group("Run");
  app.add_option("--instances", flags.instances,
                 "Run this many copies at once, each alone on its share of "
                 "this machine's CPUs; instance I writes its report to the "
                 "folder instanceI of --report, or to FILE_I.json if that is "
                 "FILE.json. Not with more than one rank")
      ->check(support::Positive())
      ->group("Run");
  app.add_flag("--share-memory", flags.share_memory,
               "Each of the --instances may have its share of this machine's "
               "memory, too; one that asks for more fails (RLIMIT_DATA)")
      ->group("Run");
  // For RunCopies() alone.
  app.add_option("--instance", flags.instance)->group("");
  AddProcessFlags(app, flags.task.seed, flags.compute);
}

void RequireTraining(const SyntheticFlags& flags) {
  if (flags.trains()) return;
  const bool has_none = flags.task.model == "image_loading";
  const std::string reason = has_none             ? "--model image_loading"
                             : flags.forward_only ? "--forward-only"
                                                  : "--gradients-only";
  const auto refuse = [&](bool given, const std::string& flag) {
    if (!given) return;
    throw support::InputError(flag + " is about gradients, but with " + reason +
                              " there are none that the ranks share");
  };
  refuse(flags.gradients_only && has_none, "--gradients-only");
  refuse(flags.fp16_allreduce, "--fp16-allreduce");
  refuse(flags.use_adasum, "--use-adasum");
  refuse(flags.views, "--views");
  refuse(flags.clip_norm > 0, "--clip-norm");
  refuse(flags.check, "--check");
}

void CheckSyntheticFlags(const SyntheticFlags& flags) {
  RequireSuitable(flags.task);
  RequireTraining(flags);
  if (flags.repeat > 0) {
    RequireValid(ObservationPlan{
        .repeat = flags.repeat, .number = flags.number, .skip = flags.skip});
  }
  if (flags.share_memory && flags.instances == 1) {
    throw support::InputError(
        "--share-memory shares it among --instances, but there is one");
  }
  const bool plain = !flags.name.empty() &&
                     flags.name.find('/') == std::string::npos &&
                     flags.name.front() != '.';
  if (!flags.name.empty() && !plain) {
    throw support::InputError(
        "--name is '" + flags.name +
        "'; expected what can be the name of a file, without '/'");
  }
}

}  // namespace

support::CommandLine<SyntheticFlags> ParseSyntheticFlags(
    int argc, const char* const* argv) {
  return support::ParseFlags<SyntheticFlags>(
      "train_synthetic", kSyntheticHelp, argc, argv,
      [](CLI::App& app, SyntheticFlags& flags) {
        AddModelFlags(app, flags.task);
        AddBatchSizeFlags(app, flags.batch_size, "Items", "Model");
        AddTrainingFlags(app, flags);
        AddTimingFlags(app, flags);
        AddReportFlags(app, flags);
      },
      CheckSyntheticFlags);
}

std::string ReportOfInstance(const std::string& path, int64_t instance) {
  const std::filesystem::path report = path;
  const std::string index = std::to_string(instance);
  if (report.extension() != ".json") return report / ("instance" + index);
  return report.parent_path() /
         (report.stem().string() + "_" + index + ".json");
}

Arguments ArgumentsOf(const SyntheticFlags& flags) {
  const SyntheticTaskOptions& task = flags.task;
  return {{"model", task.model},
          {"data_format", task.data_format},
          {"image_size", task.image_size},
          {"classes", task.classes},
          {"sequence_length", task.sequence_length},
          {"width", task.width},
          {"hidden", task.hidden},
          {"data", task.data_dir},
          {"workers", static_cast<int64_t>(task.workers)},
          {"forward_only", flags.forward_only},
          {"gradients_only", flags.gradients_only},
          {"opt_level", std::string(flags.bf16 ? "O1" : "O0")},
          {"optimizer", flags.optimizer},
          {"lr", flags.lr},
          {"clip_norm", flags.clip_norm},
          {"fp16_allreduce", flags.fp16_allreduce},
          {"use_adasum", flags.use_adasum},
          {"views", flags.views},
          {"seed", static_cast<int64_t>(task.seed)},
          {"threads", static_cast<int64_t>(flags.compute.threads)},
          {"no_onednn", flags.compute.no_onednn}};
}

}  // namespace hvdlite::trainers
