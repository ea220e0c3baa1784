#include "trainers/training.h"

#include <hvdlite/hvdlite.h>
#include <sys/stat.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <optional>
#include <stdexcept>
#include <utility>

#include "absl/strings/numbers.h"
#include "base/checkpoint_file.h"
#include "base/commit_store.h"
#include "base/fnv1a.h"
#include "base/launcher_environment.h"
#include "base/logging.h"
#include "base/new_file.h"
#include "support/input_error.h"
#include "support/output_file.h"
#include "trainers/program.h"
#include "trainers/step.h"

namespace hvdlite::trainers {
namespace {

constexpr char kResumeAuto[] = "auto";

bool IsSet(const std::optional<std::string>& variable) {
  return variable.has_value() && !variable->empty();
}

void RequireFiniteParameters(const torch::nn::Module& model) {
  for (const auto& parameter : model.named_parameters()) {
    if (parameter.value().isfinite().all().item<bool>()) continue;
    throw std::runtime_error("the parameter '" + parameter.key() +
                             "' has values that are not finite; the last "
                             "checkpoint stays as it is");
  }
}

// True if earlier starts of this job, or earlier worlds of this process, may
// have written files.
bool WasStartedBefore(const base::Environment& environment) {
  return environment.get(base::kRestartsVariable).value_or("0") != "0" ||
         elastic::replaced_worlds() > 0;
}

// When the job first started, if the launcher restarts it.
std::optional<int64_t> JobStart(const base::Environment& environment) {
  int64_t seconds = 0;
  const auto text = environment.get(base::kJobStartVariable);
  if (!text.has_value() || !absl::SimpleAtoi(*text, &seconds)) {
    return std::nullopt;
  }
  return seconds;
}

// The previous checkpoint is first: if this process ends between the two
// removals, the newer checkpoint remains to continue from.
std::array<std::string, 2> GenerationsOf(const std::string& checkpoint) {
  return {base::PreviousGeneration(checkpoint), checkpoint};
}

void RemoveGenerations(const std::string& checkpoint) {
  for (const std::string& file : GenerationsOf(checkpoint)) {
    std::remove(file.c_str());
  }
}

// Removes checkpoints that are older than the job: --overwrite replaces them,
// but the previous start may have ended before it removed them.
void RemoveOlderThanJob(const std::string& checkpoint,
                        const base::Environment& environment) {
  const std::optional<int64_t> start = JobStart(environment);
  if (!start.has_value()) return;
  for (const std::string& file : GenerationsOf(checkpoint)) {
    struct stat status {};
    if (stat(file.c_str(), &status) == 0 && status.st_mtim.tv_sec < *start) {
      std::remove(file.c_str());
    }
  }
}

// True if the run continues from the file of --checkpoint.
bool ContinuesCheckpoint(const RunFlags& run) {
  return run.resume == kResumeAuto ||
         (!run.resume.empty() &&
          (base::IsSameFile(run.resume, run.checkpoint) ||
           base::IsSameFile(run.resume,
                            base::PreviousGeneration(run.checkpoint))));
}

// Throws InputError if an output file must not be written.
void CheckFiles(const RunFlags& run, bool may_exist) {
  if (!run.checkpoint.empty() && base::IsStream(run.checkpoint)) {
    throw support::InputError("cannot write '" + run.checkpoint +
                              "' (--checkpoint): it is not a regular file");
  }
  const std::string previous =
      run.checkpoint.empty() ? "" : base::PreviousGeneration(run.checkpoint);
  const bool continues = ContinuesCheckpoint(run);
  const std::string instead =
      "--resume auto continues the training that wrote it";
  support::RequireOutputs({{"--checkpoint", run.checkpoint, continues, instead},
                           {"--checkpoint", previous, continues, instead}},
                          may_exist);
  // If the training continues, its report replaces the old one.
  support::RequireOutputs(
      {TraceOutput(),
       {"--report", run.report, continues},
       {"--report-html", run.report_html, continues}},
      may_exist,
      {run.checkpoint, previous, run.resume == kResumeAuto ? "" : run.resume});
}

}  // namespace

void BeginRun(const RunFlags& run, const base::Environment& environment) {
  if (run.resume == kResumeAuto && run.checkpoint.empty()) {
    throw support::InputError("--resume auto needs --checkpoint FILE");
  }
  OnAllRanks("", [&] {
    if (rank() != 0) return;
    CheckFiles(run, run.overwrite || WasStartedBefore(environment));
  });
}

support::ProgressStyle ProgressStyleOfRank() {
  return rank() == 0 ? support::StyleOfOutput() : support::ProgressStyle::kNone;
}

void LeaveOut(double seconds, IntervalMeter& meter,
              support::ProgressLine& line) {
  meter.LeaveOut(seconds);
  line.LeaveOut(seconds);
}

support::ProgressLine StepProgress(const StepRange& steps,
                                   support::ProgressStyle style) {
  return support::ProgressLine({.item = "step",
                                .items = "steps",
                                .style = style,
                                .first = steps.first,
                                .tells_first = true});
}

void TellIfResumed(const StepRange& steps) {
  if (steps.first == 0 || rank() != 0) return;
  std::printf("%s: %lld of %lld steps are done\n",
              steps.first < steps.last ? "resumed" : "nothing to do",
              static_cast<long long>(steps.first),
              static_cast<long long>(steps.last));
  std::fflush(stdout);
}

Checkpoints::Checkpoints(const RunFlags& run, const std::string& model_name,
                         torch::nn::Module& model,
                         torch::optim::Optimizer& optimizer,
                         DistributedSampler& sampler,
                         std::function<double()> seconds, bool stoppable,
                         const base::Environment& environment)
    : run_(run),
      commit_every_steps_(run.commit_every_steps >= 0 ? run.commit_every_steps
                          : IsSet(environment.get(base::kCommitStoreVariable))
                              ? 1
                              : 0),
      environment_(environment),
      restarted_(WasStartedBefore(environment)),
      model_(model),
      sampler_(sampler),
      seconds_(std::move(seconds)),
      stoppable_(stoppable),
      saved_at_s_(seconds_()),
      // Commit() decides whether to write the file.
      state_(
          elastic::StateOptions()
              .path(run.checkpoint)
              .save_every_commits(0)
              .name(model_name)
              .store(environment.get(base::kCommitStoreVariable).value_or(""))
              .optimizer_options(false)
              .agrees_to_stop(false)
              .read_other([this, model_name, &model, &optimizer,
                           &sampler](torch::serialize::InputArchive& file) {
                steps_done_ = ReadFirstRelease(file, model_name,
                                               sampler.samples_per_step(),
                                               model, optimizer, sampler);
              })) {
  state_.model(model).optimizer(optimizer).sampler(sampler).value("steps",
                                                                  steps_done_);
  if (stoppable_) signals_.emplace();
}

StepRange Checkpoints::Begin() {
  const bool is_auto = run_.resume == kResumeAuto;
  const bool replaces = rank() == 0 && run_.overwrite &&
                        !run_.checkpoint.empty() && !ContinuesCheckpoint(run_);
  try {
    if (replaces && restarted_) {
      RemoveOlderThanJob(run_.checkpoint, environment_);
    }
    if ((is_auto || restarted_) && state_.can_restore()) {
      state_.restore();
    } else if (!is_auto && !run_.resume.empty()) {
      state_.restore_from(run_.resume);
    } else {
      state_.sync();
    }
  } catch (const WorldBroken&) {
    throw;
  } catch (const c10::Error& error) {
    throw support::InputError("cannot resume: " + MessageOf(error));
  }
  const int64_t batch = sampler_.samples_per_step();
  if (rank() == 0 && batch > sampler_.dataset_size()) {
    base::Logger(base::Severity::kWarning, rank())
        .Warning("a batch of " + std::to_string(batch) +
                 " is more than the data set has: every step takes all " +
                 std::to_string(sampler_.dataset_size()) + " samples");
  }
  steps_ = StepsToTake(run_, steps_done_, sampler_, batch);
  if (steps_.first < steps_.last) StartTimeline();
  if (replaces && !restarted_) RemoveGenerations(run_.checkpoint);
  return steps_;
}

bool Checkpoints::AfterStep(int64_t done) {
  if (stoppable_) state_.agree_to_stop();
  const bool time_is_up = stoppable_ ? TakeClockAnswer() : IsDueByClock();
  const bool stops = state_.should_stop() && done < steps_.last;
  if (stops) {
    stopped_by_ = state_.stop_signal();
    stopped_after_ = done;
  } else if (done == steps_.last || steps_.InEpoch(done) == 0) {
    return false;
  }
  const bool saves = stops || IsDueByStep(done) || time_is_up;
  if (saves || (commit_every_steps_ > 0 && done % commit_every_steps_ == 0)) {
    const double begun = support::WallSeconds();
    if (stoppable_) state_.gather_buffers();
    if (rank() == 0) {
      TryCommit(done, saves ? elastic::Save::Now : elastic::Save::Never);
    }
    // The other ranks would otherwise wait for rank 0 in the next step, and the
    // wait would count as part of that step.
    if (saves && stoppable_) barrier();
    if (saves) saving_seconds_ += support::WallSeconds() - begun;
  }
  if (stoppable_ && !stops) AskClock();
  return stops;
}

bool Checkpoints::TakeClockAnswer() {
  if (!clock_question_) return false;
  return std::exchange(clock_question_, {})->wait().item<int>() != 0;
}

void Checkpoints::AskClock() {
  if (run_.checkpoint_every_minutes <= 0) return;
  const bool time_is_up = rank() == 0 && IsDueByClock();
  clock_question_ = allreduce_async(
      torch::tensor(static_cast<int>(time_is_up)),
      AllreduceOptions().op(ReduceOp::Max).name("checkpoint_is_due"));
}

void Checkpoints::TryCommit(int64_t done, elastic::Save save) {
  try {
    Commit(done, save);
  } catch (const std::exception& error) {
    base::Logger(base::Severity::kWarning, rank())
        .Warning("no checkpoint after " + std::to_string(done) +
                 " steps: " + MessageOf(error));
  }
}

void Checkpoints::KeepOwnBuffers(int64_t done) {
  if (run_.checkpoint.empty() && commit_every_steps_ == 0) return;
  if (steps_.InEpoch(done) == 0) return;
  state_.gather_buffers();
  buffers_kept_after_ = done;
}

void Checkpoints::AfterEpoch(int64_t done) {
  if (run_.checkpoint.empty() && commit_every_steps_ == 0) return;
  if (stoppable_ && buffers_kept_after_ != done) state_.gather_buffers();
  OnAllRanks("save the checkpoint", [&] {
    const bool saves = steps_.IsDue(run_.checkpoint_every, done) ||
                       IsDueByStep(done) || IsDueByClock();
    if (rank() != 0 || !(saves || commit_every_steps_ > 0)) return;
    Commit(done, saves ? elastic::Save::Now : elastic::Save::Never);
  });
}

void Checkpoints::Finish() {
  try {
    state_.flush();
  } catch (const WorldBroken&) {
    throw;
  } catch (const c10::Error& error) {
    throw SharedError(MessageOf(error));
  }
  if (stopped_by_ == 0) return;
  throw SharedError(
      "stopped after " + std::to_string(stopped_after_) + " of " +
          std::to_string(steps_.last) + " steps by " +
          sigdescr_np(stopped_by_) +
          (run_.checkpoint.empty() ? "; nothing is saved without --checkpoint"
                                   : "; --resume auto continues from there"),
      StoppedEarlyBy(stopped_by_));
}

bool Checkpoints::IsDueByStep(int64_t done) const {
  return !run_.checkpoint.empty() && run_.checkpoint_every_steps > 0 &&
         done % run_.checkpoint_every_steps == 0;
}

bool Checkpoints::IsDueByClock() const {
  return !run_.checkpoint.empty() && run_.checkpoint_every_minutes > 0 &&
         seconds_() - saved_at_s_ >= 60 * run_.checkpoint_every_minutes;
}

void Checkpoints::Commit(int64_t done, elastic::Save save) {
  if (save == elastic::Save::Now) saved_at_s_ = seconds_();
  RequireFiniteParameters(model_);
  steps_done_ = done;
  state_.commit(save);
}

std::vector<double> AccuraciesOf(const std::vector<Evaluation>& evaluations) {
  std::vector<double> accuracies;
  for (const Evaluation& one : evaluations) accuracies.push_back(one.accuracy);
  return accuracies;
}

void AverageBuffers(torch::nn::Module& model) {
  const torch::NoGradGuard no_grad;
  std::vector<torch::Tensor> buffers;
  std::vector<torch::Tensor> flat;
  for (const torch::Tensor& buffer : model.buffers()) {
    if (!buffer.is_floating_point()) continue;
    buffers.push_back(buffer);
    flat.push_back(buffer.flatten());
  }
  if (buffers.empty()) return;
  // All buffers are reduced in one operation.
  const torch::Tensor mean =
      allreduce(torch::cat(flat), AllreduceOptions().name("buffers"));
  int64_t offset = 0;
  for (torch::Tensor& buffer : buffers) {
    buffer.copy_(mean.narrow(0, offset, buffer.numel()).view_as(buffer));
    offset += buffer.numel();
  }
}

int64_t ParameterDigest(const torch::nn::Module& model) {
  uint64_t digest = base::kFnv1aOfNothing;
  for (const torch::Tensor& parameter : model.parameters()) {
    const torch::Tensor values = parameter.detach().contiguous();
    digest = base::Fnv1a(
        {static_cast<const char*>(values.data_ptr()), values.nbytes()}, digest);
  }
  return static_cast<int64_t>(digest);
}

std::vector<int64_t> GatherParameterDigests(const torch::nn::Module& model) {
  torch::Tensor digests = torch::zeros({size()}, torch::kInt64);
  digests[rank()] = ParameterDigest(model);
  digests = allreduce(
      digests, AllreduceOptions().op(ReduceOp::Sum).name("parameter_digests"));
  const int64_t* data = digests.data_ptr<int64_t>();
  return {data, data + digests.numel()};
}

std::vector<double> SumOverRanks(const std::vector<double>& values) {
  if (values.empty()) return {};
  const torch::Tensor sums =
      allreduce(torch::tensor(values, torch::kFloat64),
                AllreduceOptions().op(ReduceOp::Sum).name("sums"));
  const double* data = sums.data_ptr<double>();
  return {data, data + sums.numel()};
}

void Backward(const torch::Tensor& loss) {
  const TraceSpan span("BACKWARD");
  loss.backward();
}

}  // namespace hvdlite::trainers
