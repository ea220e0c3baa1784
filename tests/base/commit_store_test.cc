#include "base/commit_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace hvdlite::base {
namespace {

using ::testing::HasSubstr;

std::unique_ptr<CommitStore> StartStore() {
  return CommitStore::Start("127.0.0.1").value();
}

sockaddr_in Loopback(int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  return address;
}

int PortOf(const std::string& address) {
  return std::atoi(address.c_str() + address.find(':') + 1);
}

// A proxy between one client and the store that changes the client's bytes with
// `change`. If `change` returns false, it closes the connection.
class Proxy {
 public:
  using Change = std::function<bool(std::string& bytes)>;

  Proxy(const std::string& address, Change change)
      : listener_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in own = Loopback(0);
    socklen_t length = sizeof(own);
    bind(listener_.get(), reinterpret_cast<sockaddr*>(&own), length);
    listen(listener_.get(), 1);
    getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&own), &length);
    const size_t slash = address.find('/');
    address_ =
        absl::StrCat("127.0.0.1:", ntohs(own.sin_port), address.substr(slash));
    const int port = PortOf(address);
    thread_ = std::thread(
        [this, port, change = std::move(change)] { Forward(port, change); });
  }
  ~Proxy() { thread_.join(); }
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;

  const std::string& address() const { return address_; }

 private:
  void Forward(int port, const Change& change) {
    const Descriptor client(accept(listener_.get(), nullptr, nullptr));
    const Descriptor store(socket(AF_INET, SOCK_STREAM, 0));
    const sockaddr_in to = Loopback(port);
    ASSERT_EQ(connect(store.get(), reinterpret_cast<const sockaddr*>(&to),
                      sizeof(to)),
              0);
    std::thread back([&] {
      char buffer[4096];
      ssize_t bytes = 0;
      while ((bytes = recv(store.get(), buffer, sizeof(buffer), 0)) > 0) {
        (void)send(client.get(), buffer, static_cast<size_t>(bytes),
                   MSG_NOSIGNAL);
      }
      shutdown(client.get(), SHUT_RDWR);
    });
    char buffer[4096];
    ssize_t got = 0;
    while ((got = recv(client.get(), buffer, sizeof(buffer), 0)) > 0) {
      std::string bytes(buffer, static_cast<size_t>(got));
      const bool goes_on = change(bytes);
      (void)send(store.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (!goes_on) break;
    }
    shutdown(store.get(), SHUT_RDWR);
    shutdown(client.get(), SHUT_RDWR);
    back.join();
  }

  const Descriptor listener_;
  std::string address_;
  std::thread thread_;
};

TEST(CommitStoreTest, KeepsTheNewestCommitOfEachName) {
  const auto store = StartStore();
  const std::string large(size_t{40} << 20, 'x');
  ASSERT_TRUE(PutCommit(store->address(), "a", 1, "first").ok());
  ASSERT_TRUE(PutCommit(store->address(), "b", 7, "").ok());
  ASSERT_TRUE(PutCommit(store->address(), "a", 2, large).ok());
  const auto a = GetCommit(store->address(), "a");
  ASSERT_TRUE(a.ok()) << a.status();
  EXPECT_EQ(a->number, 2U);
  EXPECT_TRUE(a->bytes == large);
  EXPECT_EQ(GetCommit(store->address(), "b")->number, 7U);
  EXPECT_TRUE(absl::IsNotFound(GetCommit(store->address(), "c").status()));
}

TEST(CommitStoreTest, OlderCommitIsRefusedAndEqualNumberIsIgnored) {
  const auto store = StartStore();
  ASSERT_TRUE(PutCommit(store->address(), "a", 5, "five").ok());
  const absl::Status older = PutCommit(store->address(), "a", 4, "four");
  EXPECT_TRUE(absl::IsFailedPrecondition(older)) << older;
  EXPECT_THAT(older.message(), HasSubstr("already has commit 5"));
  EXPECT_TRUE(PutCommit(store->address(), "a", 5, "five again").ok());
  EXPECT_EQ(GetCommit(store->address(), "a")->bytes, "five");
}

