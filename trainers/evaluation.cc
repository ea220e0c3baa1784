#include "trainers/evaluation.h"

#include <hvdlite/hvdlite.h>
#include <torch/nn/functional/loss.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cstdio>
#include <map>
#include <set>
#include <sstream>
#include <utility>
#include <vector>

#include "base/logging.h"
#include "support/input_error.h"
#include "trainers/data/sets/prefetcher.h"
#include "trainers/data/sets/sampler.h"
#include "trainers/program.h"
#include "trainers/step.h"

namespace hvdlite::trainers {
namespace {

// Logs each text once per process, since images are read again in each epoch.
void Warn(const std::string& text) {
  static std::set<std::string> told;
  if (!told.insert(text).second) return;
  base::Logger(base::Severity::kWarning, rank()).Warning(text);
}

// Throws on all ranks, as OnAllRanks does, if any rank has an `error` from
// reading `dataset`. `what` completes "cannot read the ...". Collective.
void ThrowOnAllRanks(const Dataset& dataset, const std::string& what,
                     const std::exception_ptr& error) {
  OnAllRanks("read the " + what, [&] {
    if (!error) return;
    try {
      std::rethrow_exception(error);
    } catch (const support::InputError& own) {
      throw support::InputError(
          own.what() +
          std::string("; use --check-data to list all unreadable images") +
          (dataset.skips_unreadable() ? ""
                                      : ", or --skip-unreadable to skip them"));
    }
  });
}

// Sums over the images that this rank evaluates.
struct Sums {
  double loss = 0;
  int64_t correct = 0;
  int64_t images = 0;
  int64_t unreadable = 0;

