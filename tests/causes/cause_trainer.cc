// cause_trainer trains a small network that one known cause slows down, to
// check whether timeline_viewer finds the cause. tests/causes/causes runs it.
#include <hvdlite/hvdlite.h>
#include <sys/mman.h>
#include <torch/torch.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/command_line.h"

namespace hvdlite {
namespace {

struct Flags {
  std::string cause = "none";
  int rank = 1;       // the rank to slow down; -1: all
  double amount = 1;  // strength of the cause: 1 is about a third of a step
  int steps = 60;
  int64_t layers = 12;
  int64_t width = 256;
  int64_t batch_size = 128;
  int64_t seed = 1;
  bool knows_work = true;
};

torch::nn::Sequential MakeNetwork(const Flags& flags) {
  torch::nn::Sequential network;
  for (int64_t i = 0; i < flags.layers; ++i) {
    network->push_back(torch::nn::Linear(flags.width, flags.width));
    network->push_back(torch::nn::ReLU());
  }
  return network;
}

// Threads that keep the cores of this process busy while the object exists.
class Spinners {
 public:
  explicit Spinners(int count) {
    for (int i = 0; i < count; ++i) {
      threads_.emplace_back([this] {
        while (!done_.load(std::memory_order_relaxed)) {
        }
      });
    }
  }
  ~Spinners() {
    done_ = true;
    for (std::thread& thread : threads_) thread.join();
  }
  Spinners(const Spinners&) = delete;
  Spinners& operator=(const Spinners&) = delete;

 private:
  std::atomic<bool> done_ = false;
  std::vector<std::thread> threads_;
};

// Writes to new memory: the kernel has to find and clear every page.
void TouchFreshPages(int64_t bytes) {
  void* const memory =
      mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  madvise(memory, static_cast<size_t>(bytes), MADV_NOHUGEPAGE);
  constexpr int64_t kPageBytes = 4096;
  auto* const pages = static_cast<volatile char*>(memory);
  for (int64_t at = 0; at < bytes; at += kPageBytes) pages[at] = 1;
  munmap(memory, static_cast<size_t>(bytes));
}

class Trainer {
 public:
  explicit Trainer(Flags flags)
      : flags_(std::move(flags)),
        befallen_(flags_.rank < 0 || rank() == flags_.rank),
        network_(MakeNetwork(flags_)),
        input_(torch::randn({3 * flags_.batch_size, flags_.width})) {
    torch::manual_seed(flags_.seed * 1000 + rank());
  }

  void Run() {
    broadcast_parameters(*network_, 0);
    DistributedOptimizer optimizer(
        std::make_unique<torch::optim::SGD>(network_->parameters(), 0.001),
        network_->named_parameters());
    std::unique_ptr<Spinners> spinners;
    const auto begin = std::chrono::steady_clock::now();
    for (int step = 0; step < flags_.steps; ++step) {
      if (step == 1 && Has("starved")) {
        spinners = std::make_unique<Spinners>(static_cast<int>(flags_.amount));
      }
      const torch::Tensor bucket = Load();
      optimizer.zero_grad();
      Compute(bucket);
      optimizer.step();
    }
    const std::chrono::duration<double> seconds =
        std::chrono::steady_clock::now() - begin;
    if (rank() == 0) {
      std::printf("%.2f ms per step\n", seconds.count() * 1e3 / flags_.steps);
    }
  }

 private:
  bool Has(const char* cause) const {
    return befallen_ && flags_.cause == cause;
  }

  torch::Tensor Load() {
    const TraceSpan span("LOAD_BATCH");
    if (Has("slow-input")) {
      std::this_thread::sleep_for(
          std::chrono::microseconds(int64_t(flags_.amount * 8000)));
    }
    int64_t samples = flags_.batch_size;
    if (Has("uneven-data")) {
      const double spread = torch::rand({1}).item<double>() - 0.5;
      samples += static_cast<int64_t>(1.2 * flags_.amount * spread *
                                      static_cast<double>(samples));
    }
    if (flags_.knows_work) add_step_work(samples);
    return input_.slice(0, 0, samples);
  }

  void Compute(const torch::Tensor& bucket) {
    if (Has("slow-rank")) {
      // More work of the same kind.
      const torch::NoGradGuard no_gradients;
      const auto more = static_cast<int64_t>(
          1.5 * flags_.amount * static_cast<double>(flags_.batch_size));
      network_->forward(input_.slice(0, 0, std::max<int64_t>(more, 1)));
    }
    if (Has("uneven-cores")) {
      // A slower core for a while: more CPU time for the same work.
      const torch::NoGradGuard no_gradients;
      const double part = torch::rand({1}).item<double>() * flags_.amount;
      auto more = static_cast<int64_t>(4 * part *
                                       static_cast<double>(flags_.batch_size));
      for (; more > 0; more -= input_.size(0)) {
        network_->forward(input_.slice(0, 0, more));
      }
    }
    if (Has("late-in-turns")) {
      std::this_thread::sleep_for(std::chrono::microseconds(
          int64_t(torch::rand({1}).item<double>() * flags_.amount * 12'000)));
    }
    if (Has("page-faults")) {
      TouchFreshPages(static_cast<int64_t>(flags_.amount * (24 << 20)));
    }
    const torch::Tensor loss = network_->forward(bucket).square().mean();
    loss.backward();
  }

  const Flags flags_;
  const bool befallen_;
  torch::nn::Sequential network_;
  const torch::Tensor input_;
};

Flags ParseFlags(int argc, char** argv) {
  Flags flags;
  CLI::App app("Trains a small network, slowed down by one known cause",
               "cause_trainer");
  support::AddVersion(app);
  app.add_option("--cause", flags.cause)
      ->check(CLI::IsMember({"none", "slow-rank", "slow-input", "uneven-data",
                             "uneven-cores", "late-in-turns", "page-faults",
                             "starved"}));
  app.add_option("--rank", flags.rank, "Rank to slow down; -1: all");
  app.add_option("--amount", flags.amount,
                 "Amount of the delay: 1 is about a third of a step; for "
                 "--cause starved: number of threads");
  app.add_option("--steps", flags.steps);
  app.add_option("--layers", flags.layers);
  app.add_option("--width", flags.width);
  app.add_option("--batch-size", flags.batch_size);
  app.add_option("--seed", flags.seed);
  app.add_flag("!--unknown-work", flags.knows_work,
               "Do not record the work of the mini-batches");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::exit(support::EndOfParsing(app, error).Tell());
  }
  return flags;
}

}  // namespace
}  // namespace hvdlite

int main(int argc, char** argv) {
  const hvdlite::Flags flags = hvdlite::ParseFlags(argc, argv);
  try {
    hvdlite::init();
    hvdlite::Trainer(flags).Run();
    hvdlite::shutdown();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "cause_trainer: %s\n", error.what());
    return 1;
  }
  return 0;
}
