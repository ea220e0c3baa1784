// A process that a rank forks: every call of the public API is an error there,
// every destructor returns, and the rank itself is not affected.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hvdlite/hvdlite.h>
#include <sys/wait.h>
#include <torch/torch.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/torch_plugin/error_text.h"

namespace hvdlite {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kNothingThrown[] = "nothing was thrown";
// A process that runs longer counts as hanging.
constexpr unsigned kDeadlineSeconds = 60;

struct Call {
  const char* name;
  std::function<void()> call;
};

// Runs `call` in a process that is forked from this one and ends with `end`.
// Returns the text of the c10::Error, or how the process ended.
std::string InForkedProcess(const std::function<void()>& call,
                            void (*end)(int) = _exit) {
  int ends[2] = {-1, -1};
  if (pipe(ends) != 0) return "no pipe";
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    alarm(kDeadlineSeconds);
    const std::string text = ErrorText(call);
    (void)!write(ends[1], text.data(), text.size());
    end(0);
  }
  close(ends[1]);
  std::string text;
  char buffer[4096];
  ssize_t bytes = 0;
  while ((bytes = read(ends[0], buffer, sizeof(buffer))) > 0) {
    text.append(buffer, static_cast<size_t>(bytes));
  }
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) {
    return WTERMSIG(status) == SIGALRM
               ? "the process hung"
               : "the process ended by signal " +
                     std::to_string(WTERMSIG(status));
  }
  return WEXITSTATUS(status) == 0
             ? text
             : "the process ended with " + std::to_string(WEXITSTATUS(status));
}

std::string WasForked() {
  return "was forked from rank " + std::to_string(rank()) + " (process " +
         std::to_string(getpid()) + ")";
}

void ExpectWorldWorks() {
  const at::Tensor sum =
      allreduce(at::ones({1}), AllreduceOptions().op(ReduceOp::Sum));
  EXPECT_EQ(sum.item<int>(), size());
}

std::string FileOfThisRank(const std::string& name) {
  return (std::filesystem::temp_directory_path() /
          ("forked_process_test." + std::to_string(getpid()) + "." + name))
      .string();
}

DistributedOptimizer OptimizerOf(const torch::nn::Linear& model) {
  return DistributedOptimizer(
      std::make_unique<torch::optim::SGD>(model->parameters(), 0.1),
      model->named_parameters());
}

void Backward(torch::nn::Linear& model) {
  model(torch::ones({1, 2})).sum().backward();
}

