// negotiation_bench: what submitting and negotiating cost per tensor, without
// LibTorch, MPI or a data plane; and whether memory grows with their number.

#include <time.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/logging.h"
#include "collective/communicator.h"
#include "negotiation/channel/control_channel.h"
#include "negotiation/engine/coordinator.h"
#include "negotiation/protocol/negotiator.h"
#include "tools/support/command_line.h"
#include "tools/support/flags.h"
#include "tools/support/interrupt_notice.h"
#include "tools/support/statistics.h"

namespace hvdlite::negotiation_bench {
namespace {

using negotiation::Completion;
using negotiation::Coordinator;
using negotiation::Negotiator;
using negotiation::Operation;
using Clock = std::chrono::steady_clock;
using Nanos = std::chrono::duration<double, std::nano>;

struct Options {
  int ranks = 2;
  int tensors = 1000;
  int tensor_bytes = 4;
  int steps = 200;
  int warm_up_steps = 5;
  // Above 0: memory is measured while that many run, under that many names.
  int64_t operations = 0;
  int64_t names = 1000;
};

// Medians over the steps.
struct Result {
  std::string name;
  double submit_ns = 0;  // per tensor, on one rank
  // From the last submission to the completion of all, per tensor.
  double finish_ns = 0;
  // CPU time of all threads, per tensor and rank; 0 where it is not measured.
  double cpu_ns = 0;
};

// Two to many Negotiators in one thread, which hand each other their messages
// as bytes: the protocol alone. Times are per tensor and rank.
class Negotiators {
 public:
  explicit Negotiators(const Options& options) {
    Negotiator::Options shared;
    shared.layout = std::make_shared<negotiation::WorldLayout>(
        std::vector<int>(options.ranks, 0));
    for (int rank = 0; rank < options.ranks; ++rank) {
      shared.rank = rank;
      ranks_.push_back(std::make_unique<Negotiator>(shared));
    }
    for (int i = 0; i < options.tensors; ++i) {
      negotiation::Request& request = requests_.emplace_back();
      request.name = absl::StrCat("layer", i, ".weight");
      request.tensors = {{.shape = {options.tensor_bytes / 4}}};
    }
    hints_.resize(options.ranks * options.tensors);
  }

  void SubmitAll() {
    for (size_t rank = 0; rank < ranks_.size(); ++rank) {
      ranks_[rank]->Advance(++now_ns_);
      for (size_t i = 0; i < requests_.size(); ++i) {
        ranks_[rank]->Submit(requests_[i], /*absent=*/false, i,
                             &hints_[rank * requests_.size() + i]);
      }
      ranks_[rank]->MarkUrgent(requests_.back().name);
    }
  }

  // Until every rank has ended everything.
  void Finish() {
    size_t left = ranks_.size() * requests_.size();
    while (left > 0) {
      for (size_t rank = 0; rank < ranks_.size(); ++rank) {
        ranks_[rank]->Plan();
        ranks_[rank]->ComeToGate();
        const auto decision = ranks_[rank]->NextDecision();
        for (const Negotiator::Outgoing& outgoing :
             ranks_[rank]->TakeOutgoing()) {
          negotiation::wire::Message message;
          message.ParseFromString(outgoing.message.SerializeAsString());
          ranks_[outgoing.to]
              ->OnMessage(static_cast<int>(rank), message)
              .IgnoreError();
        }
        if (!decision.has_value()) continue;
        left -= decision->tensors.size();
        if (decision->has_gate) ranks_[rank]->OnDone();
      }
    }
  }

 private:
  int64_t now_ns_ = 0;
  std::vector<std::unique_ptr<Negotiator>> ranks_;
  std::vector<negotiation::Request> requests_;
  std::vector<negotiation::SlotHint> hints_;
};

Result MeasureNegotiators(const Options& options) {
  Negotiators ranks(options);
  std::vector<double> submit_ns, finish_ns;
  const double count = double{1} * options.tensors * options.ranks;
  for (int step = 0; step < options.warm_up_steps + options.steps; ++step) {
    const auto start = Clock::now();
    ranks.SubmitAll();
    const auto submitted = Clock::now();
    ranks.Finish();
    const auto end = Clock::now();
    if (step < options.warm_up_steps) continue;
    submit_ns.push_back(Nanos(submitted - start).count() / count);
    finish_ns.push_back(Nanos(end - submitted).count() / count);
  }
  return {"negotiators", support::Median(submit_ns), support::Median(finish_ns),
          0};
}

// A data plane that moves nothing. Every operation succeeds at once and leaves
// its buffers as they are, so that what remains is the cost of submitting and
// negotiating. Ranks do not wait for one another in it.
class IdleCommunicator final : public collective::Communicator {
 public:
  IdleCommunicator(int rank, int size) : rank_(rank), size_(size) {}

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  absl::string_view name() const override { return "IDLE"; }

