// What trainings on several ranks have in common: beginning and resuming,
// checkpoints, equal replicas, and the report at the end.
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

// What precedes everything else: throws InputError on all ranks if rank 0 may
// not or cannot write one of the files that the flags name
// (support::CheckOutputs), so that it is known before the training, not after,
// or if --resume auto has no --checkpoint. A job that was started again
// replaces what its earlier starts have written. Collective.
void BeginRun(const RunFlags& run, const base::Environment& environment =
                                       base::ProcessEnvironment());

// How this rank tells of its progress: on rank 0 as its output allows, else not
// at all.
support::ProgressStyle ProgressStyleOfRank();

// Leaves what a checkpoint has taken out of the rates.
void LeaveOut(double seconds, IntervalMeter& meter,
              support::ProgressLine& line);

// Of the steps of a run.
support::ProgressLine StepProgress(const StepRange& steps,
                                   support::ProgressStyle style);

// Tells, on rank 0, where a resumed training goes on, or that nothing is left
// to do.
void TellIfResumed(const StepRange& steps);

// Where a training begins and goes on from: commits to --checkpoint on rank 0
// and to the launcher's store, in the background. What cannot be written is a
// warning, and the last one stays.
//
// While it lives, SIGTERM, SIGINT or SIGUSR1 to any rank (a batch system's
// notice that the time is over, say) ends the training on all of them, after
// the step that all are in or the next. A second SIGTERM or SIGINT does what it
// did before. One at a time in a process. Not where `stoppable` is false.
class Checkpoints {
 public:
  // What it takes outlives it. `seconds` is what --checkpoint-every-minutes
  // goes by; `restarts` how often the job was started again, and its store.
  Checkpoints(
      const RunFlags& run, const std::string& model_name,
      torch::nn::Module& model, torch::optim::Optimizer& optimizer,
      DistributedSampler& sampler,
      std::function<double()> seconds = support::WallSeconds,
      bool stoppable = true,
      const base::Environment& environment = base::ProcessEnvironment());

  // For values that survive, too: add them before Begin().
  elastic::State& state() { return state_; }

  // Gives all ranks rank 0's model, optimizer and position: those of --resume,
  // if that is given, or, in a job that was started again, the newest commit,
  // on whatever number of ranks it was made; else those of rank 0. Returns the
  // steps to take. Throws InputError on all ranks if a file cannot be read or
  // is of another model. Then nothing refuses the run any more: unless all
  // steps are done, the timeline starts, with StartTimeline()'s errors, and
  // what
  // --overwrite replaces is removed, so that no later start of the job takes it
  // for its own. Collective.
  StepRange Begin();

  // After every step, `done` of them in all. Commits if it is time by steps or,
  // by rank 0's clock after the step before, by minutes, and leaves the ends of
  // epochs and run to AfterEpoch. Where `stoppable`, a commit has each rank's
  // own buffers, and ranks wait for one another where there is one. Where a
  // parameter is not finite it warns instead. True, on all ranks: a signal asks
  // for the end; it has saved, and no step is to follow, nor an AfterEpoch().
  // Collective where `stoppable`, but waits for what the ranks said one step
  // before only.
  bool AfterStep(int64_t done);

  // What AfterStep() has taken on this rank for the file since it was asked
  // last: no training. Where `stoppable`, ranks have waited for rank 0's in it;
  // what commits to the store alone take is part of the steps.
  double TakeSavingSeconds() { return std::exchange(saving_seconds_, 0); }

  // Before AverageBuffers(): a run that ends within an epoch is resumed with
  // what each rank has now, as if it had not ended. Collective.
  void KeepOwnBuffers(int64_t done);

  // At the end of each epoch and of the run. Commits if it is time. Throws on
  // all ranks if a parameter is not finite: then the last checkpoint stays.
  // Collective.
  void AfterEpoch(int64_t done);

  // When all else is done. Throws on all ranks if the last checkpoint could not
  // be written; else SharedError if a signal has ended the training.
  // Collective.
  void Finish();

 private:
  // For a checkpoint that is an extra.
  void TryCommit(int64_t done, elastic::Save save);
  bool IsDueByStep(int64_t done) const;
  bool IsDueByClock() const;  // this rank's
  // What rank 0's clock said after the last step that was not an epoch's last;
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
  int64_t steps_done_ = 0;  // in all starts
  StepRange steps_;
  double saved_at_s_;
  double saving_seconds_ = 0;
  std::optional<Work> clock_question_;  // under way
  int64_t buffers_kept_after_ = -1;     // steps
  int stopped_by_ = 0;                  // a signal
  int64_t stopped_after_ = 0;           // steps
  std::optional<elastic::StopSignals> signals_;
  elastic::State state_;
};

std::vector<double> AccuraciesOf(const std::vector<Evaluation>& evaluations);

// Replaces every floating-point buffer (batch normalisation's running mean and
// variance, which each rank gathers from its own images) by its mean over the
// ranks. Collective.
void AverageBuffers(torch::nn::Module& model);

// A number that depends on every bit of the model's parameters, and not on
// their memory format.
int64_t ParameterDigest(const torch::nn::Module& model);

// loss.backward(), as a span of the timeline.
void Backward(const torch::Tensor& loss);

// Every rank's ParameterDigest, by rank. Collective.
std::vector<int64_t> GatherParameterDigests(const torch::nn::Module& model);

// Each value's sum over the ranks, which all have as many. Collective.
std::vector<double> SumOverRanks(const std::vector<double>& values);

// What a report is about.
struct ReportSubject {
  std::string program;
  std::string settings;           // the flags, as JSON
  std::string items;              // what is trained on, in the plural
  support::Properties data = {};  // what it is, and what is done to it
};

// Speeds are summed over the ranks; `losses` are of all ranks together already.
// Collective.
Report MakeReport(const ReportSubject& subject, const StepRange& steps,
                  const IntervalMeter& meter, const std::vector<double>& losses,
                  const std::vector<Evaluation>& evaluations,
                  const torch::nn::Module& model);

// Writes the report on rank 0 to --report and --report-html, if these are
// given. Throws SharedError on all ranks if that fails. Collective.
void SaveReport(const Report& report, const RunFlags& run);

}  // namespace hvdlite::trainers
