#include "trainers/mnist_flags.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

namespace hvdlite::trainers {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(MnistFlags, data_dir, epochs, max_steps,
                                   batch_size, lr, momentum, dropout, manual,
                                   quiet, checkpoint, resume, report,
                                   report_html, seed, threads)

namespace {

constexpr char kDescription[] =
    "Trains a small network on MNIST, data-parallel, in the four steps of\n"
    "synchronous SGD: start the world, deal the images to the ranks, make the\n"
    "parameters equal, add up the gradients.\n"
    "\n"
    "  generate_mnist --output DIR        # or the real files\n"
    "  mpirun -np 2 train_mnist --data-dir DIR\n"
    "\n"
    "However many ranks there are, a step processes --batch-size images, and\n"
    "its gradient is that of one process.\n";

}  // namespace

CommandLine<MnistFlags> ParseMnistFlags(int argc, const char* const* argv) {
  MnistFlags flags;
  CLI::App app(kDescription, "train_mnist");
  app.footer(kExitCodes);
  app.option_defaults()->always_capture_default();
  app.add_option("--data-dir", flags.data_dir,
                 "Directory with MNIST's four files (train-images-idx3-ubyte "
                 "and so on), gzipped or not")
      ->required();
  app.add_option("--epochs", flags.epochs,
                 "Train until this many epochs are done, those before --resume "
                 "included")
      ->check(CLI::PositiveNumber);
  app.add_option("--max-steps", flags.max_steps,
                 "End after this many steps, those before --resume included; "
                 "0: no limit")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--batch-size", flags.batch_size,
                 "Images a step, of all ranks together")
      ->check(CLI::PositiveNumber);
  app.add_option("--lr", flags.lr, "Learning rate")->check(CLI::PositiveNumber);
  app.add_option("--momentum", flags.momentum, "Momentum of SGD")
      ->check(CLI::Range(0.0, 1.0));
  app.add_option("--dropout", flags.dropout,
                 "Share of values that the network drops out")
      ->check(CLI::Range(0.0, 0.99));
  app.add_flag("--manual", flags.manual,
               "Add up the gradients by calls of allreduce, as one would "
               "without DistributedOptimizer");
  app.add_flag("--quiet", flags.quiet, "Print nothing but errors");
  app.add_option("--checkpoint", flags.checkpoint,
                 "File that rank 0 writes model, optimizer and position to, "
                 "after every epoch and at the end");
  app.add_option("--resume", flags.resume,
                 "Go on from this checkpoint, which only rank 0 reads");
  app.add_option("--report", flags.report,
                 "File that rank 0 writes a summary to, as JSON");
  app.add_option("--report-html", flags.report_html,
                 "File that rank 0 draws the curves of the training into, for "
                 "browsers");
  app.add_option("--seed", flags.seed,
                 "Seed of initial weights, order of the images, dropout");
  app.add_option("--threads", flags.threads,
                 "Computing threads of a rank; 0: LibTorch's default")
      ->check(CLI::Range(0, 1024));
  const auto end = ParseArguments(app, argc, argv, [] {});
  if (end.has_value()) return {.flags = std::nullopt, .end = *end};
  return {.flags = flags, .end = {}};
}

std::string ToJson(const MnistFlags& flags) {
  // A path may be no UTF-8.
  return nlohmann::json(flags).dump(-1, ' ', false,
                                    nlohmann::json::error_handler_t::replace);
}

}  // namespace hvdlite::trainers
