// Start and end of the world. Each test is a job of its own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hvdlite/hvdlite.h>
#include <hvdlite/mpi.h>
#include <mpi.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <torch/torch.h>
#include <unistd.h>

#include <functional>
#include <stdexcept>

#include "tests/torch_plugin/error_text.h"

namespace hvdlite {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

at::Tensor SumOfOnes() {
  return allreduce(at::ones({1}), AllreduceOptions().op(ReduceOp::Sum));
}

std::string WorldBrokenText(const std::function<void()>& operation) {
  try {
    operation();
  } catch (const WorldBroken& error) {
    return error.what();
  }
  return "the world is not broken";
}

// Fails in one or the other call, depending on when the end of the world is
// seen.
void SubmitAndWait() { allreduce_async(at::ones({1})).wait(); }

TEST(LifeCycleTest, NothingWorksBeforeInit) {
  EXPECT_FALSE(is_initialized());
  EXPECT_THAT(build_info(),
              AllOf(HasSubstr("hvdlite: "), HasSubstr("\nLibTorch: "),
                    HasSubstr("\nMPI: "), HasSubstr("\nkernels: ")));
  EXPECT_THAT(ErrorText([] { rank(); }), HasSubstr("call hvdlite::init()"));
  EXPECT_THAT(ErrorText([] { SumOfOnes(); }),
              HasSubstr("call hvdlite::init()"));
  const at::Tensor tensor = at::ones({1});
  const std::function<void()> operations[] = {
      [&] { allreduce_(tensor); },
      [&] { (void)allreduce_async(tensor); },
      [&] { grouped_allreduce({tensor}); },
      [&] { grouped_allreduce({}); },
      [&] { allgather(tensor); },
      [&] { grouped_allgather({}); },
      [&] { broadcast(tensor, 0); },
      [&] { alltoall(tensor); },
      [&] { reducescatter(tensor); },
      [&] { grouped_reducescatter({}); },
      [&] { sparse_allreduce(tensor.to_sparse()); },
      [] { barrier(); },
      [] { join(); },
      [] { broadcast_object("", 0); },
      [] { allgather_object(""); },
      [] { add_process_set({0}); },
      [] { remove_process_set(ProcessSet()); },
      [] { ProcessSet().size(); },
  };
  for (const auto& operation : operations) {
    EXPECT_THAT(ErrorText(operation), HasSubstr("call hvdlite::init()"));
  }
  const TraceSpan span("IGNORED");
  shutdown();
}

TEST(LifeCycleTest, ApplicationOwnsMpi) {
  int provided = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided);
  ProcessSet set;
  for (int round = 0; round < 2; ++round) {
    init();
    EXPECT_EQ(SumOfOnes().item<int>(), size());
    if (round == 1) {
      EXPECT_THAT(ErrorText([&] { barrier(set); }),
                  HasSubstr("before the last hvdlite::init()"));
      EXPECT_THAT(ErrorText([&] { remove_process_set(set); }),
                  HasSubstr("before the last hvdlite::init()"));
    }
    set = add_process_set({0});
    shutdown();
    EXPECT_FALSE(is_initialized());
  }
  int finalized = 0;
  MPI_Finalized(&finalized);
  EXPECT_EQ(finalized, 0);
  MPI_Finalize();
}

// No rank calls shutdown(), and at exit it is too late for that.
TEST(LifeCycleTest, FinalizingMpiEndsTheWorld) {
  int provided = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided);
  init();
  shutdown();
  init();
  EXPECT_EQ(SumOfOnes().item<int>(), size());
  MPI_Finalize();
  EXPECT_FALSE(is_initialized());
  EXPECT_THAT(ErrorText([] { init(); }), HasSubstr("MPI has been finalized"));
}

TEST(LifeCycleTest, FinalizingMpiThatHvdliteInitialisedEndsTheWorld) {
  init();
  EXPECT_EQ(SumOfOnes().item<int>(), size());
  MPI_Finalize();
  EXPECT_FALSE(is_initialized());
}

TEST(LifeCycleTest, FinalizingMpiOnOneRankEndsTheOthersWaits) {
  int provided = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided);
  init();
  SumOfOnes();
  if (rank() != size() - 1) {
    EXPECT_THAT(WorldBrokenText(SubmitAndWait),
                AllOf(HasSubstr("rank " + std::to_string(size() - 1)),
                      HasSubstr("MPI_Finalize")));
    if (rank() == 0) shutdown();
  }
  MPI_Finalize();
  EXPECT_FALSE(is_initialized());
}

