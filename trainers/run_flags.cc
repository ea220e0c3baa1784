#include "trainers/run_flags.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "support/flags.h"
#include "support/input_error.h"
#include "support/output_file.h"

namespace hvdlite::trainers {
namespace {

constexpr int64_t kMostSamples = 1'000'000'000;  // per step

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
                            " is not divisible by " + std::to_string(ranks) +
                            " ranks; use a multiple of their number");
}

int64_t BatchSize::LargestPart(int ranks) const {
  const int64_t all = OfAllRanks(ranks);
  if (all >= ranks) return (all + ranks - 1) / ranks;
  throw support::InputError("--global-batch-size " + std::to_string(all) +
                            " is less than the number of ranks, " +
                            std::to_string(ranks) +
                            "; give each rank a sample at least");
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
      "; default if no size is given: " + std::to_string(batch.count);
  CLI::Option* per_rank =
      add("--batch-size-per-rank", BatchSize::Of::kRank,
          items + " per step on each rank" + (counts_all ? "" : standard));
  CLI::Option* global = add("--global-batch-size", BatchSize::Of::kAllRanks,
                            items + " per step, summed over all ranks" +
                                (counts_all ? standard : ""));
  add("--batch-size", BatchSize::Of::kRank, "Same as --batch-size-per-rank")
      ->excludes(per_rank)
      ->excludes(global);
  per_rank->excludes(global);
}

void AddRunFlags(CLI::App& app, RunFlags& flags) {
  app.add_option("--epochs", flags.epochs,
                 "Number of epochs to train, including those before --resume")
      ->check(support::Positive())
      ->group("Training");
  app.add_option("--max-steps", flags.max_steps,
                 "Limit for the number of steps, including those before "
                 "--resume; 0: no limit")
      ->check(support::NotNegative())
      ->group("Training");
  app.add_option("--checkpoint", flags.checkpoint,
                 "Checkpoint file with model, optimizer and position. Rank 0 "
                 "writes it in the background after every --checkpoint-every "
                 "epochs and at the end, and keeps the previous one as "
                 "FILE.previous. If the file of an earlier run exists, give "
                 "--resume, or give --overwrite, which removes it when the "
                 "training begins")
      ->group("Checkpoints");
  app.add_option("--checkpoint-every", flags.checkpoint_every,
                 "Epochs between two checkpoints")
      ->check(support::Positive())
      ->group("Checkpoints");
  app.add_option("--checkpoint-every-steps", flags.checkpoint_every_steps,
                 "Steps between additional checkpoints; 0: none")
      ->check(support::NotNegative())
      ->group("Checkpoints");
  app.add_option("--checkpoint-every-minutes", flags.checkpoint_every_minutes,
                 "Minutes after the last checkpoint until an additional one; "
                 "0: none")
      ->check(support::NotNegative())
      ->group("Checkpoints");
  app.add_option("--commit-every-steps", flags.commit_every_steps,
                 "Steps between commits: copies in memory and, if the "
                 "launcher has one, in its commit store (hvdliterun "
                 "--commit-memory); 0: only with checkpoints. Default: 1 if "
                 "there is such a store, else 0")
      ->check(support::NotNegative())
      ->group("Checkpoints");
  app.add_option(
         "--resume", flags.resume,
         "Continue from this checkpoint, which only rank 0 reads. With the "
         "same flags and number of ranks the result is the same as without an "
         "interruption; with another number of ranks every sample of an epoch "
         "is still used once. auto: continue from the file of --checkpoint if "
         "it exists, else start from scratch. A job that hvdliterun restarts "
         "continues without this flag")
      ->type_name("FILE|auto")
      ->group("Checkpoints");
  app.add_option("--report", flags.report,
                 "JSON file for a summary, written by rank 0")
      ->group("Run");
  app.add_option("--report-html", flags.report_html,
                 "HTML file for the curves of the training, written by rank 0")
      ->group("Run");
  support::AddOverwrite(app, flags.overwrite)->group("Run");
  app.add_flag("--check-data", flags.check_data,
               "Read all data, print what cannot be read and why, and end "
               "without training; exit code 2 if something cannot be read")
      ->group("Run");
  AddProcessFlags(app, flags.seed, flags.compute);
}

void AddProcessFlags(CLI::App& app, uint64_t& seed, ComputeFlags& compute) {
  app.add_option("--seed", seed,
                 "Seed of the initial weights, the order of the data, "
                 "augmentation and dropout")
      ->group("Run");
  app.add_option("--threads", compute.threads,
                 "Computing threads per rank; 0: LibTorch's default, which "
                 "OMP_NUM_THREADS sets")
      ->check(CLI::Range(0, 1024))
      ->group("Run");
  app.add_option("--inter-op-threads", compute.inter_op_threads,
                 "Threads per rank for operators that TorchScript forks; 0: "
                 "LibTorch's default, one thread per CPU. The networks here "
                 "do not fork operators")
      ->check(CLI::Range(0, 1024))
      ->group("Run");
  app.add_flag("--no-onednn", compute.no_onednn,
               "Compute convolutions with LibTorch's own operators and BLAS "
               "instead of oneDNN")
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
  // A path may be invalid UTF-8.
  return all.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace hvdlite::trainers
