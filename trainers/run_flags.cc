#include "trainers/run_flags.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "tools/support/flag_checks.h"

namespace hvdlite::trainers {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RunFlags, epochs, max_steps, checkpoint,
                                   checkpoint_every, resume, report,
                                   report_html, seed, threads)

void AddRunFlags(CLI::App& app, RunFlags& flags) {
  app.add_option("--epochs", flags.epochs,
                 "Train until this many epochs are done, those before --resume "
                 "included")
      ->check(base::Positive())
      ->group("Training");
  app.add_option("--max-steps", flags.max_steps,
                 "End after this many steps, those before --resume included; "
                 "0: no limit")
      ->check(base::NotNegative())
      ->group("Training");
  app.add_option("--checkpoint", flags.checkpoint,
                 "File that rank 0 writes model, optimizer and position to, "
                 "after every --checkpoint-every epochs and at the end")
      ->group("Checkpoints");
  app.add_option("--checkpoint-every", flags.checkpoint_every,
                 "Epochs between checkpoints")
      ->check(base::Positive())
      ->group("Checkpoints");
  app.add_option("--resume", flags.resume,
                 "Go on from this checkpoint, which only rank 0 reads; a run "
                 "with the same flags and ranks ends as if it had not been "
                 "interrupted")
      ->group("Checkpoints");
  app.add_option("--report", flags.report,
                 "File that rank 0 writes a summary to, as JSON")
      ->group("Run");
  app.add_option("--report-html", flags.report_html,
                 "File that rank 0 draws the curves of the training into, for "
                 "browsers")
      ->group("Run");
  app.add_option("--seed", flags.seed,
                 "Seed of initial weights, order of the data, augmentation and "
                 "dropout")
      ->group("Run");
  app.add_option("--threads", flags.threads,
                 "Computing threads of a rank; 0: LibTorch's default, which "
                 "OMP_NUM_THREADS sets")
      ->check(CLI::Range(0, 1024))
      ->group("Run");
}

std::string SettingsText(nlohmann::json own, const RunFlags& run) {
  own.update(nlohmann::json(run));
  // A path may be no UTF-8.
  return own.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace hvdlite::trainers