TEST(CommitStoreTest, ClientThatDisconnectsMidwayChangesNothing) {
  const auto store = StartStore();
  ASSERT_TRUE(PutCommit(store->address(), "a", 1, "whole").ok());
  const std::string bytes(100'000, 'y');
  for (const size_t until : {0, 10, 64, 65, 70'000, 100'064}) {
    size_t left = until;
    Proxy proxy(store->address(), [left](std::string& piece) mutable {
      if (piece.size() < left) {
        left -= piece.size();
        return true;
      }
      piece.resize(left);
      return false;
    });
    const absl::Status status = PutCommit(proxy.address(), "a", 2, bytes);
    EXPECT_TRUE(absl::IsUnavailable(status)) << until << ": " << status;
    EXPECT_EQ(GetCommit(store->address(), "a")->bytes, "whole") << until;
  }
}

TEST(CommitStoreTest, CorruptedBytesAreRefused) {
  const auto store = StartStore();
  ASSERT_TRUE(PutCommit(store->address(), "a", 1, "whole").ok());
  Proxy proxy(store->address(), [](std::string& piece) {
    for (char& byte : piece) {
      if (byte == 'y') byte = 'z';
    }
    return true;
  });
  const absl::Status status = PutCommit(proxy.address(), "a", 2, "yyy");
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_EQ(GetCommit(store->address(), "a")->bytes, "whole");
}

TEST(CommitStoreTest, UnknownRequestChangesNothing) {
  const auto store = StartStore();
  ASSERT_TRUE(PutCommit(store->address(), "a", 1, "first").ok());
  const Proxy proxy(store->address(), [first = true](std::string& b) mutable {
    constexpr size_t kKindAt = 4;  // behind the magic number
    if (std::exchange(first, false)) b[kKindAt] = 9;
    return true;
  });
  const absl::Status put = PutCommit(proxy.address(), "a", 2, "second");
  EXPECT_TRUE(absl::IsInvalidArgument(put)) << put;
  EXPECT_EQ(GetCommit(store->address(), "a")->bytes, "first");
}

TEST(CommitStoreTest, WrongSecretCanNeitherReadNorWrite) {
  const auto store = StartStore();
  ASSERT_TRUE(PutCommit(store->address(), "a", 1, "mine").ok());
  std::string address = store->address();
  address.back() = address.back() == '0' ? '1' : '0';
  EXPECT_TRUE(absl::IsPermissionDenied(GetCommit(address, "a").status()));
  EXPECT_TRUE(absl::IsPermissionDenied(PutCommit(address, "a", 2, "theirs")));
  // More bytes than fit into the socket buffers when the store refuses.
  const std::string much(size_t{64} << 20, 't');
  const absl::Status put = PutCommit(address, "a", 2, much);
  EXPECT_TRUE(absl::IsPermissionDenied(put)) << put;
  EXPECT_EQ(GetCommit(store->address(), "a")->bytes, "mine");
}

TEST(CommitStoreTest, ServesManyClientsAtOnce) {
  const auto store = StartStore();
  std::vector<std::thread> clients;
  for (uint64_t i = 1; i <= 8; ++i) {
    clients.emplace_back([&, i] {
      for (uint64_t number = 1; number <= 20; ++number) {
        const std::string name = absl::StrCat("n", i);
        EXPECT_TRUE(
            PutCommit(store->address(), name, number, absl::StrCat(number))
                .ok());
        EXPECT_EQ(GetCommit(store->address(), name)->bytes,
                  absl::StrCat(number));
      }
    });
  }
  for (std::thread& client : clients) client.join();
}

TEST(CommitStoreTest, EndedStoreIsUnavailable) {
  auto store = StartStore();
  const std::string address = store->address();
  store.reset();
  const absl::Status status = PutCommit(address, "a", 1, "late");
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("the commit store at 127.0.0.1:"));
}

TEST(CommitStoreTest, EndsWhileAClientIsSilent) {
  auto store = StartStore();
  const Descriptor silent(socket(AF_INET, SOCK_STREAM, 0));
  const std::string address = store->address();
  const sockaddr_in to =
      Loopback(std::atoi(address.c_str() + address.find(':') + 1));
  ASSERT_EQ(
      connect(silent.get(), reinterpret_cast<const sockaddr*>(&to), sizeof(to)),
      0);
  // The store serves this client after it has accepted the silent one.
  ASSERT_TRUE(PutCommit(address, "a", 1, "x").ok());
  store.reset();
}

sem_t handled;

