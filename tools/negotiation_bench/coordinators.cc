#include <time.h>

#include <chrono>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/logging.h"
#include "negotiation/channel/control_channel.h"
#include "negotiation/engine/coordinator.h"
#include "tools/negotiation_bench/idle_communicator.h"
#include "tools/negotiation_bench/measurement.h"
#include "tools/support/statistics.h"

namespace hvdlite::negotiation_bench {
namespace {

using negotiation::Completion;
using negotiation::Coordinator;
using negotiation::Operation;
using Clock = std::chrono::steady_clock;
using Nanos = std::chrono::duration<double, std::nano>;

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
    coordinator_ = Coordinator::Start(
        {}, {channel, communicator_, topology_, clock_, logger_, {}});
    values_.resize(options.tensors,
                   std::vector<std::byte>(options.tensor_bytes));
    for (int i = 0; i < options.tensors; ++i) {
      names_.push_back(absl::StrCat("layer", i, ".weight"));
    }
    completions_.resize(options.tensors);
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

}  // namespace

Result MeasureCoordinators(const Options& options, Submission submission) {
  auto channels = negotiation::CreateInProcessChannels(options.ranks);
  Check(channels.status());
  std::vector<std::unique_ptr<Rank>> ranks;
  for (int rank = 0; rank < options.ranks; ++rank) {
    ranks.push_back(std::make_unique<Rank>(options, rank, *(*channels)[rank]));
  }
  std::vector<std::vector<double>> submit_ns(options.ranks);
  std::vector<std::vector<double>> finish_ns(options.ranks);
  const auto on_every_rank = [&](const std::function<void(int)>& body) {
    std::vector<std::thread> threads;
    for (int rank = 0; rank < options.ranks; ++rank) {
      threads.emplace_back(body, rank);
    }
    for (std::thread& thread : threads) thread.join();
  };
  const double start_ns = ProcessCpuNanos();
  on_every_rank([&](int rank) {
    ranks[rank]->Run(submission, submit_ns[rank], finish_ns[rank]);
  });
  const double cpu_ns = ProcessCpuNanos() - start_ns;
  on_every_rank([&](int rank) { ranks[rank]->Shutdown(); });
  static constexpr const char* kNames[] = {"submit one by one",
                                           "submit together", "prepared"};
  return {
      kNames[static_cast<int>(submission)], base::Median(submit_ns[0]),
      base::Median(finish_ns[0]),
      cpu_ns / (double{1} * options.steps * options.tensors * options.ranks)};
}

}  // namespace hvdlite::negotiation_bench