// The last process does not use hvdlite. The others form two worlds, during
// which MPI still works, and then one world.
TEST(LifeCycleTest, DisjointCommunicatorsAreSeparateWorlds) {
  int provided = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided);
  int process = 0;
  int processes = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &process);
  MPI_Comm_size(MPI_COMM_WORLD, &processes);
  const bool trains = process != processes - 1;
  const int world = process % 2;
  MPI_Comm trainers = MPI_COMM_NULL;
  // The ranks are in the opposite order, so that they get other numbers.
  MPI_Comm_split(MPI_COMM_WORLD, trains ? world : MPI_UNDEFINED, -process,
                 &trainers);
  for (int life = 0; trains && life < 2; ++life) {
    init(trainers);
    int rank_there = 0;
    MPI_Comm_rank(trainers, &rank_there);
    EXPECT_EQ(rank(), rank_there);
    EXPECT_EQ(size(), (processes - world) / 2);
    EXPECT_EQ(SumOfOnes().item<int>(), size());
    EXPECT_EQ(broadcast(at::full({1}, process), 0).item<int>(),
              world + 2 * (size() - 1));
    // Messages on the program's communicator do not mix with hvdlite's.
    int ranks = 1;
    MPI_Allreduce(MPI_IN_PLACE, &ranks, 1, MPI_INT, MPI_SUM, trainers);
    EXPECT_EQ(ranks, size());
    shutdown();
  }
  if (trains) MPI_Comm_free(&trainers);
  init();
  EXPECT_EQ(rank(), process);
  EXPECT_EQ(SumOfOnes().item<int>(), processes);
  shutdown();
  MPI_Finalize();
}

TEST(LifeCycleTest, InvalidCommunicatorsAreRejected) {
  EXPECT_THAT(ErrorText([] { init(MPI_COMM_SELF); }),
              HasSubstr("called before MPI_Init_thread"));
  int provided = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided);
  EXPECT_THAT(ErrorText([] { init(MPI_COMM_NULL); }),
              HasSubstr("MPI_COMM_NULL"));
  // A world of one rank is allowed in a job of several ranks.
  init(MPI_COMM_SELF);
  EXPECT_EQ(size(), 1);
  EXPECT_THAT(ErrorText([] { init(MPI_COMM_SELF); }),
              HasSubstr("called twice"));
  MPI_Finalize();
  EXPECT_FALSE(is_initialized());
  EXPECT_THAT(ErrorText([] { init(MPI_COMM_SELF); }),
              HasSubstr("called before MPI_Init_thread"));
}

// UCX's handler of crashes would allocate memory, and would hang if malloc()
// itself has crashed.
TEST(LifeCycleTest, CrashesEndTheProcess) {
  init();
  for (const int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE}) {
    struct sigaction action {};
    ASSERT_EQ(sigaction(signal, nullptr, &action), 0);
    EXPECT_EQ(action.sa_handler, SIG_DFL) << "signal " << signal;
  }
  shutdown();
}

TEST(LifeCycleTest, ThreadLevelThatIsTooLowIsRefused) {
  int provided = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SINGLE, &provided);
  EXPECT_THAT(ErrorText([] { init(); }), HasSubstr("SERIALIZED"));
  MPI_Finalize();
}

TEST(LifeCycleTest, SecondInitAfterFinalizingIsRefused) {
  init();
  shutdown();
  EXPECT_THAT(ErrorText([] { init(); }), HasSubstr("MPI"));
}

TEST(LifeCycleTest, WorkOutlivesShutdown) {
  init();
  const Work never = allreduce_async(
      at::ones({3}), AllreduceOptions().name("rank" + std::to_string(rank())));
  // When this one is done, all ranks have submitted the other one, too.
  const Work work = allreduce_async(at::ones({3}));
  work.wait();
  const bool alone = size() == 1;
  shutdown();
  EXPECT_EQ(work.wait()[0].item<int>(), 1);
  if (!alone) {
    EXPECT_THAT(WorldBrokenText([&] { never.wait(); }), HasSubstr("shutdown"));
  }
  for (const std::string& text :
       {ErrorText([] { allreduce(at::ones({1})); }),
        ErrorText([] { (void)allgather_async(at::ones({1})); }),
        ErrorText([] { barrier(); }), ErrorText([] { join(); }),
        ErrorText([] { add_process_set({0}); })}) {
    EXPECT_THAT(text, HasSubstr("call hvdlite::init() first"));
  }
}

