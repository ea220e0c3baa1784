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
    "Trains a ResNet on CIFAR-10, folders of images or synthetic images,\n"
    "data-parallel:\n"
    "\n"
    "  mpirun -np 2 train_resnet50 --data-dir DIR --epochs 10\n"
    "  mpirun -np 2 train_resnet50 --synthetic --max-steps 20\n"
    "\n"
    "Every rank processes --batch-size-per-rank images a step; gradients are\n"
    "averaged over all ranks. Set HVDLITE_TIMELINE=trace.json to see where the "
    "time\n"
    "goes (timeline_viewer trace.json).\n";

void AddModelFlags(CLI::App& app, ResNet50Flags& flags) {
  app.add_option("--arch", flags.arch,
                 "Network. resnet8 is a tiny one, for 32x32 images and quick "
                 "tests; resnet50_v1 has its strides in the first 1x1 "
                 "convolutions, as tf_cnn_benchmarks' resnet50")
      ->check(CLI::IsMember({"resnet8", "resnet18", "resnet34", "resnet50",
                             "resnet50_v1", "resnet101", "resnet152"}))
      ->group("Model");
  app.add_option("--stem", flags.stem,
                 "How the network begins. imagenet: a 7x7 convolution of "
                 "stride 2 and max-pooling, 16 times fewer pixels for what "
                 "follows; cifar: a 3x3 convolution; auto: cifar for images "
                 "below 64 pixels a side")
      ->check(CLI::IsMember({"auto", "imagenet", "cifar"}))
      ->group("Model");
  app.add_flag("--zero-init-residual", flags.zero_init_residual,
               "Start every residual branch at zero")
      ->group("Model");
  app.add_option("--memory-format", flags.memory_format,
                 "Layout of weights and images. onednn: activations in the "
                 "blocks that oneDNN prefers, weights in nchw")
      ->check(CLI::IsMember({"nchw", "nhwc", "onednn"}))
      ->group("Model");
  app.add_flag(
         "--bf16", flags.bf16,
         "Compute forward passes in bfloat16 where that is safe "
         "(autocast); weights and gradients stay float32. On a processor "
         "without instructions for it (avx512_bf16 or amx_bf16; Arm: bf16 "
         "or svebf16) it is far slower, and warns")
      ->group("Model");
}

void AddDataFlags(CLI::App& app, ResNet50Flags& flags) {
  CLI::Option* data_dir =
      app.add_option(
             "--data-dir", flags.data_dir,
             "Directory with CIFAR-10's binary files (data_batch_*.bin, "
             "test_batch.bin) or with its folder cifar-10-batches-bin, or "
             "with folders DOMAIN/CLASS of JPEG and PNG files, as PACS has "
             "them; generate_cifar10 and generate_pacs make small ones")
          ->group("Data");
  CLI::Option* synthetic =
      app.add_flag("--synthetic", flags.synthetic,
                   "Train on one fixed random batch: for measuring speed")
          ->excludes(data_dir)
          ->group("Data");
  app.add_option("--synthetic-images", flags.synthetic_images,
                 "Images of an epoch with --synthetic")
      ->check(support::Positive())
      ->needs(synthetic)
      ->group("Data");
  app.add_option("--image-size", flags.image_size,
                 "Side of the images that the network sees, of folders or "
                 "synthetic, in pixels; 0: 224, but CIFAR-10's 32")
      ->check(CLI::Range(8, 4096) | CLI::IsMember({0}))
      ->group("Data");
  app.add_option("--classes", flags.classes, "Classes, with --synthetic")
      ->check(support::Positive())
      ->needs(synthetic)
      ->group("Data");
}

void AddFolderFlags(CLI::App& app, ResNet50Flags& flags) {
  app.add_option("--augmentation", flags.augmentation,
                 "How images are changed for training, and shown for "
                 "evaluation. imagenet: a crop of 0.08 to 1 of the area, "
                 "flipped in half of the cases; the middle, of the shorter "
                 "side resized to 256 for --image-size 224; "
                 "domain-generalisation: a crop of 0.8 to 1 with changes of "
                 "colour; the whole image, whatever its proportions; auto: "
                 "imagenet. CIFAR-10 has a recipe of its own")
      ->check(CLI::IsMember({"auto", "imagenet", "domain-generalisation"}))
      ->group("Folders of images");
  app.add_option("--train-domains", flags.train_domains,
                 "Domains, separated by commas, to train on; if not given, all "
                 "that are not for validation")
      ->delimiter(',')
      ->group("Folders of images");
  app.add_option("--val-domains", flags.val_domains,
                 "Domains to evaluate on; if not given, all that are not for "
                 "training or, if these are not given either, 'val' where "
                 "there are 'train' and 'val', else the last by name")
      ->delimiter(',')
      ->group("Folders of images");
  app.add_flag("--skip-unreadable", flags.skip_unreadable,
               "An image that cannot be read is no error: training takes "
               "another one, evaluation leaves it out, and the report counts "
               "both; --check-data lists them")
      ->group("Folders of images");
  app.add_option("--workers", flags.workers,
                 "Threads of a rank that load the next batches while it "
                 "computes; 0: none. They do not change what is loaded")
      ->check(CLI::Range(0, 256))
      ->group("Data");
}

