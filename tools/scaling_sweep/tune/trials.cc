#include "tools/scaling_sweep/tune/trials.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "support/progress_line.h"
#include "support/text_table.h"

namespace hvdlite::scaling_sweep {
namespace {

constexpr int kAttempts = 3;
constexpr int kMostInVain = 4;
constexpr double kShareOfRepeats = 0.2;
// Time to ask the launcher, and to write the results.
constexpr double kOverheadSeconds = 0.3;

int RepeatOf(int round, int attempt) { return round * kAttempts + attempt; }

}  // namespace

Trials::Trials(const Spec& spec, const Dimensions& dimensions,
               TrialRunner& runner, double budget_seconds, std::ostream& out)
    : spec_(spec),
      dimensions_(dimensions),
      runner_(runner),
      budget_(budget_seconds),
      out_(out) {}

absl::Status Trials::RunRound(int round,
                              const std::vector<Candidate>& candidates,
                              const KeptTime& kept) {
  std::vector<size_t> order(candidates.size());
  std::iota(order.begin(), order.end(), 0);
  if (round % 2 == 1) std::reverse(order.begin(), order.end());
  for (const size_t i : order) {
    const Candidate& candidate = candidates[i];
    const Rounds& rounds = RoundsOf(candidate);
    if (rounds.contains(round) || HasFailed(rounds)) continue;
    const double seconds = seconds_left() - (i < kept.first ? 0 : kept.seconds);
    // Candidates that are worth running take no longer than the first.
    const bool is_known = costs_.contains(NameOf(dimensions_, candidate));
    if (SecondsOf(is_known ? candidate : candidates.front()) > seconds) {
      continue;
    }
    HVDLITE_RETURN_IF_ERROR(
        RunOne(round, candidate, seconds, /*again_if_failed=*/i == 0));
  }
  return absl::OkStatus();
}

absl::Status Trials::RunOne(int round, const Candidate& candidate,
                            double seconds, bool again_if_failed) {
  HVDLITE_ASSIGN_OR_RETURN(const Configuration configuration,
                           ConfigurationOf(spec_, dimensions_, candidate));
  const std::string name = NameOf(dimensions_, candidate);
  if (planned_ > 0) --planned_;
  const double end = spent_ + seconds;
  bool again = false;  // repeat disturbed runs
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const double before = spent_;
    const absl::StatusOr<FinishedRun> run =
        Attempt(configuration, RepeatOf(round, attempt), name, end - before);
    if (absl::IsDeadlineExceeded(run.status())) break;
    HVDLITE_RETURN_IF_ERROR(run.status());
    const Trial trial = {.items_per_second = run->sample.items_per_second,
                         .disturbed = WasDisturbed(run->sample).value_or(false),
                         .failure = run->sample.failure};
    // A failed repetition does not replace the result of the first run.
    if (again && again_if_failed && !trial.items_per_second) break;
    rounds_[name][round] = trial;
    const double cost = spent_ - before;
    if (!trial.items_per_second) {
      if (!again_if_failed || attempt > 0 || end - spent_ < cost) break;
      continue;
    }
    if (again) {
      ++counts_.repeated;
      spent_again_ += cost;
    }
    in_vain_ = trial.disturbed ? in_vain_ + (again ? 1 : 0) : 0;
    if (!trial.disturbed || cost > end - spent_ || !MayRepeat(cost)) break;
    again = true;
  }
  return absl::OkStatus();
}

absl::StatusOr<FinishedRun> Trials::Attempt(const Configuration& configuration,
                                            int repeat, const std::string& name,
                                            double seconds) {
  RunLimit limit = {
      .seconds = std::max(seconds - kOverheadSeconds, seconds / 2),
      .source = "the rest of --minutes",
      .is_all_there_is = true};
  if (limit_ && limit_->seconds <= limit.seconds) limit = *limit_;
  const double start = runner_.Seconds();
  absl::StatusOr<FinishedRun> run = runner_.Run(configuration, repeat, limit);
  const double cost = runner_.Seconds() - start;
  if (absl::IsDeadlineExceeded(run.status())) {
    Spend(name, cost);
    TellNumber();
    out_ << name << ": " << run.status().message() << std::endl;
  }
  if (!run.ok()) return run;
  // Runs of an earlier command count: their time is part of --minutes.
  Spend(name, std::max(cost, run->sample.seconds + kOverheadSeconds));
  const std::optional<bool> disturbed = WasDisturbed(run->sample);
  if (!disturbed) ++counts_.unknown;
  if (disturbed.value_or(false)) ++counts_.disturbed;
  if (run->is_new) Tell(*run, name);
  return run;
}

void Trials::Spend(const std::string& name, double seconds) {
  spent_ += seconds;
  for (Costs* costs : {&costs_[name], &all_costs_}) {
    costs->seconds += seconds;
    ++costs->runs;
  }
  ++counts_.runs;
}

bool Trials::MayRepeat(double seconds) const {
  return in_vain_ < kMostInVain &&
         spent_again_ + seconds <= kShareOfRepeats * budget_;
}

void Trials::TellNumber() const {
  out_ << "[" << counts_.runs;
  if (planned_ > 0) {
    const double left = static_cast<double>(planned_) * all_costs_.mean();
    out_ << " of about " << counts_.runs + planned_ << ", "
         << support::FormatDuration(
                std::max(0.0, std::min(left, seconds_left())))
         << " left";
  }
  out_ << "] ";
}

void Trials::Tell(const FinishedRun& run, const std::string& name) const {
  const Sample& sample = run.sample;
  TellNumber();
  out_ << name << ": ";
  if (sample.items_per_second) {
    out_ << support::NumberText(*sample.items_per_second) << " items/s, "
         << absl::StrFormat("%.1f s", sample.seconds);
  } else {
    out_ << "failed: " << sample.failure << "; see " << sample.log;
  }
  if (WasDisturbed(sample).value_or(false)) {
    out_ << " (disturbed: other programs used "
         << sample.machine.at("other programs").substr(0, 4) << " CPUs)";
  }
  out_ << std::endl;
}

int Trials::WholeRound(int round,
                       const std::vector<Candidate>& candidates) const {
  for (;; ++round) {
    size_t all = 0;
    size_t there = 0;
    for (const Candidate& candidate : candidates) {
      if (HasFailed(RoundsOf(candidate))) continue;
      ++all;
      const absl::StatusOr<Configuration> configuration =
          ConfigurationOf(spec_, dimensions_, candidate);
      if (configuration.ok() &&
          runner_.Has(*configuration, RepeatOf(round, 0))) {
        ++there;
      }
    }
    if (there == 0 || there == all) return round;
  }
}

const Rounds& Trials::RoundsOf(const Candidate& candidate) const {
  static const Rounds* const kNone = new Rounds;
  const auto found = rounds_.find(NameOf(dimensions_, candidate));
  return found == rounds_.end() ? *kNone : found->second;
}

PairedRatios Trials::Ratios(const Candidate& one, const Candidate& other,
                            int first_round) const {
  return RatiosOf(RoundsOf(one), RoundsOf(other), first_round);
}

double Trials::SecondsOf(const Candidate& candidate) const {
  const auto found = costs_.find(NameOf(dimensions_, candidate));
  if (found != costs_.end()) return found->second.mean();
  return all_costs_.runs == 0 ? 0 : all_costs_.mean();
}

double Trials::SecondsOf(const std::vector<Candidate>& candidates) const {
  double seconds = 0;
  for (const Candidate& candidate : candidates) seconds += SecondsOf(candidate);
  return seconds;
}

}  // namespace hvdlite::scaling_sweep