  absl::Status Allreduce(absl::Span<std::byte>, collective::DataType,
                         collective::ReduceOp) override {
    return absl::OkStatus();
  }
  absl::Status Broadcast(absl::Span<std::byte>, int) override {
    return absl::OkStatus();
  }
  absl::Status Allgather(absl::Span<std::byte>,
                         absl::Span<const size_t>) override {
    return absl::OkStatus();
  }
  absl::Status ReduceScatter(absl::Span<std::byte>, absl::Span<const size_t>,
                             collective::DataType,
                             collective::ReduceOp) override {
    return absl::OkStatus();
  }
  absl::Status Alltoall(absl::Span<const std::byte>, absl::Span<const size_t>,
                        absl::Span<std::byte>,
                        absl::Span<const size_t>) override {
    return absl::OkStatus();
  }
  absl::Status Exchange(int, absl::Span<const std::byte>,
                        absl::Span<std::byte>) override {
    return absl::OkStatus();
  }
  absl::Status Barrier() override { return absl::OkStatus(); }
  absl::StatusOr<std::unique_ptr<collective::Communicator>> CreateSubgroup(
      absl::Span<const int>, int) override {
    return absl::UnimplementedError("process sets are not measured");
  }

 private:
  const int rank_;
  const int size_;
};

enum class Submission { kOneByOne, kPrepared };

double ProcessCpuNanos() {
  timespec time = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return 1e9 * static_cast<double>(time.tv_sec) +
         static_cast<double>(time.tv_nsec);
}

void Check(const absl::Status& status) {
  if (!status.ok()) throw std::runtime_error(status.ToString());
}

// One rank's coordinator and tensors.
class Rank {
 public:
  Rank(const Options& options, int rank, negotiation::ControlChannel& channel)
      : options_(options), communicator_(rank, options.ranks) {
    topology_.rank = rank;
    topology_.size = options.ranks;
    topology_.host_of_rank.assign(options.ranks, "host");
    topology_.cross_rank_of_rank.assign(options.ranks, 0);
    coordinator_ = std::make_unique<Coordinator>(
        negotiation::CoordinatorOptions(),
        negotiation::CoordinatorEnvironment{
            channel, communicator_, topology_, clock_, logger_, {}});
    values_.resize(options.tensors,
                   std::vector<std::byte>(options.tensor_bytes));
    Name("layer", 0);
    completions_.resize(options.tensors);
  }

  // `tensors` names at a time, again and again, until it is the turn of the
  // next; a name comes as often as another. `on_step` hears how many operations
  // this rank has done.
  void RunNames(const std::function<void(int64_t done)>& on_step) {
    const int64_t uses =
        std::max<int64_t>(options_.operations / options_.names, 1);
    int64_t done = 0;
    for (int64_t first = 0; done < options_.operations;
         first = (first + options_.tensors) % options_.names) {
      Name("operation", first);
      for (int64_t use = 0; use < uses && done < options_.operations; ++use) {
        Submit(Submission::kOneByOne);
        for (const auto& completion : completions_) {
          Check(coordinator_->Wait(*completion));
        }
        done += options_.tensors;
        on_step(done);
      }
    }
  }

  void Run(Submission submission, std::vector<double>& submit_ns,
           std::vector<double>& finish_ns) {
    const double count = options_.tensors;
    for (int step = 0; step < options_.steps; ++step) {
      const auto start = Clock::now();
      Submit(submission);
      const auto submitted = Clock::now();
      for (auto completion = completions_.rbegin();
           completion != completions_.rend(); ++completion) {
        Check(coordinator_->Wait(**completion));
      }
      submit_ns.push_back(Nanos(submitted - start).count() / count);
      finish_ns.push_back(Nanos(Clock::now() - submitted).count() / count);
    }
  }

