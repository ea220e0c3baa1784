// Trains a ResNet, data-parallel. Use it as an example for your own trainer.
//
//   mpirun -np 2 train_resnet50 --data-dir DIR --epochs 10
//
// The data-parallel parts are marked (1) to (3) in Train(); every trainer has
// the others. train_resnet50 --help lists the flags.
#include <hvdlite/hvdlite.h>
#include <torch/torch.h>
#include <torch/types.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "support/input_error.h"
#include "support/progress_line.h"
#include "support/statistics.h"
#include "trainers/data/formats/cifar10.h"
#include "trainers/data/sets/dataset.h"
#include "trainers/data/sets/image_folder.h"
#include "trainers/evaluation.h"
#include "trainers/models/resnet.h"
#include "trainers/program.h"
#include "trainers/report.h"
#include "trainers/resnet50_flags.h"
#include "trainers/step.h"
#include "trainers/training.h"

namespace hvdlite::trainers {
namespace {

// The data sets of the flags.
struct TrainingData {
  std::unique_ptr<Dataset> train;
  std::unique_ptr<Dataset> test;  // null with --synthetic
  int64_t image_size = 0;         // side in pixels
  int64_t classes = 0;
  std::string description;  // kind of files; empty with --synthetic
};

// The default side of images that can have any size.
constexpr int64_t kDefaultImageSize = 224;

int64_t FreeImageSize(const ResNet50Flags& flags) {
  return flags.image_size > 0 ? flags.image_size : kDefaultImageSize;
}

TrainingData MakeSynthetic(const ResNet50Flags& flags) {
  TrainingData data;
  data.image_size = FreeImageSize(flags);
  data.classes = flags.classes;
  data.train = std::make_unique<SyntheticDataset>(SyntheticOptions{
      .size = flags.synthetic_images,
      .batch_size = flags.batch_size.LargestPart(size()),
      .image_side = data.image_size,
      .classes = data.classes,
      .seed = flags.run.seed + rank(),
  });
  return data;
}

TrainingData LoadCifar10(const ResNet50Flags& flags) {
  if (flags.image_size > 0 && flags.image_size != kImageSide) {
    throw support::InputError("--image-size " +
                              std::to_string(flags.image_size) +
                              " does not fit CIFAR-10's images in '" +
                              flags.data_dir + "', which are 32x32");
  }
  if (!flags.train_domains.empty() || !flags.val_domains.empty()) {
    throw support::InputError(
        "--train-domains and --val-domains are for directories of images; '" +
        flags.data_dir + "' holds CIFAR-10, which has no domains");
  }
  if (flags.augmentation != "auto") {
    throw support::InputError("--augmentation is for directories of images; '" +
                              flags.data_dir +
                              "' holds CIFAR-10, which has its own recipe");
  }
  if (flags.skip_unreadable) {
    throw support::InputError(
        "--skip-unreadable is for directories of images; '" + flags.data_dir +
        "' holds CIFAR-10, which is read as a whole");
  }
  TrainingData data;
  data.image_size = kImageSide;
  data.classes = kCifar10Classes;
  data.train = std::make_unique<ImageDataset>(
      ReadCifar10(flags.data_dir, Cifar10Split::kTrain), flags.run.seed);
  data.test = std::make_unique<ImageDataset>(
      ReadCifar10(flags.data_dir, Cifar10Split::kTest), std::nullopt);
  data.description = "CIFAR-10";
  return data;
}

TrainingData LoadFolder(const ResNet50Flags& flags) {
  const ImageFolder directory = ListImageFolder(
      flags.data_dir,
      {.train = flags.train_domains, .validation = flags.val_domains},
      ProgressStyleOfRank());
  TrainingData data;
  data.image_size = FreeImageSize(flags);
  data.classes = static_cast<int64_t>(directory.classes.size());
  FolderOptions options = {
      .recipe = flags.augmentation == "domain-generalisation"
                    ? ImageRecipe::kDomainGeneralisation
                    : ImageRecipe::kImageNet,
      .image_side = data.image_size,
      .skip_unreadable = flags.skip_unreadable};
  data.test = std::make_unique<FolderDataset>(directory.validation, options);
  options.augmentation_seed = flags.run.seed;
  data.train = std::make_unique<FolderDataset>(directory.train, options);
  data.description = "directories of images, training on " +
                     JoinNames(directory.domains.train) + ", testing on " +
                     JoinNames(directory.domains.validation);
  return data;
}

// Loads the data; rank 0 prints a description. Throws InputError on every rank
// if some rank cannot read its files, if ranks found different numbers of
// images, or if the flags do not fit the files. Collective.
TrainingData LoadTrainingData(const ResNet50Flags& flags) {
  if (flags.synthetic) return MakeSynthetic(flags);
  TrainingData data;
  OnAllRanks("read the training data", [&] {
    data = DetectImageDataFormat(flags.data_dir) == ImageDataFormat::kCifar10
               ? LoadCifar10(flags)
               : LoadFolder(flags);
  });
  RequireEqualOnAllRanks("numbers of images in '" + flags.data_dir + "'",
                         {data.train->size(), data.test->size(), data.classes});
  if (rank() == 0) {
    std::printf(
        "data: %s; %lld training and %lld test images of %lld classes\n",
        data.description.c_str(), static_cast<long long>(data.train->size()),
        static_cast<long long>(data.test->size()),
        static_cast<long long>(data.classes));
    for (const auto& [kind, recipe] : RecipesOf(*data.train, data.test.get())) {
      std::printf("%s: %s\n", kind.c_str(), recipe.c_str());
    }
    std::fflush(stdout);
  }
  return data;
}

at::MemoryFormat MemoryFormatOf(const ResNet50Flags& flags) {
  return flags.memory_format == "nhwc" ? at::MemoryFormat::ChannelsLast
                                       : at::MemoryFormat::Contiguous;
}

torch::Tensor LayOut(const ResNet50Flags& flags, const torch::Tensor& images) {
  return flags.memory_format == "onednn"
             ? images.to_mkldnn()
             : images.contiguous(MemoryFormatOf(flags));
}

torch::Tensor ComputeLogits(const ResNet50Flags& flags, ResNet& model,
                            const torch::Tensor& images) {
  const Bfloat16Autocast autocast(flags.bf16);
  return model(images).to(torch::kFloat32);
}

ResNet MakeModel(const ResNet50Flags& flags) {
  // Every rank draws its own weights here; rank 0's replace them later.
  torch::manual_seed(flags.run.seed + rank());
  return ResNet(ResNetOptions{
      .architecture = flags.arch,
      .classes = flags.classes,
      .small_image_stem = flags.has_small_image_stem(),
      .zero_init_residual = flags.zero_init_residual,
  });
}

// The model's name, which a checkpoint must match to be resumed.
std::string ModelName(const ResNet50Flags& flags) {
  return flags.arch + " with " + std::to_string(flags.classes) +
         " classes for " + (flags.has_small_image_stem() ? "small" : "large") +
         " images";
}

void SetLearningRate(torch::optim::Optimizer& optimizer, double lr) {
  for (torch::optim::OptimizerParamGroup& group : optimizer.param_groups()) {
    group.options().set_lr(lr);
  }
}

// The parts of a step are separate spans in the timeline.
Batch LoadBatch(const ResNet50Flags& flags, Prefetcher<Batch>& batches) {
  const TraceSpan span("LOAD_BATCH");
  Batch batch = batches.Next();
  if (batch.labels.numel() > 0) batch.images = LayOut(flags, batch.images);
  add_step_work(batch.images.numel());
  return batch;
}

// The next batches of this rank; the position of `sampler` does not change.
std::vector<std::vector<int64_t>> NextBatches(DistributedSampler sampler,
                                              int64_t count) {
  std::vector<std::vector<int64_t>> batches;
  for (int64_t i = 0; i < count; ++i) {
    const std::vector<size_t> images = *sampler.next();
    batches.emplace_back(images.begin(), images.end());
  }
  return batches;
}

// Epochs of the whole training so far, with fractions.
double EpochsDone(const DistributedSampler& sampler) {
  return static_cast<double>(sampler.epoch() * sampler.dataset_size() +
                             sampler.position()) /
         static_cast<double>(sampler.dataset_size());
}

// The weight of this rank's mean loss over `images` images. The mean of the
// weighted losses over all ranks is then the mean over all images.
double WeightOf(int64_t images, int64_t images_of_all_ranks) {
  return static_cast<double>(images * size()) /
         static_cast<double>(images_of_all_ranks);
}

torch::Tensor ComputeLoss(const ResNet50Flags& flags, ResNet& model,
                          const Batch& batch, double weight) {
  const TraceSpan span("FORWARD");
  const torch::Tensor loss = torch::nn::functional::cross_entropy(
      ComputeLogits(flags, model, batch.images), batch.labels);
  return weight == 1 ? loss : loss * weight;
}

// Finishes the interval, averages its loss over the ranks (if
// flags.averages()), and prints a line on rank 0: `step` of the run's `steps`
// are done.
void LogInterval(const ResNet50Flags& flags, IntervalMeter& meter,
                 int64_t epoch, int64_t step, int64_t steps, double lr) {
  meter.Finish();
  double images_per_second = meter.items_per_second().back() * size();
  if (flags.averages()) {
    const std::vector<double> sums =
        SumOverRanks({meter.losses().back(), meter.items_per_second().back()});
    meter.SetLastLoss(sums[0] / size());
    images_per_second = sums[1];
  }
  if (rank() == 0) {
    std::printf(
        "epoch %lld/%lld step %lld/%lld loss %.4f lr %.6g images/s %.1f "
        "(%.1f per rank)\n",
        static_cast<long long>(epoch + 1),
        static_cast<long long>(flags.run.epochs), static_cast<long long>(step),
        static_cast<long long>(steps), meter.losses().back(), lr,
        images_per_second, images_per_second / size());
    std::fflush(stdout);
  }
  if (flags.averages()) {
    RequireFinite(meter.losses().back(), "training loss");
  }
  meter.Start();
}

Evaluation EvaluateAndPrint(const ResNet50Flags& flags, ResNet& model,
                            Dataset& test, int64_t epoch) {
  model->eval();
  const Evaluation evaluation = Evaluate(
      [&](const torch::Tensor& images) {
        return ComputeLogits(flags, model, LayOut(flags, images));
      },
      test, flags.batch_size.LargestPart(size()), ProgressStyleOfRank(),
      flags.workers);
  model->train();
  if (rank() == 0) {
    std::printf("epoch %lld/%lld evaluation loss %.4f accuracy %.4f\n",
                static_cast<long long>(epoch + 1),
                static_cast<long long>(flags.run.epochs), evaluation.loss,
                evaluation.accuracy);
    std::fflush(stdout);
  }
  return evaluation;
}

void PrintSummary(const Report& report) {
  if (rank() != 0 || report.steps == 0) return;
  const std::vector<double>& speeds = report.items_per_second;
  const support::Summary speed =
      speeds.empty() ? support::Summary() : support::Summarise(speeds);
  std::printf(
      "%lld steps in %.1f s, images/s mean %.1f median %.1f min %.1f max "
      "%.1f, parameters of rank 0: %s\n",
      static_cast<long long>(report.steps), report.seconds, speed.mean,
      speed.median, speed.min, speed.max,
      FormatDigest(report.parameter_digests.front()).c_str());
  if (report.replaced) {
    std::printf(
        "%lld training images replaced by others because they cannot "
        "be read\n",
        static_cast<long long>(*report.replaced));
  }
  std::fflush(stdout);
}

void CheckData(const ResNet50Flags& flags) {
  const TrainingData data = LoadTrainingData(flags);
  CheckImages(*data.train, *data.test, flags.data_dir, ProgressStyleOfRank(),
              flags.workers);
}

void Train(const ResNet50Flags& given) {
  if (given.run.check_data) return CheckData(given);
  ResNet50Flags flags = given;
  BeginRun(flags.run);
  WarnOfSlowBfloat16(flags.bf16);
  flags.batch_size.LargestPart(size());  // check that each rank has an image
  const TrainingData data = LoadTrainingData(flags);
  flags.image_size = data.image_size;
  flags.classes = data.classes;
  DistributedSampler sampler(data.train->size(),
                             flags.batch_size.OfAllRanks(size()),
                             flags.run.seed, BatchOf::AllRanks);

  ResNet model = MakeModel(flags);
  auto sgd = std::make_unique<torch::optim::SGD>(
      model->parameters(), torch::optim::SGDOptions(flags.lr)
                               .momentum(flags.momentum)
                               .weight_decay(flags.weight_decay)
                               .nesterov(flags.nesterov));
  torch::optim::Optimizer& local_optimizer = *sgd;
  Checkpoints checkpoints(flags.run, ModelName(flags), *model, local_optimizer,
                          sampler, support::WallSeconds,
                          /*stoppable=*/flags.averages());
  LearningRateSchedule schedule = {
      .base = flags.lr,
      .scale = LearningRateScale(flags.lr_scaling, size()),
      .warmup_epochs = flags.warmup_epochs,
      .milestones = flags.lr_steps,
      .gamma = flags.lr_gamma,
      .rescaling_epochs = flags.rescaling_epochs};
  double scale = schedule.scale;
  checkpoints.state()
      .value("learning rate's scale", scale)
      .value("its scale before", schedule.scale_before)
      .value("the epoch of its change", schedule.rescaled_at);
  schedule.scale_before = scale;

  // (1) All ranks start with rank 0's weights and momentum, either new or from
  // the checkpoint that the training continues.
  StepRange steps = checkpoints.Begin();
  SetMemoryFormat(*model, MemoryFormatOf(flags));
  if (scale != schedule.scale) {  // trained with another number of ranks
    schedule.scale_before = std::exchange(scale, schedule.scale);
    schedule.rescaled_at = EpochsDone(sampler);
  }

  // (2) Gradients are averaged over the ranks while backward() runs.
  std::optional<DistributedOptimizer> optimizer;
  if (flags.averages()) {
    optimizer.emplace(std::move(sgd), model->named_parameters());
  }

  model->train();
  IntervalMeter meter;
  std::vector<Evaluation> evaluations;
  TrainingReader reader(*data.train, /*each_step=*/flags.averages());
  support::ProgressLine line = StepProgress(steps, ProgressStyleOfRank());
  TellIfResumed(steps);
  bool stopped = false;
  for (int64_t step = steps.first; step < steps.last && !stopped;) {
    const int64_t epoch = steps.EpochOf(step);
    const int64_t end = steps.EndOfEpoch(step);
    sampler.set_epoch(epoch);
    Prefetcher<Batch> batches = PrefetchBatches(
        *data.train, NextBatches(sampler, end - step), epoch, flags.workers);
    meter.Start();
    line.Resume();
    for (; step < end && !stopped; ++step) {
      const double lr = schedule.At(EpochsDone(sampler));
      SetLearningRate(local_optimizer, lr);
      const auto images = static_cast<int64_t>(sampler.next()->size());
      const Batch batch =
          reader.Read([&] { return LoadBatch(flags, batches); });
      optimizer ? optimizer->zero_grad() : local_optimizer.zero_grad();
      double loss = 0;
      if (batch.labels.numel() > 0) {
        const torch::Tensor mean =
            ComputeLoss(flags, model, batch, WeightOf(images, sampler.taken()));
        Backward(mean);
        loss = mean.item<double>();
      }
      // (3) step() waits for the averaged gradients, then updates the weights.
      {
        const TraceSpan span("STEP");
        if (flags.barrier_only) barrier();
        optimizer ? optimizer->step() : local_optimizer.step();
      }
      reader.AfterStep();

      meter.AddStep(images, loss);
      line.Show(step + 1, steps.last, loss);
      stopped = !reader.failed() && checkpoints.AfterStep(step + 1);
      LeaveOut(checkpoints.TakeSavingSeconds(), meter, line);
      if (meter.interval_steps() == flags.log_interval || step + 1 == end ||
          stopped) {
        line.Clear();
        LogInterval(flags, meter, epoch, step + 1, steps.last, lr);
      }
    }
    if (stopped) {
      steps.last = step;
      break;
    }
    line.Pause();

    reader.AfterEpoch();
    // Batch normalisation's statistics differ between ranks up to here.
    if (flags.averages()) {
      checkpoints.KeepOwnBuffers(step);
      AverageBuffers(*model);
    }
    if (data.test && steps.IsDue(flags.eval_every, step)) {
      evaluations.push_back(EvaluateAndPrint(flags, model, *data.test, epoch));
    }
    checkpoints.AfterEpoch(step);
  }
  // Without synchronisation, losses of other ranks are only known here.
  for (const double loss : SumOverRanks(meter.losses())) {
    RequireFinite(loss, "training loss");
  }
  Report report = MakeReport({.program = "train_resnet50",
                              .settings = ToJson(flags),
                              .items = "images",
                              .data = RecipesOf(*data.train, data.test.get())},
                             steps, meter, meter.losses(), evaluations, *model);
  if (flags.skip_unreadable) {
    report.replaced = static_cast<int64_t>(
        SumOverRanks({static_cast<double>(reader.replaced())}).front());
  }
  PrintSummary(report);
  checkpoints.Finish();
  SaveReport(report, flags.run);
}

}  // namespace
}  // namespace hvdlite::trainers

int main(int argc, char** argv) {
  using namespace hvdlite::trainers;  // NOLINT: this program is one of them
  return RunProgram("train_resnet50", ParseResNet50Flags(argc, argv), Train);
}