TEST(ForkedProcessTest, EveryCallIsAnErrorAndTheWorldStillWorks) {
  torch::nn::Linear model(2, 1);
  DistributedOptimizer optimizer = OptimizerOf(model);
  DistributedSampler sampler(/*dataset_size=*/8, /*batch_size=*/1, /*seed=*/1);
  SyncBatchNorm norm(2);
  elastic::State state;
  state.model(*model).optimizer(optimizer).sampler(sampler);
  const at::Tensor tensor = at::ones({4});
  const ProcessSet set = add_process_set({0});
  const Work work = allreduce_async(tensor);
  const GroupWork group = grouped_allreduce_async({tensor});
  const AlltoallWork exchanged = alltoall_async(at::ones({size()}));

  const Call calls[] = {
      {"init", [] { init(); }},
      {"init of one", [] {
         Config config;
         config.backend = "single";
         init(config);
       }},
      {"shutdown", [] { shutdown(); }},
      {"rank", [] { rank(); }},
      {"size", [] { size(); }},
      {"local_rank", [] { local_rank(); }},
      {"local_size", [] { local_size(); }},
      {"cross_rank", [] { cross_rank(); }},
      {"cross_size", [] { cross_size(); }},
      {"is_homogeneous", [] { is_homogeneous(); }},
      {"allreduce", [&] { allreduce(tensor); }},
      {"allreduce_", [&] { allreduce_(tensor); }},
      {"allreduce_async", [&] { (void)allreduce_async(tensor); }},
      {"grouped_allreduce", [&] { grouped_allreduce({tensor}); }},
      {"allgather", [&] { allgather(tensor); }},
      {"grouped_allgather", [&] { grouped_allgather({tensor}); }},
      {"broadcast", [&] { broadcast(tensor, 0); }},
      {"broadcast_", [&] { broadcast_(tensor, 0); }},
      {"alltoall", [&] { alltoall(tensor); }},
      {"reducescatter", [&] { reducescatter(tensor); }},
      {"sparse_allreduce", [&] { sparse_allreduce(tensor.to_sparse()); }},
      {"barrier", [] { barrier(); }},
      {"join", [] { join(); }},
      {"broadcast_object", [] { broadcast_object("", 0); }},
      {"allgather_object", [] { allgather_object(""); }},
      {"broadcast_parameters", [&] { broadcast_parameters(model, 0); }},
      {"broadcast_optimizer_state",
       [&] { broadcast_optimizer_state(optimizer, 0); }},
      {"add_process_set", [] { add_process_set({0}); }},
      {"remove_process_set", [&] { remove_process_set(set); }},
      {"ProcessSet::rank", [&] { set.rank(); }},
      {"ProcessSet::size", [&] { set.size(); }},
      {"ProcessSet::included", [&] { set.included(); }},
      {"ProcessSet::ranks", [&] { set.ranks(); }},
      {"start_timeline", [] { start_timeline("/nonexistent/trace.json"); }},
      {"stop_timeline", [] { stop_timeline(); }},
      {"write_run_report",
       [] { write_run_report("/nonexistent/r", {.items_per_second = 1}); }},
      {"Work::wait", [&] { work.wait(); }},
      {"Work::wait_for", [&] { work.wait_for(std::chrono::milliseconds(1)); }},
      {"Work::is_completed", [&] { work.is_completed(); }},
      {"GroupWork::wait", [&] { group.wait(); }},
      {"GroupWork::is_completed", [&] { group.is_completed(); }},
      {"AlltoallWork::wait", [&] { exchanged.wait(); }},
      {"DistributedOptimizer", [&] { OptimizerOf(model); }},
      {"backward", [&] { Backward(model); }},
      {"step", [&] { optimizer.step(); }},
      {"synchronize", [&] { optimizer.synchronize(); }},
      {"zero_grad", [&] { optimizer.zero_grad(); }},
      {"skipped_steps", [&] { optimizer.skipped_steps(); }},
      {"inner", [&] { optimizer.inner(); }},
      {"SyncBatchNorm", [&] { norm(torch::ones({2, 2})); }},
      {"DistributedSampler::next", [&] { sampler.next(); }},
      {"DistributedSampler::samples_per_step",
       [&] { sampler.samples_per_step(); }},
      {"elastic::State::commit", [&] { state.commit(); }},
      {"elastic::State::agree_to_stop", [&] { state.agree_to_stop(); }},
      {"elastic::State::can_restore", [&] { state.can_restore(); }},
      {"elastic::State::restore", [&] { state.restore(); }},
      {"elastic::State::sync", [&] { state.sync(); }},
      {"elastic::State::flush", [&] { state.flush(); }},
      {"elastic::replace_world", [] { elastic::replace_world(); }},
      {"elastic::replaced_worlds", [] { elastic::replaced_worlds(); }},
  };
  for (const Call& call : calls) {
    EXPECT_THAT(InForkedProcess(call.call),
                AllOf(HasSubstr(WasForked()), HasSubstr("posix_spawn")))
        << call.name;
  }
  EXPECT_EQ(InForkedProcess([&] {
              if (is_initialized()) throw std::runtime_error("");
              if (elastic::run(state, [] {}) != 1) throw std::runtime_error("");
              const TraceSpan span("IGNORED");
            }),
            kNothingThrown);

  ExpectWorldWorks();
  (void)work.wait();
  (void)group.wait();
  (void)exchanged.wait();
  Backward(model);
  optimizer.step();
  remove_process_set(set);
}

