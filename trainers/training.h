// What trainings on several ranks have in common: beginning and resuming,
// checkpoints, evaluation, equal replicas, and the report at the end.
#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "trainers/checkpoint.h"
#include "trainers/data/sets/dataset.h"
#include "trainers/report.h"
#include "trainers/run_flags.h"

namespace hvdlite::trainers {

// What precedes everything else: sets --threads, and throws InputError on all
// ranks if rank 0 cannot write one of the files that the flags name, so that it
// is known before the training, not after. Collective.
void BeginRun(const RunFlags& run);

// Reads the checkpoint --resume on rank 0, if it is given; the other ranks get
// where it stands, but not yet model and optimizer: broadcast_parameters() and
// broadcast_optimizer_state() follow. Returns the steps to take. Throws
// InputError on all ranks if the file cannot be read, is of another model, or
// was made within an epoch that had other than `steps_per_epoch` steps.
// Collective.
StepRange Resume(const RunFlags& run, const std::string& model_name,
                 int64_t steps_per_epoch, torch::nn::Module& model,
                 torch::optim::Optimizer& optimizer);

// Tells, on rank 0, where a resumed training goes on, or that nothing is left
// to do.
void TellIfResumed(const StepRange& steps);

// Writes --checkpoint on rank 0, if it is given and it is time for it after
// `done` steps. Throws on all ranks if that fails, or if a parameter is not
// finite: then the last checkpoint stays. Collective.
void SaveIfDue(const RunFlags& run, const StepRange& steps, int64_t done,
               const std::string& model_name, const torch::nn::Module& model,
               const torch::optim::Optimizer& optimizer);

// Seeds LibTorch's default generator for what this rank draws in a step (for
// dropout). As that depends on seed, rank and step alone, a resumed training
// draws what an uninterrupted one would.
void SeedStep(uint64_t seed, int64_t step);

// From images (as a Batch has them) to logits, in evaluation mode.
using Classifier = std::function<torch::Tensor(const torch::Tensor& images)>;

// Evaluates the whole of `dataset`, every rank a share of it, each image once;
// the result is the same on all ranks. The ranks' models must be equal.
// `workers` threads load images. Throws DivergenceError if the loss is not
// finite. Collective.
Evaluation Evaluate(const Classifier& classify, Dataset& dataset,
                    int64_t batch_size, int workers = 0);

std::vector<double> AccuraciesOf(const std::vector<Evaluation>& evaluations);

// Replaces every floating-point buffer (batch normalisation's running mean and
// variance, which each rank gathers from its own images) by its mean over the
// ranks. Collective.
void AverageBuffers(torch::nn::Module& model);

// A number that depends on every bit of the model's parameters, and not on
// their memory format.
int64_t ParameterDigest(const torch::nn::Module& model);

// Every rank's ParameterDigest, by rank. Collective.
std::vector<int64_t> GatherParameterDigests(const torch::nn::Module& model);

// Each value's sum over the ranks, which all have as many. Collective.
std::vector<double> SumOverRanks(const std::vector<double>& values);

// What a report is about.
struct ReportSubject {
  std::string program;
  std::string settings;  // the flags, as JSON
  std::string items;     // what is trained on, in the plural
};

// Speeds are summed over the ranks; `losses` are of all ranks together already.
// Collective.
Report MakeReport(const ReportSubject& subject, const StepRange& steps,
                  const IntervalMeter& meter, const std::vector<double>& losses,
                  const std::vector<Evaluation>& evaluations,
                  const torch::nn::Module& model);

// Writes the report on rank 0 to --report and --report-html, if these are
// given. Throws on all ranks if that fails. Collective.
void SaveReport(const Report& report, const RunFlags& run);

}  // namespace hvdlite::trainers
