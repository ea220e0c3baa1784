#include "trainers/resnet50_flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "support/flags.h"
#include "support/input_error.h"

namespace hvdlite::trainers {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(
    ResNet50Flags, arch, stem, zero_init_residual, memory_format, bf16,
    data_dir, synthetic, synthetic_images, image_size, classes, augmentation,
    train_domains, val_domains, skip_unreadable, workers, eval_every, lr,
    lr_scaling, rescaling_epochs, momentum, weight_decay, nesterov,
    warmup_epochs, lr_steps, lr_gamma, log_interval, no_sync, barrier_only)

namespace {

constexpr char kResNet50Help[] =
    "Trains a ResNet on CIFAR-10, directories of images or synthetic images,\n"
    "data-parallel:\n"
    "\n"
    "  mpirun -np 2 train_resnet50 --data-dir DIR --epochs 10\n"
    "  mpirun -np 2 train_resnet50 --synthetic --max-steps 20\n"
    "\n"
    "Every rank processes --batch-size-per-rank images per step; gradients\n"
    "are averaged over all ranks. Set HVDLITE_TIMELINE=trace.json to see\n"
    "where the time goes (timeline_viewer trace.json).\n";

void AddModelFlags(CLI::App& app, ResNet50Flags& flags) {
  app.add_option("--arch", flags.arch,
                 "Network. resnet8 is a tiny one for 32x32 images and quick "
                 "tests; resnet50_v1 has its strides in the first 1x1 "
                 "convolutions, as the resnet50 of tf_cnn_benchmarks")
      ->check(CLI::IsMember({"resnet8", "resnet18", "resnet34", "resnet50",
                             "resnet50_v1", "resnet101", "resnet152"}))
      ->group("Model");
  app.add_option("--stem", flags.stem,
                 "First layers of the network. imagenet: a 7x7 convolution "
                 "with stride 2 and max-pooling, which leave 1/16 of the "
                 "pixels; cifar: a 3x3 convolution; auto: cifar for images "
                 "below 64 pixels a side, else imagenet")
      ->check(CLI::IsMember({"auto", "imagenet", "cifar"}))
      ->group("Model");
  app.add_flag("--zero-init-residual", flags.zero_init_residual,
               "Initialise every residual branch with zero output")
      ->group("Model");
  app.add_option("--memory-format", flags.memory_format,
                 "Memory layout of weights and images. onednn: activations in "
                 "the blocked layout that oneDNN prefers, weights in nchw")
      ->check(CLI::IsMember({"nchw", "nhwc", "onednn"}))
      ->group("Model");
  app.add_flag(
         "--bf16", flags.bf16,
         "Compute forward passes in bfloat16 where that is safe (autocast); "
         "weights and gradients stay float32. Far slower, with a warning, on "
         "a processor without instructions for it (avx512_bf16 or amx_bf16; "
         "Arm: bf16 or svebf16)")
      ->group("Model");
}

void AddDataFlags(CLI::App& app, ResNet50Flags& flags) {
  CLI::Option* data_dir =
      app.add_option(
             "--data-dir", flags.data_dir,
             "Directory with CIFAR-10's binary files (data_batch_*.bin, "
             "test_batch.bin) or its subdirectory cifar-10-batches-bin, or "
             "with directories DOMAIN/CLASS of JPEG and PNG files, as in "
             "PACS. generate_cifar10 and generate_pacs make small data sets")
          ->group("Data");
  CLI::Option* synthetic =
      app.add_flag("--synthetic", flags.synthetic,
                   "Train on one fixed random batch, to measure speed")
          ->excludes(data_dir)
          ->group("Data");
  app.add_option("--synthetic-images", flags.synthetic_images,
                 "Images per epoch with --synthetic")
      ->check(support::Positive())
      ->needs(synthetic)
      ->group("Data");
  app.add_option("--image-size", flags.image_size,
                 "Side of the square input images in pixels; 0: 224, or 32 "
                 "for CIFAR-10")
      ->check(CLI::Range(8, 4096) | CLI::IsMember({0}))
      ->group("Data");
  app.add_option("--classes", flags.classes,
                 "Number of classes with --synthetic")
      ->check(support::Positive())
      ->needs(synthetic)
      ->group("Data");
}

void AddFolderFlags(CLI::App& app, ResNet50Flags& flags) {
  app.add_option("--augmentation", flags.augmentation,
                 "How images are transformed. imagenet: for training a random "
                 "crop of 0.08 to 1 of the area, flipped in half of the "
                 "cases; for evaluation the centre crop of the image, whose "
                 "shorter side is resized to 256 for --image-size 224. "
                 "domain-generalisation: for training a random crop of 0.8 to "
                 "1 of the area with changes of colour; for evaluation the "
                 "whole image, resized to a square. auto: imagenet. CIFAR-10 "
                 "has its own recipe")
      ->check(CLI::IsMember({"auto", "imagenet", "domain-generalisation"}))
      ->group("Directories of images");
  app.add_option("--train-domains", flags.train_domains,
                 "Domains to train on, separated by commas; default: all "
                 "except the validation domains")
      ->delimiter(',')
      ->group("Directories of images");
  app.add_option("--val-domains", flags.val_domains,
                 "Domains to evaluate on, separated by commas; default: all "
                 "except the training domains. If both are absent: 'val' if "
                 "'train' and 'val' exist, else the last domain by name")
      ->delimiter(',')
      ->group("Directories of images");
  app.add_flag("--skip-unreadable", flags.skip_unreadable,
               "Continue when an image cannot be read: training takes another "
               "image, evaluation skips it, and the report counts both. "
               "--check-data lists such images")
      ->group("Directories of images");
  app.add_option("--workers", flags.workers,
                 "Threads per rank that load the next batches during the "
                 "computation; 0: none. The result does not depend on them")
      ->check(CLI::Range(0, 256))
      ->group("Data");
}

void AddTrainingFlags(CLI::App& app, ResNet50Flags& flags) {
  AddBatchSizeFlags(app, flags.batch_size, "Images", "Training");
  app.add_option("--eval-every", flags.eval_every,
                 "Epochs between evaluations on the test images, with one "
                 "more at the end; 0: never. Not with --synthetic")
      ->check(support::NotNegative())
      ->group("Training");
}

void AddOptimizerFlags(CLI::App& app, ResNet50Flags& flags) {
  app.add_option(
         "--lr", flags.lr,
         "Learning rate for one rank; --lr-scaling adapts it to more ranks")
      ->check(support::Positive())
      ->group("Optimizer");
  app.add_option("--lr-scaling", flags.lr_scaling,
                 "Factor of the learning rate. linear: the number of ranks; "
                 "sqrt: its square root; none: 1")
      ->check(CLI::IsMember({"linear", "sqrt", "none"}))
      ->group("Optimizer");
  app.add_option("--rescaling-epochs", flags.rescaling_epochs,
                 "Epochs over which the learning rate changes linearly when a "
                 "training continues with another number of ranks; 0: change "
                 "it immediately")
      ->check(support::NotNegative())
      ->group("Optimizer");
  app.add_option("--momentum", flags.momentum, "Momentum of SGD")
      ->check(CLI::Range(0.0, 1.0))
      ->group("Optimizer");
  app.add_option("--weight-decay", flags.weight_decay,
                 "Weight of the L2 penalty")
      ->check(support::NotNegative())
      ->group("Optimizer");
  app.add_flag("--nesterov", flags.nesterov, "Use Nesterov's momentum")
      ->group("Optimizer");
  app.add_option("--warmup-epochs", flags.warmup_epochs,
                 "Epochs over which the learning rate rises linearly from "
                 "--lr to the value for all ranks; 0: no warm-up")
      ->check(support::NotNegative())
      ->group("Optimizer");
  app.add_option(
         "--lr-steps", flags.lr_steps,
         "Epochs, separated by commas, after which the learning rate is "
         "multiplied by --lr-gamma")
      ->delimiter(',')
      ->check(support::NotNegative())
      ->group("Optimizer");
  app.add_option("--lr-gamma", flags.lr_gamma,
                 "Factor for each epoch of --lr-steps")
      ->check(support::Positive())
      ->group("Optimizer");
}

void AddLoggingAndSyncFlags(CLI::App& app, ResNet50Flags& flags) {
  app.add_option("--log-interval", flags.log_interval,
                 "Steps between two progress lines")
      ->check(support::Positive())
      ->group("Run");
  CLI::Option* no_sync =
      app.add_flag(
             "--no-sync", flags.no_sync,
             "Do not average gradients: every rank trains its own model. Use "
             "it to measure the cost of synchronisation. Losses are rank 0's; "
             "evaluations use each rank's model for its share")
          ->group("Run");
  app.add_flag("--barrier-only", flags.barrier_only,
               "As --no-sync, but ranks wait for each other before every "
               "update: the time that would remain with free averaging")
      ->excludes(no_sync)
      ->group("Run");
}

void CheckResNet50Flags(const ResNet50Flags& flags) {
  if (flags.data_dir.empty() && !flags.synthetic) {
    throw support::InputError("give either --data-dir DIR or --synthetic");
  }
  if (flags.synthetic &&
      !(flags.train_domains.empty() && flags.val_domains.empty())) {
    throw support::InputError(
        "--train-domains and --val-domains need --data-dir, not "
        "--synthetic");
  }
  if (flags.synthetic && flags.augmentation != "auto") {
    throw support::InputError(
        "--augmentation needs --data-dir, not --synthetic");
  }
  if (flags.synthetic && flags.skip_unreadable) {
    throw support::InputError(
        "--skip-unreadable needs --data-dir, not --synthetic");
  }
  if (flags.synthetic && flags.run.check_data) {
    throw support::InputError("--check-data needs --data-dir, not --synthetic");
  }
  if (flags.bf16 && flags.memory_format == "onednn") {
    throw support::InputError("--bf16 needs --memory-format nchw or nhwc");
  }
  if (flags.run.compute.no_onednn && flags.memory_format == "onednn") {
    throw support::InputError(
        "--no-onednn needs --memory-format nchw or nhwc: the format onednn is "
        "one of oneDNN's "
        "blocks");
  }
  if (flags.nesterov && flags.momentum <= 0) {
    throw support::InputError("--nesterov needs a --momentum above 0");
  }
  if (!std::is_sorted(flags.lr_steps.begin(), flags.lr_steps.end())) {
    throw support::InputError("--lr-steps must be in ascending order");
  }
}

}  // namespace

support::CommandLine<ResNet50Flags> ParseResNet50Flags(
    int argc, const char* const* argv) {
  return support::ParseFlags<ResNet50Flags>(
      "train_resnet50", kResNet50Help, argc, argv,
      [](CLI::App& app, ResNet50Flags& flags) {
        AddModelFlags(app, flags);
        AddDataFlags(app, flags);
        AddFolderFlags(app, flags);
        AddTrainingFlags(app, flags);
        AddOptimizerFlags(app, flags);
        AddRunFlags(app, flags.run);
        AddLoggingAndSyncFlags(app, flags);
      },
      CheckResNet50Flags);
}

bool ResNet50Flags::has_small_image_stem() const {
  constexpr int64_t kSmallImageSize = 64;
  return stem == "cifar" || (stem == "auto" && image_size < kSmallImageSize);
}

std::string ToJson(const ResNet50Flags& flags) {
  using nlohmann::json;
  return SettingsText(
      json(flags).dump(-1, ' ', false, json::error_handler_t::replace),
      flags.batch_size, flags.run);
}

}  // namespace hvdlite::trainers
