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
    "tf_cnn_benchmarks does. If a loss is not finite, the program ends with\n"
    "exit code 1.\n";

void AddModelFlags(CLI::App& app, SyntheticTaskOptions& task) {
  app.add_option("--model", task.model,
                 "Model to compute; image_loading: no model, only load and "
                 "augment images")
      ->check(CLI::IsMember(SyntheticModelNames()))
      ->group("Model");
  app.add_option("--data-dir", task.data_dir,
                 "Directory of JPEG and PNG files for image_loading, as "
                 "DOMAIN/CLASS/*.jpg (generate_pacs makes some); default: "
                 "small images from memory")
      ->group("Model");
  app.add_option("--workers", task.workers,
                 "Threads that load and augment images of --data-dir in "
                 "advance; 0: the waiting thread does it")
      ->check(CLI::Range(0, 1024))
      ->group("Model");
  app.add_option("--data-format", task.data_format,
                 "Memory layout of images and weights")
      ->check(CLI::IsMember({"NCHW", "NHWC"}))
      ->group("Model");
  const auto add = [&](const char* name, int64_t& value, const char* text) {
    app.add_option(name, value, text)
        ->check(CLI::Range(0, 1 << 20))
        ->group("Model");
  };
  add("--image-size", task.image_size,
      "Side of the images in pixels. For this and the sizes below, 0 means "
      "the value of the model's publication; smaller values are for tests");
  add("--classes", task.classes,
      "Number of classes, or of words in the vocabulary");
  add("--sequence-length", task.sequence_length,
      "Tokens per sequence, or steps of a game per batch");
  add("--width", task.width, "Channels of the narrowest convolution");
  add("--hidden", task.hidden,
      "Width of the hidden linear or recurrent layers");
}

void AddTrainingFlags(CLI::App& app, SyntheticFlags& flags) {
  CLI::Option* forward =
      app.add_flag("--forward-only", flags.forward_only,
                   "Compute only losses, in evaluation mode, without "
                   "gradients")
          ->group("Training");
  app.add_flag("--gradients-only", flags.gradients_only,
               "Compute losses in evaluation mode and this rank's gradients, "
               "which add up over the batches; do not update the model")
      ->excludes(forward)
      ->group("Training");
  app.add_flag("--bf16", flags.bf16,
               "Compute convolutions, matrix products and other operators "
               "that profit in bfloat16, from float32 weights. Far slower, "
               "with a warning, on a processor without avx512_bf16 or "
               "amx_bf16 (Arm: bf16, svebf16)")
      ->group("Training");
  app.add_option(
         "--optimizer", flags.optimizer,
         "Optimizer. momentum: SGD with momentum 0.9 and weight decay 0.0005")
      ->check(CLI::IsMember({"sgd", "momentum", "adam"}))
      ->group("Training");
  app.add_option("--lr", flags.lr, "Learning rate")
      ->check(support::Positive())
      ->group("Training");
  app.add_option("--clip-norm", flags.clip_norm,
                 "Limit for the norm of all gradients together; larger ones "
                 "are scaled down; 0: no limit")
      ->check(support::NotNegative())
      ->group("Training");
  app.add_flag("--fp16-allreduce", flags.fp16_allreduce,
               "Send gradients as 16-bit floats")
      ->group("Training");
  app.add_flag("--use-adasum", flags.use_adasum,
               "Combine gradients with Adasum instead of averaging them")
      ->group("Training");
  app.add_flag("--views", flags.views,
               "Keep gradients in the memory in which they are reduced "
               "(gradient_as_fusion_view)")
      ->group("Training");
}

void AddTimingFlags(CLI::App& app, SyntheticFlags& flags) {
  const auto add = [&](const char* name, int64_t& value, const char* text) {
    return app.add_option(name, value, text)->group("Timing");
  };
  CLI::Option* warmup = add("--num-warmup-batches", flags.num_warmup_batches,
                            "Untimed batches before the measurement")
                            ->check(support::NotNegative());
  CLI::Option* batches =
      add("--num-batches", flags.num_batches, "Number of timed batches")
          ->check(support::Positive());
  CLI::Option* display = add("--display-every", flags.display_every,
                             "Batches between two progress lines")
                             ->check(support::Positive());
  CLI::Option* repeat =
      add("--repeat", flags.repeat,
          "Number of observations of --number batches each, as in Mila's "
          "training benchmarks, with a line for each; 0: time --num-batches "
          "instead")
          ->check(support::NotNegative())
          ->excludes(warmup)
          ->excludes(batches)
          ->excludes(display);
  add("--number", flags.number, "Batches per observation")
      ->check(support::Positive())
      ->needs(repeat);
  add("--skip", flags.skip, "Number of first observations to skip")
      ->check(support::NotNegative())
      ->needs(repeat);
}

void AddReportFlags(CLI::App& app, SyntheticFlags& flags) {
  app.add_option("--report", flags.report,
                 "File (*.json), or directory for a file NAME.json, to which "
                 "rank 0 appends a report. studies/bench_report compares "
                 "reports")
      ->group("Run");
  app.add_option("--name", flags.name,
                 "Name of the benchmark in its report; default: the model's "
                 "name")
      ->group("Run");
  app.add_flag("--check", flags.check,
               "Compare the ranks' parameters at the end; exit code 1 if they "
               "differ")
      ->group("Run");
  app.add_option("--instances", flags.instances,
                 "Number of copies to run at the same time, each a world of "
                 "its own on its share of this machine's CPUs. Instance I "
                 "writes its report to the directory instanceI of --report, "
                 "or to FILE_I.json if that is FILE.json. Not with more than "
                 "one rank")
      ->check(support::Positive())
      ->group("Run");
  app.add_flag("--share-memory", flags.share_memory,
               "Limit each of the --instances to its share of this machine's "
               "memory (RLIMIT_DATA); an instance that needs more fails")
      ->group("Run");
  // RunCopies() passes this flag; users do not.
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
    throw support::InputError(flag + " needs shared gradients, but " + reason +
                              " has none");
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
    throw support::InputError("--share-memory needs --instances above 1");
  }
  const bool plain = !flags.name.empty() &&
                     flags.name.find('/') == std::string::npos &&
                     flags.name.front() != '.';
  if (!flags.name.empty() && !plain) {
    throw support::InputError(
        "--name is '" + flags.name +
        "'; expected a file name that does not start with '.' and has no '/'");
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
