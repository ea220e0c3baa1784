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
  // Why requested images could not be read, if this is no error.
  std::vector<std::string> unreadable = {};
};

// A fixed number of labelled images.
class Dataset {
 public:
  virtual ~Dataset() = default;

  virtual int64_t size() const = 0;

  // Describes for a report how images are transformed.
  virtual std::string recipe() const = 0;

  // Returns the images with these indices (each in [0, size())) as in that
  // epoch. Several threads may call it at the same time.
  virtual Batch Load(const std::vector<int64_t>& indices, int64_t epoch) = 0;

  // True if Load reads files; else all images are in memory.
  virtual bool reads_files() const { return false; }

  // True if Load skips missing or damaged images.
  virtual bool skips_unreadable() const { return false; }

  // Reads the image with this index if it is in a file. Throws as ReadImageFile
  // does. Several threads may call it at the same time.
  virtual void Check(int64_t /*index*/) {}
};

// Loads the batches with these indices in order, in advance, as in that epoch,
// with `workers` threads (see Prefetcher). `dataset` must outlive the result.
// An exception of Load concerns only this rank.
Prefetcher<Batch> PrefetchBatches(Dataset& dataset,
                                  std::vector<std::vector<int64_t>> indices,
                                  int64_t epoch, int workers);

struct SyntheticOptions {
  int64_t size = 0;        // number of images for samplers
  int64_t batch_size = 1;  // maximum batch size in calls of Load
  int64_t image_side = 224;
  int64_t classes = 1000;
  uint64_t seed = 0;
};

// One random batch, drawn by the constructor. Load returns it, or its first
// part, for any indices. Use it to measure speed without loading.
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

// Digits in memory: images of one channel, normalised by MNIST's mean and
// deviation.
class DigitDataset : public Dataset {
 public:
  explicit DigitDataset(DigitSet digits);

  int64_t size() const override { return digits_.size(); }
  std::string recipe() const override;
  Batch Load(const std::vector<int64_t>& indices, int64_t epoch) override;

 private:
  const DigitSet digits_;
};

// Images in memory, normalised; also augmented if there is an augmentation
// seed. A sample of an epoch is the same on any rank and in any batch.
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

// Images in files. Load reads them and transforms them to squares of
// `image_side` pixels: for training if there is an augmentation seed, otherwise
// for evaluation. A sample of an epoch is the same on any rank and in any
// batch.
//
// With skip_unreadable, training replaces a missing or damaged image by another
// one, drawn by seed, epoch and index; an evaluation batch gets smaller.
class FolderDataset : public Dataset {
 public:
  FolderDataset(std::vector<LabelledFile> files, const FolderOptions& options)
      : files_(std::move(files)), options_(options) {}

  int64_t size() const override { return static_cast<int64_t>(files_.size()); }
  std::string recipe() const override;

  // Throws as ReadImageFile does if an image cannot be read, except for an
  // InputError with skip_unreadable. Throws InputError if no image that could
  // replace it can be read.
  Batch Load(const std::vector<int64_t>& indices, int64_t epoch) override;

  bool reads_files() const override { return true; }
  bool skips_unreadable() const override { return options_.skip_unreadable; }
  void Check(int64_t index) override;

 private:
  struct Sample {
    PlanarImage image;
    int64_t label;
  };

  // Returns sample `index` or its replacement, with the reason in `unreadable`.
  std::optional<Sample> LoadSample(int64_t index, int64_t epoch,
                                   std::vector<std::string>& unreadable) const;
  PlanarImage Transform(const RgbImage& image, int64_t index,
                        int64_t epoch) const;

  const std::vector<LabelledFile> files_;
  const FolderOptions options_;
};

}  // namespace hvdlite::trainers