  void Shutdown() {
    Check(coordinator_->Shutdown("end", absl::InfiniteDuration(), {}));
  }

 private:
  // The names that follow are `prefix` and a number from `first` on.
  void Name(const char* prefix, int64_t first) {
    names_.clear();
    for (int i = 0; i < options_.tensors; ++i) {
      names_.push_back(absl::StrCat(prefix, first + i, ".weight"));
    }
  }

  Operation OperationOf(int tensor) {
    Operation operation;
    operation.request.name = names_[tensor];
    operation.request.tensors = {{.shape = {options_.tensor_bytes / 4}}};
    operation.inputs = {values_[tensor]};
    operation.outputs = {absl::MakeSpan(values_[tensor])};
    return operation;
  }

  void Submit(Submission submission) {
    switch (submission) {
      case Submission::kOneByOne:
        for (int i = 0; i < options_.tensors; ++i) {
          auto completion = coordinator_->Submit(OperationOf(i));
          Check(completion.status());
          completions_[i] = *std::move(completion);
        }
        return;
      case Submission::kPrepared:
        if (prepared_.empty()) Prepare();
        for (int i = 0; i < options_.tensors; ++i) {
          Check(prepared_[i]->Bind({values_[i]}, {absl::MakeSpan(values_[i])},
                                   /*absent=*/false, nullptr));
        }
        Check(coordinator_->SubmitPrepared(prepared_, /*caller_waits=*/true));
        return;
    }
  }

  void Prepare() {
    for (int i = 0; i < options_.tensors; ++i) {
      auto prepared = coordinator_->Prepare(OperationOf(i));
      Check(prepared.status());
      prepared_.push_back(*std::move(prepared));
      completions_[i] = prepared_.back();
    }
  }

  const Options options_;
  IdleCommunicator communicator_;
  collective::Topology topology_;
  base::SteadyClock clock_;
  base::Logger logger_{base::Severity::kWarning, -1, [](absl::string_view) {}};
  std::unique_ptr<Coordinator> coordinator_;
  std::vector<std::vector<std::byte>> values_;
  std::vector<std::string> names_;
  std::vector<std::shared_ptr<const Completion>> completions_;
  std::vector<std::shared_ptr<negotiation::PreparedOperation>> prepared_;
};

// Coordinators with threads, in-process control channels and IdleCommunicators.
class Coordinators {
 public:
  explicit Coordinators(const Options& options)
      : channels_(negotiation::CreateInProcessChannels(options.ranks)) {
    Check(channels_.status());
    for (int rank = 0; rank < options.ranks; ++rank) {
      ranks_.push_back(
          std::make_unique<Rank>(options, rank, *(*channels_)[rank]));
    }
  }

  // Runs `body` for all ranks, each in a thread of its own.
  void OnEveryRank(const std::function<void(Rank&, int rank)>& body) {
    std::vector<std::thread> threads;
    for (size_t rank = 0; rank < ranks_.size(); ++rank) {
      threads.emplace_back(
          [&, rank] { body(*ranks_[rank], static_cast<int>(rank)); });
    }
    for (std::thread& thread : threads) thread.join();
  }

  void Shutdown() {
    OnEveryRank([](Rank& rank, int) { rank.Shutdown(); });
  }

