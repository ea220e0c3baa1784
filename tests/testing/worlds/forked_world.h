// ForkedWorld has ranks that are processes, without MPI.
#pragma once

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <numeric>
#include <utility>
#include <vector>

#include "tests/testing/fakes/fake_communicator.h"

namespace hvdlite::testing {

// Memory that the processes share: a barrier, space for gathered data, and a
// mailbox from each rank to each.
struct ForkedWorldMemory {
  static constexpr size_t kBytes = 1 << 20;
  static constexpr int kMaxRanks = 4;
  struct LetterBox {
    sem_t empty;
    sem_t full;
    std::byte letter[4096];
  };
  pthread_barrier_t barrier;
  std::byte bytes[kBytes];
  LetterBox boxes[kMaxRanks][kMaxRanks];
};

// Gathers, broadcasts and exchanges small data among few ranks. Other than that
// it supports only barriers.
class ForkedCommunicator final : public UnimplementedCommunicator {
 public:
  ForkedCommunicator(ForkedWorldMemory* memory, int rank, int size)
      : UnimplementedCommunicator(rank, size), memory_(memory) {}

  absl::Status Allgather(absl::Span<std::byte> buffer,
                         absl::Span<const size_t> bytes_of_rank) override {
    const size_t offset = std::accumulate(
        bytes_of_rank.begin(), bytes_of_rank.begin() + rank(), size_t{0});
    std::copy_n(buffer.data() + offset, bytes_of_rank[rank()],
                memory_->bytes + offset);
    pthread_barrier_wait(&memory_->barrier);
    std::copy_n(memory_->bytes, buffer.size(), buffer.data());
    pthread_barrier_wait(&memory_->barrier);
    return absl::OkStatus();
  }

  absl::Status Broadcast(absl::Span<std::byte> buffer, int root) override {
    if (rank() == root)
      std::copy_n(buffer.data(), buffer.size(), memory_->bytes);
    pthread_barrier_wait(&memory_->barrier);
    std::copy_n(memory_->bytes, buffer.size(), buffer.data());
    pthread_barrier_wait(&memory_->barrier);
    return absl::OkStatus();
  }

  absl::Status Exchange(int peer, absl::Span<const std::byte> send,
                        absl::Span<std::byte> receive) override {
    ForkedWorldMemory::LetterBox& to = memory_->boxes[rank()][peer];
    ForkedWorldMemory::LetterBox& from = memory_->boxes[peer][rank()];
    sem_wait(&to.empty);
    std::copy_n(send.data(), send.size(), to.letter);
    sem_post(&to.full);
    sem_wait(&from.full);
    std::copy_n(from.letter, receive.size(), receive.data());
    sem_post(&from.empty);
    return absl::OkStatus();
  }

  absl::Status Barrier() override {
    pthread_barrier_wait(&memory_->barrier);
    return absl::OkStatus();
  }

 private:
  ForkedWorldMemory* const memory_;
};

// Rank 0 is this process; the others are children, which run `body` and exit
// with its result. Make it before this process has other threads.
class ForkedWorld {
 public:
  using Body = std::function<int(ForkedCommunicator&)>;

  ForkedWorld(int size, const Body& body)
      : memory_(static_cast<ForkedWorldMemory*>(
            mmap(nullptr, sizeof(ForkedWorldMemory), PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_ANONYMOUS, -1, 0))),
        communicator_(memory_, 0, size) {
    pthread_barrierattr_t shared;
    pthread_barrierattr_init(&shared);
    pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&memory_->barrier, &shared, size);
    pthread_barrierattr_destroy(&shared);
    for (auto& row : memory_->boxes) {
      for (ForkedWorldMemory::LetterBox& box : row) {
        sem_init(&box.empty, /*pshared=*/1, 1);
        sem_init(&box.full, /*pshared=*/1, 0);
      }
    }
    for (int rank = 1; rank < size; ++rank) {
      const pid_t pid = fork();
      if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        ForkedCommunicator communicator(memory_, rank, size);
        std::_Exit(body(communicator));
      }
      if (pid < 0) std::abort();
      children_.push_back(pid);
    }
  }

  ~ForkedWorld() {
    for (size_t i = 0; i < children_.size(); ++i) {
      if (children_[i] != 0) Kill(static_cast<int>(i) + 1);
    }
    munmap(memory_, sizeof(ForkedWorldMemory));
  }

  ForkedCommunicator& communicator() { return communicator_; }

  // Kills a child immediately.
  void Kill(int rank) {
    kill(children_[rank - 1], SIGKILL);
    Wait(rank);
  }

  // Returns the exit status of a child, or -1 if it was killed.
  int Wait(int rank) {
    int status = 0;
    waitpid(std::exchange(children_[rank - 1], 0), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  ForkedWorldMemory* const memory_;
  ForkedCommunicator communicator_;
  std::vector<pid_t> children_;
};

}  // namespace hvdlite::testing
