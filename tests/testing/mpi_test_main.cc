// main() of test programs that run under mpirun. MPI is initialised with
// MPI_THREAD_SERIALIZED before the tests and finalized after them. A failure on
// any rank fails the run on all ranks. A failed ASSERT ends all ranks
// immediately: the others would wait for ever for the rank that left the test.
#include <gtest/gtest.h>
#include <mpi.h>

#include <cstdio>
#include <string>

#include "collective/mpi/mpi_library.h"

namespace {

// Prints the failures of this rank.
class FailurePrinter : public ::testing::EmptyTestEventListener {
 public:
  FailurePrinter(int rank, int size) : rank_(rank), size_(size) {}

 private:
  // OnTestPartResult must not ask for this: GoogleTest's lock is held there.
  void OnTestStart(const ::testing::TestInfo& info) override {
    test_ = std::string(info.test_suite_name()) + "." + info.name();
  }

  void OnTestPartResult(const ::testing::TestPartResult& result) override {
    if (!result.failed()) return;
    std::fprintf(stderr, "[rank %d of %d] %s: %s:%d: %s\n", rank_, size_,
                 test_.c_str(),
                 result.file_name() != nullptr ? result.file_name() : "?",
                 result.line_number(), result.message());
    if (result.fatally_failed() && size_ > 1) {
      std::fflush(nullptr);
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
  }

  const int rank_;
  const int size_;
  std::string test_;
};

}  // namespace

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  int level = MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &level);
  int rank = 0;
  int size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (level < MPI_THREAD_SERIALIZED) {
    std::fprintf(stderr, "this MPI offers no MPI_THREAD_SERIALIZED\n");
    MPI_Abort(MPI_COMM_WORLD, 1);
  }

  auto& listeners = ::testing::UnitTest::GetInstance()->listeners();
  if (rank != 0) delete listeners.Release(listeners.default_result_printer());
  listeners.Append(new FailurePrinter(rank, size));

  int failed = RUN_ALL_TESTS();
  if (::testing::UnitTest::GetInstance()->test_to_run_count() == 0) failed = 1;
  MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  hvdlite::collective::FinalizeMpi();
  if (failed != 0 && rank == 0) {
    std::fprintf(stderr, "tests failed on at least one of %d ranks\n", size);
  }
  return failed;
}
