// Images and labels for training and evaluation, as tensors.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trainers/data/formats/cifar10.h"
#include "trainers/data/formats/mnist.h"
#include "trainers/data/sets/image_folder.h"
#include "trainers/data/sets/prefetcher.h"
#include "trainers/data/transforms/augmentation.h"

namespace hvdlite::trainers {

struct Batch {
  torch::Tensor images;  // float [N, channels, side, side], contiguous
  torch::Tensor labels;  // int64 [N]
  // Why images that were asked for could not be read, where that is no error.
  std::vector<std::string> unreadable = {};
};

// A fixed number of labelled images.
class Dataset {
 public:
  virtual ~Dataset() = default;

  virtual int64_t size() const = 0;

  // What is done to its images, for a report.
  virtual std::string recipe() const = 0;

  // The images with these indices (each in [0, size())), as they are seen in
  // that epoch. Several threads may call it at once.
  virtual Batch Load(const std::vector<int64_t>& indices, int64_t epoch) = 0;

  // Whether Load reads files; else all has been read.
  virtual bool reads_files() const { return false; }

  // Whether Load does without images that are missing or damaged.
  virtual bool skips_unreadable() const { return false; }

  // Reads the image with this index from its file, if it is in one. Throws as
  // ReadImageFile does. Several threads may call it at once.
  virtual void Check(int64_t /*index*/) {}
};

// Loads the batches with these indices in order, ahead of their use, as they
// are seen in that epoch, by `workers` threads (see Prefetcher). `dataset` must
// outlive the result. What Load throws is this rank's alone.
Prefetcher<Batch> PrefetchBatches(Dataset& dataset,
                                  std::vector<std::vector<int64_t>> indices,
                                  int64_t epoch, int workers);

struct SyntheticOptions {
  int64_t size = 0;        // images, as far as samplers are concerned
  int64_t batch_size = 1;  // largest batch that Load is asked for
  int64_t image_side = 224;
  int64_t classes = 1000;
  uint64_t seed = 0;
};

// Costs nothing to load: one random batch, drawn when the dataset is made, that
// Load returns (or the start of it) for whatever indices: for measuring speed.
class SyntheticDataset : public Dataset {
 public:
  explicit SyntheticDataset(const SyntheticOptions& options);

  int64_t size() const override { return size_; }
  std::string recipe() const override { return "one random batch"; }
  Batch Load(const std::vector<int64_t>& indices, int64_t epoch) override;

 private:
  const int64_t size_;
  Batch batch_;
};

// Digits in memory: images of one channel, normalised by the mean and deviation
// of MNIST's.
class DigitDataset : public Dataset {
 public:
  explicit DigitDataset(DigitSet digits);

  int64_t size() const override { return digits_.size(); }
  std::string recipe() const override;
  Batch Load(const std::vector<int64_t>& indices, int64_t epoch) override;

 private:
  const DigitSet digits_;
};

// Images in memory, normalised; augmented too if there is an augmentation seed.
// A sample of an epoch looks the same on whatever rank and in whatever batch.
class ImageDataset : public Dataset {
 public:
  ImageDataset(ImageSet images, std::optional<uint64_t> augmentation_seed);

  int64_t size() const override { return images_.size(); }
  std::string recipe() const override;
  Batch Load(const std::vector<int64_t>& indices, int64_t epoch) override;

 private:
  const ImageSet images_;
  const std::optional<uint64_t> augmentation_seed_;
};

struct FolderOptions {
  ImageRecipe recipe = ImageRecipe::kImageNet;
  int64_t image_side = 224;  // pixels
  std::optional<uint64_t> augmentation_seed = {};
  bool skip_unreadable = false;
};

// Images in files. Reads them when they are asked for, and transforms them to
// squares of `image_side` pixels: for training if there is an augmentation
// seed, otherwise for evaluation. A sample of an epoch looks the same on
// whatever rank and in whatever batch.
//
// In place of an image that is missing or damaged and to be skipped, training
// gets another one, drawn by seed, epoch and index; a batch for evaluation is
// smaller.
class FolderDataset : public Dataset {
 public:
  FolderDataset(std::vector<LabelledFile> files, const FolderOptions& options)
      : files_(std::move(files)), options_(options) {}

  int64_t size() const override { return static_cast<int64_t>(files_.size()); }
  std::string recipe() const override;

  // Throws as ReadImageFile does for one that cannot be read, unless it is an
  // InputError and to be skipped; InputError if no other can be read in its
  // place.
  Batch Load(const std::vector<int64_t>& indices, int64_t epoch) override;

  bool reads_files() const override { return true; }
  bool skips_unreadable() const override { return options_.skip_unreadable; }
  void Check(int64_t index) override;

 private:
  struct Sample {
    PlanarImage image;
    int64_t label;
  };

  // Sample `index`, or what stands for it; then `unreadable` says why.
  std::optional<Sample> LoadSample(int64_t index, int64_t epoch,
                                   std::vector<std::string>& unreadable) const;
  PlanarImage Transform(const RgbImage& image, int64_t index,
                        int64_t epoch) const;

  const std::vector<LabelledFile> files_;
  const FolderOptions options_;
};

}  // namespace hvdlite::trainers
