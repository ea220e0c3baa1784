#include "trainers/training_data.h"

#include <hvdlite/hvdlite.h>
#include <torch/types.h>

#include <cstdio>
#include <optional>
#include <string>

#include "tools/support/input_error.h"
#include "trainers/agreement.h"
#include "trainers/data/formats/cifar10.h"
#include "trainers/data/sets/dataset.h"
#include "trainers/data/sets/image_folder.h"

namespace hvdlite::trainers {
namespace {

// Of images whose size is free, unless --image-size says another.
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
      .batch_size = flags.batch_size,
      .image_side = data.image_size,
      .classes = data.classes,
      .seed = flags.run.seed + rank(),
  });
  return data;
}

TrainingData LoadCifar10(const ResNet50Flags& flags) {
  if (flags.image_size > 0 && flags.image_size != kImageSide) {
    throw InputError("--image-size " + std::to_string(flags.image_size) +
                     " does not fit CIFAR-10's images in '" + flags.data_dir +
                     "', which are 32x32");
  }
  if (!flags.train_domains.empty() || !flags.val_domains.empty()) {
    throw InputError(
        "--train-domains and --val-domains are for folders of images; '" +
        flags.data_dir + "' holds CIFAR-10, which has no domains");
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
  const ImageFolder folder = ListImageFolder(
      flags.data_dir,
      {.train = flags.train_domains, .validation = flags.val_domains});
  TrainingData data;
  data.image_size = FreeImageSize(flags);
  data.classes = static_cast<int64_t>(folder.classes.size());
  data.train = std::make_unique<FolderDataset>(folder.train, data.image_size,
                                               flags.run.seed);
  data.test = std::make_unique<FolderDataset>(folder.validation,
                                              data.image_size, std::nullopt);
  data.description = "folders of images, training on " +
                     JoinNames(folder.domains.train) + ", testing on " +
                     JoinNames(folder.domains.validation);
  return data;
}

}  // namespace

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
    std::fflush(stdout);
  }
  return data;
}

}  // namespace hvdlite::trainers
