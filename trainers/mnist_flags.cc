#include "trainers/mnist_flags.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "tools/support/flag_checks.h"

namespace hvdlite::trainers {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(MnistFlags, data_dir, batch_size, lr,
                                   momentum, dropout, manual, quiet)

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
  app.add_option("--batch-size", flags.batch_size,
                 "Images a step, of all ranks together")
      ->check(base::Positive());
  app.add_option("--lr", flags.lr, "Learning rate")->check(base::Positive());
  app.add_option("--momentum", flags.momentum, "Momentum of SGD")
      ->check(CLI::Range(0.0, 1.0));
  app.add_option("--dropout", flags.dropout,
                 "Share of values that the network drops out")
      ->check(CLI::Range(0.0, 0.99));
  app.add_flag("--manual", flags.manual,
               "Add up the gradients by calls of allreduce, as one would "
               "without DistributedOptimizer");
  app.add_flag("--quiet", flags.quiet, "Print nothing but errors");
  AddRunFlags(app, flags.run);
  const auto end = ParseArguments(app, argc, argv, [] {});
  if (end.has_value()) return {.flags = std::nullopt, .end = *end};
  return {.flags = flags, .end = {}};
}

std::string ToJson(const MnistFlags& flags) {
  return SettingsText(flags, flags.run);
}

}  // namespace hvdlite::trainers
