// What trainings on several ranks share: start and resume, checkpoints, equal
// replicas, and the report at the end.
#pragma once

#include <hvdlite/elastic.h>
#include <hvdlite/sampler.h>
#include <hvdlite/work.h>
#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>
#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/environment.h"
#include "support/machine.h"
#include "support/progress_line.h"
#include "trainers/checkpoint.h"
#include "trainers/report.h"
#include "trainers/run_flags.h"

namespace hvdlite::trainers {

// Call this before everything else. Throws InputError on all ranks if rank 0
// cannot or must not write an output file of the flags (support::CheckOutputs),
// or if --resume auto has no --checkpoint. So such errors appear before the
// training. A restarted job replaces the files of its earlier starts.
// Collective.
void BeginRun(const RunFlags& run, const base::Environment& environment =
                                       base::ProcessEnvironment());

// The style of this rank's progress line: on rank 0 it depends on the terminal;
// other ranks print none.
support::ProgressStyle ProgressStyleOfRank();

// Excludes the time of a checkpoint from the rates.
void LeaveOut(double seconds, IntervalMeter& meter,
              support::ProgressLine& line);

// The progress line for the steps of a run.
support::ProgressLine StepProgress(const StepRange& steps,
                                   support::ProgressStyle style);

// Prints on rank 0 where a resumed training continues, or that no step remains.
void TellIfResumed(const StepRange& steps);

// Decides where a training begins, and commits its state in the background: to
// the file --checkpoint on rank 0 and to the launcher's commit store. A failed
// write is only a warning; the last checkpoint stays.
//
// If `stoppable`, the signals SIGTERM, SIGINT and SIGUSR1 to any rank end the
// training on all ranks during the lifetime of this object, after the current
// step or the next one. A batch system sends one near the time limit. A second
// SIGTERM or SIGINT has its previous effect. Only one object may exist in a
// process.
class Checkpoints {
 public:
  // The arguments must outlive this object. `seconds` is the clock for
  // --checkpoint-every-minutes. `environment` gives the number of restarts and
  // the launcher's commit store.
  Checkpoints(
      const RunFlags& run, const std::string& model_name,
      torch::nn::Module& model, torch::optim::Optimizer& optimizer,
      DistributedSampler& sampler,
      std::function<double()> seconds = support::WallSeconds,
      bool stoppable = true,
      const base::Environment& environment = base::ProcessEnvironment());

  // Use this to add values to the state; add them before Begin().
  elastic::State& state() { return state_; }

  // Gives all ranks the model, optimizer and position of rank 0. In a
  // restarted job they come from the newest commit, made with any number of
  // ranks; else from --resume if given; else from rank 0's memory. Returns the
  // steps to take. Throws InputError on all ranks if a file cannot be read or
  // holds another model.
  //
  // After these checks, if steps remain, the timeline starts (with the errors
  // of StartTimeline()). Then the files that --overwrite replaces are removed,
  // so that no later start of the job resumes from them. Collective.
  StepRange Begin();

  // Call this after every step; `done` counts all steps. Commits if a
  // checkpoint is due by steps or by minutes. The minutes are those of rank 0's
  // clock after the previous step. AfterEpoch() handles the ends of epochs and
  // of the run. If `stoppable`, a commit includes each rank's own buffers, and
  // ranks wait for each other during a commit. If a parameter is not finite,
  // warns and does not commit.
  //
  // Returns true on all ranks if a signal asks to stop. The state is then
  // saved; call neither another step nor AfterEpoch(). Collective if
  // `stoppable`, but it waits only for what the ranks submitted one step
  // before.
  bool AfterStep(int64_t done);

  // Seconds that AfterStep() spent on this rank for the file since the last
  // call; they are no training time. If `stoppable`, they include the wait for
  // rank 0. Commits to the store only count as part of the steps.
  double TakeSavingSeconds() { return std::exchange(saving_seconds_, 0); }

  // Call this before AverageBuffers(): a run that ends within an epoch can then
  // resume with each rank's own buffers, as if it had not ended. Collective.
  void KeepOwnBuffers(int64_t done);

  // Call this at the end of each epoch and of the run. Commits if it is due.
  // Throws on all ranks if a parameter is not finite; the last checkpoint then
  // stays. Collective.
  void AfterEpoch(int64_t done);

  // Call this at the very end. Throws on all ranks if the last checkpoint could
  // not be written; throws SharedError if a signal has ended the training.
  // Collective.
  void Finish();

 private:
  // Commits a checkpoint whose failure is only a warning.
  void TryCommit(int64_t done, elastic::Save save);
  bool IsDueByStep(int64_t done) const;
  bool IsDueByClock() const;  // uses this rank's clock
  // The state of rank 0's clock after the last step that did not end an epoch;
  // the same on all ranks. Collective.
  bool TakeClockAnswer();
  void AskClock();
  void Commit(int64_t done, elastic::Save save);

  const RunFlags run_;
  const int64_t commit_every_steps_;
  const base::Environment environment_;
  const bool restarted_;
  torch::nn::Module& model_;
  DistributedSampler& sampler_;
  const std::function<double()> seconds_;
  const bool stoppable_;
  int64_t steps_done_ = 0;  // in all starts of the job
  StepRange steps_;
  double saved_at_s_;
  double saving_seconds_ = 0;
  std::optional<Work> clock_question_;  // in progress
  int64_t buffers_kept_after_ = -1;     // steps
  int stopped_by_ = 0;                  // number of the signal
  int64_t stopped_after_ = 0;           // steps
  std::optional<elastic::StopSignals> signals_;
  elastic::State state_;
};

std::vector<double> AccuraciesOf(const std::vector<Evaluation>& evaluations);

// Replaces every floating-point buffer by its mean over the ranks. Such buffers
// are batch normalisation's running mean and variance, which each rank computes
// from its own images. Collective.
void AverageBuffers(torch::nn::Module& model);

// A hash of every bit of the model's parameters, independent of their memory
// format.
int64_t ParameterDigest(const torch::nn::Module& model);

// Calls loss.backward() in a span of the timeline.
void Backward(const torch::Tensor& loss);

// Returns every rank's ParameterDigest, by rank. Collective.
std::vector<int64_t> GatherParameterDigests(const torch::nn::Module& model);

// Returns each value's sum over the ranks; all must pass the same number of
// values. Collective.
std::vector<double> SumOverRanks(const std::vector<double>& values);

// The subject of a report.
struct ReportSubject {
  std::string program;
  std::string settings;           // the flags, as JSON
  std::string items;  // the unit of the training data, in the plural
  support::Properties data = {};  // what the data is, and how it is transformed
};

// Creates a report. Speeds are summed over the ranks; `losses` are already
// means over all ranks. Collective.
Report MakeReport(const ReportSubject& subject, const StepRange& steps,
                  const IntervalMeter& meter, const std::vector<double>& losses,
                  const std::vector<Evaluation>& evaluations,
                  const torch::nn::Module& model);

// Writes the report on rank 0 to the files of --report and --report-html, if
// given. Throws SharedError on all ranks on failure. Collective.
void SaveReport(const Report& report, const RunFlags& run);

}  // namespace hvdlite::trainers
