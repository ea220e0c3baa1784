// Two ranks that are processes, without MPI.
#pragma once

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <functional>

#include "gtest/gtest.h"
#include "tests/testing/fakes/fake_communicator.h"

namespace hvdlite::testing {

// Connects two processes over a socket. It supports only small allgathers.
class SocketCommunicator final : public UnimplementedCommunicator {
 public:
  SocketCommunicator(int rank, int socket)
      : UnimplementedCommunicator(rank, 2), socket_(socket) {}
  ~SocketCommunicator() override { close(socket_); }

  absl::Status Allgather(absl::Span<std::byte> buffer,
                         absl::Span<const size_t> bytes_of_rank) override {
    const auto first = buffer.first(bytes_of_rank[0]);
    const auto second = buffer.subspan(bytes_of_rank[0]);
    const auto own = rank() == 0 ? first : second;
    const auto other = rank() == 0 ? second : first;
    // Sending or receiving nothing would report whether the other process
    // exists.
    const bool sent = own.empty() || write(socket_, own.data(), own.size()) ==
                                         static_cast<ssize_t>(own.size());
    const bool received =
        other.empty() ||
        recv(socket_, other.data(), other.size(), MSG_WAITALL) ==
            static_cast<ssize_t>(other.size());
    if (!sent || !received) {
      return absl::UnavailableError("the other process is gone");
    }
    return absl::OkStatus();
  }

 private:
  const int socket_;
};

// A forked process that is rank 1; this process is rank 0. The calling process
// must have no other threads.
class ForkedRank {
 public:
  // Rank 1 runs `body` and then ends, with status 0 unless the body ends it.
  // GoogleTest's expectations do nothing there: use Require.
  explicit ForkedRank(
      const std::function<void(collective::Communicator&)>& body) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) abort();
    process_ = fork();
    if (process_ == 0) {
      close(ends[0]);
      {
        SocketCommunicator communicator(1, ends[1]);
        body(communicator);
      }
      _exit(0);
    }
    close(ends[1]);
    communicator_ = std::make_unique<SocketCommunicator>(0, ends[0]);
  }
  ~ForkedRank() { waitpid(process_, nullptr, 0); }
  ForkedRank(const ForkedRank&) = delete;
  ForkedRank& operator=(const ForkedRank&) = delete;

  // For the body: ends rank 1 with status 1 unless `condition` holds.
  static void Require(bool condition, const char* what) {
    if (condition) return;
    std::fprintf(stderr, "rank 1: requirement failed: %s\n", what);
    _exit(1);
  }

  collective::Communicator& communicator() { return *communicator_; }
  pid_t process() const { return process_; }

  // Blocks until rank 1 has ended. Returns true if it succeeded.
  bool WaitForEnd() {
    siginfo_t end = {};
    waitid(P_PID, static_cast<id_t>(process_), &end, WEXITED | WNOWAIT);
    return end.si_code == CLD_EXITED && end.si_status == 0;
  }

 private:
  pid_t process_ = -1;
  std::unique_ptr<collective::Communicator> communicator_;
};

}  // namespace hvdlite::testing