void AddTrainingFlags(CLI::App& app, ResNet50Flags& flags) {
  AddBatchSizeFlags(app, flags.batch_size, "Images", "Training");
  app.add_option("--eval-every", flags.eval_every,
                 "Evaluate on the test images after every so many epochs and "
                 "at the end; 0: never. Not with --synthetic")
      ->check(support::NotNegative())
      ->group("Training");
}

void AddOptimizerFlags(CLI::App& app, ResNet50Flags& flags) {
  app.add_option(
         "--lr", flags.lr,
         "Learning rate for one rank; more ranks have another by --lr-scaling")
      ->check(support::Positive())
      ->group("Optimizer");
  app.add_option("--lr-scaling", flags.lr_scaling,
                 "What the learning rate is multiplied by: linear: the number "
                 "of ranks, sqrt: its square root, none: nothing")
      ->check(CLI::IsMember({"linear", "sqrt", "none"}))
      ->group("Optimizer");
  app.add_option("--rescaling-epochs", flags.rescaling_epochs,
                 "Where a training goes on with another number of ranks, "
                 "change the learning rate linearly over so many epochs; 0: "
                 "at once")
      ->check(support::NotNegative())
      ->group("Optimizer");
  app.add_option("--momentum", flags.momentum, "Momentum of SGD")
      ->check(CLI::Range(0.0, 1.0))
      ->group("Optimizer");
  app.add_option("--weight-decay", flags.weight_decay, "L2 penalty")
      ->check(support::NotNegative())
      ->group("Optimizer");
  app.add_flag("--nesterov", flags.nesterov, "Nesterov's momentum")
      ->group("Optimizer");
  app.add_option("--warmup-epochs", flags.warmup_epochs,
                 "Raise the learning rate linearly from --lr to that of all "
                 "ranks over these epochs; 0: at once")
      ->check(support::NotNegative())
      ->group("Optimizer");
  app.add_option(
         "--lr-steps", flags.lr_steps,
         "Epochs, separated by commas, after which the learning rate is "
         "multiplied by --lr-gamma")
      ->delimiter(',')
      ->check(support::NotNegative())
      ->group("Optimizer");
  app.add_option("--lr-gamma", flags.lr_gamma, "Factor of --lr-steps")
      ->check(support::Positive())
      ->group("Optimizer");
}

void AddLoggingAndSyncFlags(CLI::App& app, ResNet50Flags& flags) {
  app.add_option("--log-interval", flags.log_interval,
                 "Steps between two lines")
      ->check(support::Positive())
      ->group("Run");
  CLI::Option* no_sync =
      app.add_flag(
             "--no-sync", flags.no_sync,
             "Do not average gradients, so that every rank trains a model of "
             "its own: to measure what synchronisation costs. Losses are "
             "rank 0's, evaluations take each rank's model for its share")
          ->group("Run");
  app.add_flag("--barrier-only", flags.barrier_only,
               "As --no-sync, but the ranks wait for each other before every "
               "update: what remains if averaging costs nothing")
      ->excludes(no_sync)
      ->group("Run");
}

void CheckResNet50Flags(const ResNet50Flags& flags) {
  if (flags.data_dir.empty() && !flags.synthetic) {
    throw support::InputError(
        "one of --data-dir DIR and --synthetic is needed");
  }
  if (flags.synthetic &&
      !(flags.train_domains.empty() && flags.val_domains.empty())) {
    throw support::InputError(
        "--train-domains and --val-domains are for --data-dir, not for "
        "--synthetic");
  }
  if (flags.synthetic && flags.augmentation != "auto") {
    throw support::InputError(
        "--augmentation is for --data-dir, not for --synthetic");
  }
  if (flags.synthetic && flags.skip_unreadable) {
    throw support::InputError(
        "--skip-unreadable is for --data-dir, not for --synthetic");
  }
  if (flags.synthetic && flags.run.check_data) {
    throw support::InputError(
        "--check-data is for --data-dir, not for --synthetic");
  }
  if (flags.bf16 && flags.memory_format == "onednn") {
    throw support::InputError("--bf16 needs --memory-format nchw or nhwc");
  }
  if (flags.run.compute.no_onednn && flags.memory_format == "onednn") {
    throw support::InputError(
        "--no-onednn needs --memory-format nchw or nhwc: onednn are oneDNN's "
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