  void Add(const torch::Tensor& logits, const torch::Tensor& labels) {
    loss += torch::nn::functional::cross_entropy(
                logits, labels,
                torch::nn::functional::CrossEntropyFuncOptions().reduction(
                    torch::kSum))
                .item<double>();
    correct += logits.argmax(1).eq(labels).sum().item<int64_t>();
    images += labels.size(0);
  }
};

// The images of this rank's share that cannot be read: index and reason.
std::map<int64_t, std::string> FindUnreadable(Dataset& dataset,
                                              const std::string& item,
                                              support::ProgressStyle style,
                                              int workers) {
  std::map<int64_t, std::string> reasons;
  if (!dataset.reads_files()) return reasons;
  const int64_t count = (dataset.size() - rank() + size() - 1) / size();
  const auto index = [](int64_t i) { return i * size() + rank(); };
  Prefetcher<std::string> checks(count, workers, [&](int64_t i) {
    try {
      dataset.Check(index(i));
    } catch (const support::InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  });
  support::ProgressLine line(
      {.item = "checking: " + item, .items = "images", .style = style});
  for (int64_t i = 0; i < count; ++i) {
    const std::string reason = checks.Next();
    if (!reason.empty()) reasons[index(i)] = reason;
    line.Show(i + 1, count);
  }
  return reasons;
}

// Collects the reasons of all ranks for images with `first` <= index < `last`.
// Collective.
std::map<int64_t, std::string> OfAllRanks(
    const std::map<int64_t, std::string>& own, int64_t first, int64_t last) {
  std::string text;
  const auto end = own.lower_bound(last);
  for (auto reason = own.lower_bound(first); reason != end; ++reason) {
    text += std::to_string(reason->first) + '\0' + reason->second + '\0';
  }
  std::map<int64_t, std::string> all;
  for (const std::string& part : allgather_object(text)) {
    std::istringstream stream(part);
    std::string index;
    std::string reason;
    while (std::getline(stream, index, '\0') &&
           std::getline(stream, reason, '\0')) {
      all[std::stoll(index)] = reason;
    }
  }
  return all;
}

}  // namespace

support::Properties RecipesOf(const Dataset& train, const Dataset* test) {
  support::Properties recipes = {{"training images", train.recipe()}};
  if (test != nullptr) recipes.emplace_back("test images", test->recipe());
  return recipes;
}

Evaluation Evaluate(const Classifier& classify, Dataset& dataset,
                    int64_t batch_size, support::ProgressStyle style,
                    int workers) {
  const TraceSpan span("EVALUATE");
  const torch::NoGradGuard no_grad;
  Sums own;
  auto indices = EvaluationBatches({.dataset_size = dataset.size(),
                                    .batch_size = batch_size,
                                    .rank = rank(),
                                    .world_size = size()});
  const auto count = static_cast<int64_t>(indices.size());
  Prefetcher<Batch> batches =
      PrefetchBatches(dataset, std::move(indices), /*epoch=*/0, workers);
  support::ProgressLine line(
      {.item = "evaluating: batch", .items = "batches", .style = style});
  std::exception_ptr error;
  for (int64_t i = 0; i < count; ++i) {
    Batch batch;
    try {
      batch = batches.Next();
    } catch (const std::exception&) {
      if (!dataset.reads_files()) throw;
      error = std::current_exception();
      break;
    }
    for (const std::string& reason : batch.unreadable) {
      Warn("image skipped in the evaluation: " + reason);
    }
    own.unreadable += static_cast<int64_t>(batch.unreadable.size());
    if (batch.labels.numel() > 0) {
      own.Add(classify(batch.images), batch.labels);
    }
    line.Show(i + 1, count);
  }
  if (dataset.reads_files()) ThrowOnAllRanks(dataset, "test data", error);
  // The shares may be uneven, so this adds sums, not means.
  const torch::Tensor sums =
      allreduce(torch::tensor({own.loss, static_cast<double>(own.correct),
                               static_cast<double>(own.images),
                               static_cast<double>(own.unreadable)},
                              torch::kFloat64),
                AllreduceOptions().op(ReduceOp::Sum).name("evaluation"));
  const auto images = sums[2].item<double>();
  if (images == 0) throw support::InputError("no test image can be read");
  const Evaluation evaluation = {
      .loss = sums[0].item<double>() / images,
      .accuracy = sums[1].item<double>() / images,
      .items = static_cast<int64_t>(images),
      .unreadable = static_cast<int64_t>(sums[3].item<double>())};
  RequireFinite(evaluation.loss, "loss of the evaluation");
  return evaluation;
}

void CheckImages(Dataset& train, Dataset& test, const std::string& directory,
                 support::ProgressStyle style, int workers) {
  // Gathers the reasons in parts, so that no rank needs memory for all of them.
  constexpr int64_t kImagesATime = 10000;
  size_t unreadable = 0;
  for (const auto& [dataset, item] :
       {std::pair(&train, "training image"), std::pair(&test, "test image")}) {
    std::map<int64_t, std::string> own;
    OnAllRanks("check the data", [&, of = dataset, name = item] {
      own = FindUnreadable(*of, name, style, workers);
    });
    for (int64_t i = 0; i < dataset->size(); i += kImagesATime) {
      const auto reasons = OfAllRanks(own, i, i + kImagesATime);
      unreadable += reasons.size();
      if (rank() != 0) continue;
      for (const auto& [index, reason] : reasons) {
        std::printf("%s\n", reason.c_str());
      }
      std::fflush(stdout);
    }
  }
  const std::string images = std::to_string(train.size() + test.size());
  if (unreadable > 0) {
    throw support::InputError(
        std::to_string(unreadable) + " of " + images + " images in '" +
        directory +
        "' cannot be read; replace or remove them, or train with "
        "--skip-unreadable");
  }
  if (rank() == 0) std::printf("all %s images can be read\n", images.c_str());
  std::fflush(stdout);
}

Batch TrainingReader::Read(const std::function<Batch()>& read) {
  Batch batch = {torch::empty({0}), torch::empty({0}, torch::kInt64)};
  try {
    if (!error_) batch = read();
  } catch (const std::exception&) {
    if (!dataset_.reads_files()) throw;
    error_ = std::current_exception();
  }
  replaced_ += static_cast<int64_t>(batch.unreadable.size());
  for (const std::string& reason : batch.unreadable) {
    Warn("image replaced by another one: " + reason);
  }
  if (dataset_.reads_files() && each_step_) {
    question_ = allreduce_async(
        torch::tensor(static_cast<int>(error_ != nullptr)),
        AllreduceOptions().op(ReduceOp::Max).name("unreadable_image"));
  }
  return batch;
}

void TrainingReader::AfterStep() {
  if (!question_) return;
  if (std::exchange(question_, {})->wait().item<int>() == 0) return;
  ThrowOnAllRanks(dataset_, "training data", error_);
}

void TrainingReader::AfterEpoch() {
  if (!dataset_.reads_files() || each_step_) return;
  ThrowOnAllRanks(dataset_, "training data", error_);
}

}  // namespace hvdlite::trainers