bool HandledWithin(absl::Duration time) {
  const timespec end = absl::ToTimespec(absl::Now() + time);
  while (sem_timedwait(&handled, &end) != 0) {
    if (errno != EINTR) return false;
  }
  return true;
}

// Signals arrive while a client waits for the connection: the listener's queue
// is full until they have been handled.
TEST(CommitStoreTest, ClientConnectsDespiteSignals) {
  const Descriptor listener(socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in own = Loopback(0);
  socklen_t length = sizeof(own);
  auto* const plain = reinterpret_cast<sockaddr*>(&own);
  ASSERT_EQ(bind(listener.get(), plain, length), 0);
  ASSERT_EQ(listen(listener.get(), 0), 0);
  ASSERT_EQ(getsockname(listener.get(), plain, &length), 0);
  const Descriptor first(socket(AF_INET, SOCK_STREAM, 0));
  ASSERT_EQ(connect(first.get(), plain, length), 0);

  sem_init(&handled, 0, 0);
  struct sigaction count = {};  // without SA_RESTART
  count.sa_handler = [](int) { sem_post(&handled); };
  struct sigaction before = {};
  sigaction(SIGUSR1, &count, &before);
  const std::string address = absl::StrCat("127.0.0.1:", ntohs(own.sin_port),
                                           "/", std::string(32, '0'));
  std::atomic<bool> ended = false;
  absl::Status status;
  std::thread client([&] {
    status = PutCommit(address, "a", 1, "x");
    ended = true;
    sem_post(&handled);
  });
  for (int signals = 0; signals < 100 && !ended; ++signals) {
    // Sends it again if it is not handled immediately: ThreadSanitizer delays a
    // handler that comes just before a system call until the call returns.
    do {
      pthread_kill(client.native_handle(), SIGUSR1);
    } while (!HandledWithin(absl::Milliseconds(20)));
  }
  // Makes room in the queue; the client gets no answer.
  for (int clients = 0; clients < 2 && !ended; ++clients) {
    const Descriptor accepted(accept(listener.get(), nullptr, nullptr));
    shutdown(accepted.get(), SHUT_WR);
    char buffer[4096];
    while (clients == 1 &&
           recv(accepted.get(), buffer, sizeof(buffer), 0) > 0) {
    }
  }
  client.join();
  sigaction(SIGUSR1, &before, nullptr);
  EXPECT_THAT(status.message(), HasSubstr("the connection ended")) << status;
}

// The store accepts again after it had no descriptor left for a while.
TEST(CommitStoreTest, SurvivesAShortageOfDescriptors) {
  const auto store = StartStore();
  const std::string& address = store->address();
  sockaddr_in own = Loopback(PortOf(address));
  const Descriptor client(socket(AF_INET, SOCK_STREAM, 0));
  const timeval patience = {.tv_sec = 0, .tv_usec = 100'000};
  setsockopt(client.get(), SOL_SOCKET, SO_RCVTIMEO, &patience,
             sizeof(patience));
  rlimit before;
  getrlimit(RLIMIT_NOFILE, &before);
  const rlimit few = {.rlim_cur = 256, .rlim_max = before.rlim_max};
  setrlimit(RLIMIT_NOFILE, &few);
  std::vector<Descriptor> taken;
  for (int copy = dup(client.get()); copy >= 0; copy = dup(client.get())) {
    taken.emplace_back(copy);
  }
  EXPECT_EQ(errno, EMFILE);
  EXPECT_EQ(
      connect(client.get(), reinterpret_cast<sockaddr*>(&own), sizeof(own)), 0);
  // The pending accept() of the store has usually reserved a descriptor for
  // this client. The store has none for the next client.
  shutdown(client.get(), SHUT_WR);
  char byte;
  while (recv(client.get(), &byte, 1, 0) > 0) {
  }
  taken.clear();
  setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_TRUE(PutCommit(address, "a", 1, "x").ok());
}

TEST(CommitStoreTest, InvalidAddressIsAnError) {
  for (const char* text : {"", "localhost", "localhost:1", ":1/x",
                           "localhost:x/00000000000000000000000000000000"}) {
    const absl::Status status = PutCommit(text, "a", 1, "x");
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << text << ": " << status;
  }
  EXPECT_TRUE(
      absl::IsInvalidArgument(CommitStore::Start("no such host").status()));
}

}  // namespace
}  // namespace hvdlite::base
