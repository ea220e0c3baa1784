// A client sends arbitrary bytes to a commit store: with the job's secret, like
// a broken rank, or without, like a stranger. The store must continue to serve,
// and a stranger must not change its content.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "base/commit_store.h"
#include "base/descriptor.h"
#include "tests/fuzz/fuzz_input.h"

namespace hvdlite::fuzz {
namespace {

// The parts of "127.0.0.1:PORT:SECRET".
struct Address {
  uint16_t port = 0;
  std::string secret;
};

Address Take(const std::string& address) {
  const size_t colon = address.find(':');
  FUZZ_CHECK(colon != address.npos);
  size_t end = 0;
  const int port = std::stoi(address.substr(colon + 1), &end);
  return {static_cast<uint16_t>(port), address.substr(colon + 1 + end + 1)};
}

void Talk(uint16_t port, const std::string& bytes) {
  const base::Descriptor connection(
      socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(connection.get(), reinterpret_cast<sockaddr*>(&address),
              sizeof address) != 0) {
    return;
  }
  (void)send(connection.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  shutdown(connection.get(), SHUT_WR);
  char answer[4096];
  while (recv(connection.get(), answer, sizeof answer, 0) > 0) {
  }
}

base::StoredCommit Kept(const std::string& address) {
  absl::StatusOr<base::StoredCommit> kept = base::GetCommit(address, "kept");
  if (!kept.ok())
    std::fprintf(stderr, "%s\n", kept.status().ToString().c_str());
  FUZZ_CHECK(kept.ok());
  return *std::move(kept);
}

void Run(FuzzInput input) {
  static const auto* const store =
      base::CommitStore::Start("127.0.0.1").value().release();
  static const Address address = Take(store->address());
  static const bool put =
      base::PutCommit(store->address(), "kept", 7, "content").ok();
  FUZZ_CHECK(put);
  const bool knows_secret = input.Bool();
  std::string bytes(input.Rest());
  constexpr size_t kSecretAt = 8;  // after the magic number and the kind
  if (knows_secret && bytes.size() >= kSecretAt + address.secret.size()) {
    bytes.replace(kSecretAt, address.secret.size(), address.secret);
  }
  const base::StoredCommit before = Kept(store->address());
  Talk(address.port, bytes);
  const base::StoredCommit after = Kept(store->address());
  FUZZ_CHECK(after.number >= before.number);
  // A stranger changes nothing.
  FUZZ_CHECK(knows_secret || after.bytes == before.bytes);
}

}  // namespace
}  // namespace hvdlite::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  hvdlite::fuzz::Run(hvdlite::fuzz::FuzzInput(data, size));
  return 0;
}