// No rank calls shutdown(), and the last rank does not submit the operation.
TEST(LifeCycleTest, ExitWithoutShutdownEndsTheOthersWaits) {
  init();
  SumOfOnes();
  if (rank() == size() - 1) return;
  EXPECT_THAT(WorldBrokenText(SubmitAndWait),
              AllOf(HasSubstr("rank " + std::to_string(size() - 1)),
                    HasSubstr("exited without calling hvdlite::shutdown()")));
}

TEST(LifeCycleTest, ExceptionOnOneRankEndsTheOthersWaits) {
  init();
  torch::nn::Linear model(2, 2);
  const auto train = [&] {
    DistributedOptimizer optimizer(
        std::make_unique<torch::optim::SGD>(model->parameters(), 0.1),
        model->named_parameters());
    model->forward(at::ones({1, 2})).sum().backward();
    if (rank() == size() - 1) throw std::runtime_error("no more data");
    optimizer.step();
    optimizer.zero_grad();
    model->forward(at::ones({1, 2})).sum().backward();
    optimizer.step();
  };
  if (rank() == size() - 1) {
    EXPECT_THROW(train(), std::runtime_error);
  } else {
    EXPECT_THROW(train(), WorldBroken);
    EXPECT_THROW(SumOfOnes(), WorldBroken);
  }
  shutdown();
}

TEST(LifeCycleTest, DifferentConfigurationsAreRefusedOnEveryRank) {
  int provided = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided);
  int mpi_rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &mpi_rank);
  Config config = Config::from_env();
  if (mpi_rank == 1) config.chunk_bytes = 4096;
  EXPECT_THAT(ErrorText([&] { init(config); }),
              AllOf(HasSubstr("chunk_bytes"), HasSubstr("rank 1")));
  config.chunk_bytes = 8192;
  init(config);
  EXPECT_EQ(SumOfOnes().item<int>(), size());
  shutdown();
  MPI_Finalize();
}

TEST(LifeCycleTest, TimelineThatCannotBeWrittenIsAnErrorOfTheArgument) {
  int provided = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided);
  Config config = Config::from_env();
  config.timeline = "/nonexistent/directory/trace.json";
  try {
    init(config);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const WorldBroken& error) {
    ADD_FAILURE() << "the world is broken: " << error.what();
  } catch (const c10::Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("/nonexistent/directory"));
  }
  EXPECT_FALSE(is_initialized());
  config.timeline = "";
  init(config);
  EXPECT_EQ(SumOfOnes().item<int>(), size());
  shutdown();
  MPI_Finalize();
}

// Run with OMPI_COMM_WORLD_SIZE=4 in one process without a launcher.
TEST(LifeCycleTest, FewerRanksThanTheLauncherStartedIsAnError) {
  EXPECT_THAT(ErrorText([] { init(); }),
              AllOf(HasSubstr("OMPI_COMM_WORLD_SIZE=4"), HasSubstr("mpirun")));
}

// Run with HVDLITE_BACKEND=single.
TEST(LifeCycleTest, ProcessForkedWithoutAWorldCanInit) {
  const auto works_in_forked_process = [] {
    const pid_t child = fork();
    if (child == 0) {
      alarm(30);
      init();
      const bool works = SumOfOnes().item<int>() == 1;
      shutdown();
      _exit(works ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
  };
  EXPECT_TRUE(works_in_forked_process());
  init();
  shutdown();
  EXPECT_TRUE(works_in_forked_process());
}

// Run with HVDLITE_BACKEND=single.
TEST(LifeCycleTest, SingleBackendCanBeInitialisedAgain) {
  for (int round = 0; round < 2; ++round) {
    init();
    EXPECT_EQ(size(), 1);
    EXPECT_EQ(SumOfOnes().item<int>(), 1);
    // The test waits only by asking whether it is done.
    const Work work = allreduce_async(at::ones({1}));
    while (!work.is_completed()) sched_yield();
    shutdown();
  }
  int initialized = 0;
  MPI_Initialized(&initialized);
  EXPECT_EQ(initialized, 0);
}

}  // namespace
}  // namespace hvdlite