TEST(ForkedProcessTest, EveryDestructorReturnsAndTheWorldStillWorks) {
  torch::nn::Linear model(2, 1);
  auto optimizer = std::make_unique<DistributedOptimizer>(OptimizerOf(model));
  torch::nn::Linear other_model(2, 1);
  DistributedOptimizer other = OptimizerOf(other_model);
  const std::string trace = broadcast_object(FileOfThisRank("json"), 0);
  start_timeline(trace);
  auto span = std::make_unique<TraceSpan>("SPAN");
  auto work = std::make_unique<Work>(allreduce_async(at::ones({4})));
  auto group =
      std::make_unique<GroupWork>(grouped_allreduce_async({at::ones({4})}));
  auto exchanged =
      std::make_unique<AlltoallWork>(alltoall_async(at::ones({size()})));
  auto set = std::make_unique<ProcessSet>(add_process_set({0}));
  // An operation in flight.
  Backward(model);
  Backward(other_model);
  // So large that threads are still writing it.
  const at::Tensor large = at::ones({8 << 20});
  at::Tensor value = large.clone();
  auto state = std::make_unique<elastic::State>(
      elastic::StateOptions().path(FileOfThisRank("elastic.pt")));
  state->value("large", value);
  state->commit();
  state->agree_to_stop();
  auto writer = std::make_unique<CheckpointWriter>(FileOfThisRank("pt"));
  writer->save([&](torch::serialize::OutputArchive& archive) {
    archive.write("large", large);
  });

  const Call calls[] = {
      {"CheckpointWriter", [&] { writer.reset(); }},
      {"elastic::State", [&] { state.reset(); }},
      {"Work", [&] { work.reset(); }},
      {"GroupWork", [&] { group.reset(); }},
      {"AlltoallWork", [&] { exchanged.reset(); }},
      {"ProcessSet", [&] { set.reset(); }},
      {"TraceSpan", [&] { span.reset(); }},
      {"DistributedOptimizer", [&] { optimizer.reset(); }},
      {"DistributedOptimizer that an exception unwinds",
       [&] {
         try {
           const std::unique_ptr<DistributedOptimizer> unwound =
               std::move(optimizer);
           throw std::runtime_error("");
         } catch (const std::runtime_error&) {
         }
       }},
      {"DistributedOptimizer that another one is assigned to",
       [&] { *optimizer = std::move(other); }},
  };
  for (const Call& call : calls) {
    EXPECT_EQ(InForkedProcess(call.call), kNothingThrown) << call.name;
  }

  ExpectWorldWorks();
  (void)work->wait();
  (void)group->wait();
  (void)exchanged->wait();
  optimizer->step();
  other.step();
  span.reset();
  stop_timeline();
  EXPECT_TRUE(writer->wait());
  state->flush();
  remove_process_set(*set);
  barrier();
  EXPECT_TRUE(std::filesystem::exists(trace));
  barrier();
  writer.reset();
  state.reset();
  for (const char* name : {"pt", "elastic.pt", "json"}) {
    std::filesystem::remove(FileOfThisRank(name));
  }
}

// This is destroyed at exit.
std::unique_ptr<DistributedOptimizer> static_optimizer;

TEST(ForkedProcessTest, ExitDoesNotAffectTheRank) {
  torch::nn::Linear model(2, 1);
  static_optimizer =
      std::make_unique<DistributedOptimizer>(OptimizerOf(model));
  Backward(model);
  EXPECT_EQ(InForkedProcess([] {}, std::exit), kNothingThrown);
  EXPECT_EQ(InForkedProcess([] {}, std::quick_exit), kNothingThrown);
  static_optimizer->step();
  static_optimizer = nullptr;
  ExpectWorldWorks();
}

// A lock that another thread holds at the fork stays locked in the new process.
TEST(ForkedProcessTest, LocksOfOtherThreadsAreNotTaken) {
  torch::nn::Linear model(2, 1);
  DistributedOptimizer optimizer = OptimizerOf(model);
  std::atomic<bool> over = false;
  std::thread asks([&] {
    while (!over) {
      (void)rank();
      (void)global_process_set().ranks();
      (void)optimizer.skipped_steps();
      (void)elastic::replaced_worlds();
      const TraceSpan span("IGNORED");
    }
  });
  for (int i = 0; i < 20; ++i) {
    EXPECT_THAT(InForkedProcess([&] {
                  (void)is_initialized();
                  const TraceSpan span("IGNORED");
                  rank();
                }),
                HasSubstr(WasForked()));
    EXPECT_THAT(InForkedProcess([] { shutdown(); }), HasSubstr(WasForked()));
    EXPECT_THAT(InForkedProcess([] { elastic::replaced_worlds(); }),
                HasSubstr(WasForked()));
  }
  over = true;
  asks.join();
  ExpectWorldWorks();
}

}  // namespace
}  // namespace hvdlite
