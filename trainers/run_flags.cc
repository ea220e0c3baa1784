#include "trainers/run_flags.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "support/flags.h"
#include "support/input_error.h"
#include "support/output_file.h"

namespace hvdlite::trainers {
namespace {

constexpr int64_t kMostSamples = 1'000'000'000;  // of a step

}  // namespace

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RunFlags, epochs, max_steps, checkpoint,
                                   checkpoint_every, checkpoint_every_steps,
                                   checkpoint_every_minutes, commit_every_steps,
                                   resume, report, report_html, seed)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ComputeFlags, threads, inter_op_threads,
                                   no_onednn)

int64_t BatchSize::PerRank(int ranks) const {
  if (of == Of::kRank) return count;
  const int64_t all = OfAllRanks(ranks);
  if (all % ranks == 0) return all / ranks;
  throw support::InputError("--global-batch-size " + std::to_string(all) +
                            " cannot be dealt evenly to " +
                            std::to_string(ranks) +
                            " ranks: use a multiple of their number");
}

int64_t BatchSize::LargestPart(int ranks) const {
  const int64_t all = OfAllRanks(ranks);
  if (all >= ranks) return (all + ranks - 1) / ranks;
  throw support::InputError("--global-batch-size " + std::to_string(all) +
                            " leaves some of " + std::to_string(ranks) +
                            " ranks without a sample");
}

void AddBatchSizeFlags(CLI::App& app, BatchSize& batch,
                       const std::string& items, const std::string& group) {
  const bool counts_all = batch.of == BatchSize::Of::kAllRanks;
  const auto add = [&](const std::string& name, BatchSize::Of of,
                       const std::string& text) {
    return app
        .add_option_function<int64_t>(
            name,
            [&batch, of](const int64_t& count) {
              batch = {.count = count, .of = of};
            },
            text)
        ->check(CLI::Range(int64_t{1}, kMostSamples))
        ->group(group);
  };
  const std::string standard =
      "; if no size is given: " + std::to_string(batch.count);
  CLI::Option* per_rank =
      add("--batch-size-per-rank", BatchSize::Of::kRank,
          items + " of a step on each rank" + (counts_all ? "" : standard));
  CLI::Option* global = add("--global-batch-size", BatchSize::Of::kAllRanks,
                            items + " of a step, of all ranks together" +
                                (counts_all ? standard : ""));
  add("--batch-size", BatchSize::Of::kRank, "As --batch-size-per-rank")
      ->excludes(per_rank)
      ->excludes(global);
  per_rank->excludes(global);
}

void AddRunFlags(CLI::App& app, RunFlags& flags) {
  app.add_option("--epochs", flags.epochs,
                 "Train until this many epochs are done, those before --resume "
                 "included")
      ->check(support::Positive())
      ->group("Training");
  app.add_option("--max-steps", flags.max_steps,
                 "End after this many steps, those before --resume included; "
                 "0: no limit")
      ->check(support::NotNegative())
      ->group("Training");
  app.add_option("--checkpoint", flags.checkpoint,
                 "File that rank 0 writes model, optimizer and position to, in "
                 "the background, after every --checkpoint-every epochs and at "
                 "the end; the one before stays, as FILE.previous. One of an "
                 "earlier run needs --resume, or --overwrite, which removes "
                 "it as the training begins")
      ->group("Checkpoints");
  app.add_option("--checkpoint-every", flags.checkpoint_every,
                 "Epochs between checkpoints")
      ->check(support::Positive())
      ->group("Checkpoints");
  app.add_option("--checkpoint-every-steps", flags.checkpoint_every_steps,
                 "A checkpoint after every so many steps, too; 0: none")
      ->check(support::NotNegative())
      ->group("Checkpoints");
  app.add_option("--checkpoint-every-minutes", flags.checkpoint_every_minutes,
                 "A checkpoint once the last one is so old, too; 0: none")
      ->check(support::NotNegative())
      ->group("Checkpoints");
  app.add_option("--commit-every-steps", flags.commit_every_steps,
                 "Copy to memory, and to the launcher's store if it has one "
                 "(hvdliterun --commit-memory), after every so many steps; 0: "
                 "only for checkpoints. If not given: 1 where there is such a "
                 "store, else 0")
      ->check(support::NotNegative())
      ->group("Checkpoints");
  app.add_option(
         "--resume", flags.resume,
         "Go on from this checkpoint, which only rank 0 reads; a run "
         "with the same flags and ranks ends as if it had not been "
         "interrupted, one with other ranks takes every sample of an epoch "
         "once. auto: from that of --checkpoint if there is one, else anew. A "
         "job that hvdliterun starts again goes on without it")
      ->type_name("FILE|auto")
      ->group("Checkpoints");
  app.add_option("--report", flags.report,
                 "File that rank 0 writes a summary to, as JSON")
      ->group("Run");
  app.add_option("--report-html", flags.report_html,
                 "File that rank 0 draws the curves of the training into, for "
                 "browsers")
      ->group("Run");
  support::AddOverwrite(app, flags.overwrite)->group("Run");
  app.add_flag("--check-data", flags.check_data,
               "Read all of the data, print what cannot be read and why, and "
               "end, with exit code 2 if there is any; train nothing")
      ->group("Run");
  AddProcessFlags(app, flags.seed, flags.compute);
}

void AddProcessFlags(CLI::App& app, uint64_t& seed, ComputeFlags& compute) {
  app.add_option("--seed", seed,
                 "Seed of initial weights, order of the data, augmentation and "
                 "dropout")
      ->group("Run");
  app.add_option("--threads", compute.threads,
                 "Computing threads of a rank; 0: LibTorch's default, which "
                 "OMP_NUM_THREADS sets")
      ->check(CLI::Range(0, 1024))
      ->group("Run");
  app.add_option("--inter-op-threads", compute.inter_op_threads,
                 "Threads of a rank's pool for operators that TorchScript "
                 "forks; 0: LibTorch's default, a thread for each CPU. No "
                 "network here forks any: operators run one after the other")
      ->check(CLI::Range(0, 1024))
      ->group("Run");
  app.add_flag("--no-onednn", compute.no_onednn,
               "Compute convolutions by LibTorch's own operators and BLAS "
               "instead of oneDNN's")
      ->group("Run");
}

std::string SettingsText(const std::string& own, const BatchSize& batch,
                         const RunFlags& run) {
  nlohmann::json all = nlohmann::json::parse(own);
  all["batch_size"] = batch.count;
  all["batch_size_of"] =
      batch.of == BatchSize::Of::kRank ? "rank" : "all ranks";
  all.update(nlohmann::json(run));
  all.update(nlohmann::json(run.compute));
  // A path may be no UTF-8.
  return all.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace hvdlite::trainers
