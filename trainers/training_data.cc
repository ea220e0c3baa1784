#include "trainers/training_data.h"

#include <hvdlite/hvdlite.h>
#include <torch/types.h>

#include <optional>

#include "trainers/agreement.h"
#include "trainers/data/cifar10.h"
#include "trainers/data/image_dataset.h"
#include "trainers/data/synthetic_dataset.h"
#include "trainers/input_error.h"

namespace hvdlite::trainers {

TrainingData LoadTrainingData(const ResNet50Flags& flags) {
  TrainingData data;
  if (flags.synthetic) {
    data.train = std::make_unique<SyntheticDataset>(SyntheticOptions{
        .size = flags.synthetic_images,
        .batch_size = flags.batch_size,
        .image_side = flags.image_size,
        .classes = flags.classes,
        .seed = flags.seed + rank(),
    });
    return data;
  }
  OnAllRanks("read the training data", [&] {
    data.train = std::make_unique<ImageDataset>(
        ReadCifar10(flags.data_dir, Cifar10Split::kTrain), flags.seed);
  });
  OnAllRanks("read the test data", [&] {
    data.test = std::make_unique<ImageDataset>(
        ReadCifar10(flags.data_dir, Cifar10Split::kTest), std::nullopt);
  });
  const torch::Tensor sizes =
      torch::tensor({data.train->size(), data.test->size()});
  const torch::Tensor largest =
      allreduce(sizes, AllreduceOptions().op(ReduceOp::Max).name("sizes.max"));
  const torch::Tensor smallest =
      allreduce(sizes, AllreduceOptions().op(ReduceOp::Min).name("sizes.min"));
  if (!largest.equal(smallest)) {
    throw InputError("the ranks read different numbers of images from '" +
                     flags.data_dir + "'; give all of them the same files");
  }
  return data;
}

}  // namespace hvdlite::trainers