 private:
  absl::StatusOr<std::vector<std::unique_ptr<negotiation::ControlChannel>>>
      channels_;
  std::vector<std::unique_ptr<Rank>> ranks_;
};

Result MeasureCoordinators(const Options& options, Submission submission) {
  Coordinators coordinators(options);
  std::vector<std::vector<double>> submit_ns(options.ranks);
  std::vector<std::vector<double>> finish_ns(options.ranks);
  const double start_ns = ProcessCpuNanos();
  coordinators.OnEveryRank([&](Rank& rank, int index) {
    rank.Run(submission, submit_ns[index], finish_ns[index]);
  });
  const double cpu_ns = ProcessCpuNanos() - start_ns;
  coordinators.Shutdown();
  static constexpr const char* kNames[] = {"submit one by one",
                                           "submit together", "prepared"};
  return {
      kNames[static_cast<int>(submission)], support::Median(submit_ns[0]),
      support::Median(finish_ns[0]),
      cpu_ns / (double{1} * options.steps * options.tensors * options.ranks)};
}

int64_t ResidentBytes() {
  int64_t size_pages = 0;
  int64_t resident_pages = 0;
  std::ifstream("/proc/self/statm") >> size_pages >> resident_pages;
  return resident_pages * sysconf(_SC_PAGESIZE);
}

// Of this process, which has all ranks.
struct Memory {
  int64_t operations = 0;  // done so far
  int64_t resident_bytes = 0;
};

// After the first 10,000 operations, half of them, and all.
std::vector<Memory> MeasureMemory(const Options& options) {
  Coordinators coordinators(options);
  std::vector<int64_t> when = {std::min<int64_t>(10'000, options.operations),
                               options.operations / 2, options.operations};
  std::vector<Memory> memory;
  coordinators.OnEveryRank([&](Rank& rank, int index) {
    rank.RunNames([&](int64_t done) {
      while (index == 0 && memory.size() < when.size() &&
             done >= when[memory.size()]) {
        memory.push_back({done, ResidentBytes()});
      }
    });
  });
  coordinators.Shutdown();
  return memory;
}

void Print(const Options& options, const std::vector<Memory>& memory,
           bool json) {
  nlohmann::json all = nlohmann::json::array();
  if (!json) {
    std::printf("%d ranks in one process, %lld names\n%14s %14s\n",
                options.ranks, static_cast<long long>(options.names),
                "operations", "resident KiB");
  }
  for (const Memory& at : memory) {
    all.push_back(
        {{"operations", at.operations}, {"resident_bytes", at.resident_bytes}});
    if (json) continue;
    std::printf("%14lld %14lld\n", static_cast<long long>(at.operations),
                static_cast<long long>(at.resident_bytes >> 10));
  }
  if (json) std::printf("%s\n", all.dump(2).c_str());
}

int Main(int argc, char** argv) {
  support::TellIfInterrupted(
      "negotiation_bench",
      "nothing is printed before the end; the same command begins anew");
  Options options;
  bool json = false;
  CLI::App app(
      "Measures what submitting and negotiating cost per tensor: for the "
      "protocol alone, and for coordinators that submit in different ways. "
      "Or, with --operations, how memory grows with their number.",
      "negotiation_bench");
  hvdlite::support::AddVersion(app);
  support::AddPositive(app, "--ranks", options.ranks, "Ranks, as threads");
  support::AddPositive(app, "--tensors", options.tensors, "Tensors per step");
  support::AddPositive(app, "--tensor-bytes", options.tensor_bytes,
                       "Bytes of each tensor, of float32");
  support::AddPositive(app, "--steps", options.steps, "Steps to measure");
  app.add_option("--operations", options.operations,
                 "Measure how memory grows instead, while that many operations "
                 "run")
      ->check(CLI::PositiveNumber);
  support::AddPositive(app, "--names", options.names,
                       "Names that these have, --tensors at a time");
  app.add_flag("--json", json, "Print JSON");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return support::EndOfParsing(app, error).Tell();
  }

  if (options.operations > 0) {
    Print(options, MeasureMemory(options), json);
    return 0;
  }
  const std::vector<Result> results = {
      MeasureNegotiators(options),
      MeasureCoordinators(options, Submission::kOneByOne),
      MeasureCoordinators(options, Submission::kPrepared)};
  if (json) {
    nlohmann::json all = nlohmann::json::array();
    for (const Result& result : results) {
      all.push_back({{"name", result.name},
                     {"submit_ns", result.submit_ns},
                     {"finish_ns", result.finish_ns},
                     {"cpu_ns", result.cpu_ns}});
    }
    std::printf("%s\n", all.dump(2).c_str());
    return 0;
  }
  std::printf("%d ranks, %d tensors of %d bytes; ns per tensor\n",
              options.ranks, options.tensors, options.tensor_bytes);
  std::printf("%-20s %10s %10s %14s\n", "", "submit", "finish", "CPU per rank");
  for (const Result& result : results) {
    std::printf("%-20s %10.1f %10.1f %14.1f\n", result.name.c_str(),
                result.submit_ns, result.finish_ns, result.cpu_ns);
  }
  return 0;
}

}  // namespace
}  // namespace hvdlite::negotiation_bench

int main(int argc, char** argv) {
  return hvdlite::negotiation_bench::Main(argc, argv);
}
