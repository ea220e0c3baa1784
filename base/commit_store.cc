#include "base/commit_store.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <iterator>
#include <new>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/contain_exceptions.h"
#include "base/status_macros.h"

namespace hvdlite::base {
namespace {

constexpr size_t kSecretBytes = 32;  // as hexadecimal digits
constexpr uint32_t kMagic = 0x31436d43;
constexpr uint32_t kMaxNameBytes = 4096;
constexpr int kTimeoutSeconds = 30;
// Memory grows with the bytes received, not with the announced size.
constexpr size_t kStepBytes = size_t{16} << 20;

enum Kind : uint32_t { kPut = 1, kGet = 2 };

// Requests and answers have the same form: this header, the name, the content.
// Integers are little-endian, as on x86 and arm64.
struct Header {
  uint32_t magic = kMagic;
  uint32_t kind = 0;  // in an answer: the status code
  char secret[kSecretBytes] = {};
  uint64_t number = 0;
  uint64_t content_bytes = 0;
  uint32_t name_bytes = 0;
  uint32_t checksum = 0;  // CRC-32 of name and content
};
static_assert(sizeof(Header) == 64);

struct Message {
  Header header;
  std::string name;
  std::string content;
};

uint32_t ChecksumOf(absl::string_view name, absl::string_view content) {
  const auto add = [](uLong sum, absl::string_view text) {
    return crc32_z(sum, reinterpret_cast<const Bytef*>(text.data()),
                   text.size());
  };
  return static_cast<uint32_t>(add(add(0, name), content));
}

absl::Status Broken(const char* doing) {
  const bool late = errno == EAGAIN || errno == EWOULDBLOCK;
  return absl::UnavailableError(
      late ? absl::StrCat(doing, ": timed out after ", kTimeoutSeconds, " s")
           : absl::StrCat(doing, ": ", std::strerror(errno)));
}

absl::Status SendAll(int socket, absl::string_view data) {
  while (!data.empty()) {
    const ssize_t sent = send(socket, data.data(), data.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return Broken("send");
    data.remove_prefix(static_cast<size_t>(sent));
  }
  return absl::OkStatus();
}

absl::Status ReceiveInto(int socket, char* data, size_t bytes) {
  while (bytes > 0) {
    const ssize_t received = recv(socket, data, bytes, 0);
    if (received < 0 && errno == EINTR) continue;
    if (received < 0) return Broken("receive");
    if (received == 0) return absl::UnavailableError("the connection ended");
    data += received;
    bytes -= static_cast<size_t>(received);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReceiveText(int socket, uint64_t bytes) {
  std::string text;
  try {
    while (text.size() < bytes) {
      const size_t begin = text.size();
      text.resize(begin + std::min<uint64_t>(kStepBytes, bytes - begin));
      HVDLITE_RETURN_IF_ERROR(
          ReceiveInto(socket, text.data() + begin, text.size() - begin));
    }
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory for ", bytes, " bytes"));
  } catch (const std::length_error&) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory for ", bytes, " bytes"));
  }
  return text;
}

absl::Status Send(int socket, Header header, absl::string_view name,
                  absl::string_view content) {
  header.name_bytes = static_cast<uint32_t>(name.size());
  header.content_bytes = content.size();
  header.checksum = ChecksumOf(name, content);
  HVDLITE_RETURN_IF_ERROR(SendAll(
      socket, {reinterpret_cast<const char*>(&header), sizeof(header)}));
  HVDLITE_RETURN_IF_ERROR(SendAll(socket, name));
  return SendAll(socket, content);
}

absl::Status RequireSecret(const Header& header, absl::string_view secret) {
  const absl::string_view given(header.secret, kSecretBytes);
  if (header.magic == kMagic && given == secret) return absl::OkStatus();
  return absl::PermissionDeniedError("it belongs to another job");
}

// `accept` checks the header before the rest is received.
template <typename Accept>
absl::StatusOr<Message> Receive(int socket, const Accept& accept) {
  Message message;
  HVDLITE_RETURN_IF_ERROR(ReceiveInto(
      socket, reinterpret_cast<char*>(&message.header), sizeof(Header)));
  HVDLITE_RETURN_IF_ERROR(accept(message.header));
  if (message.header.name_bytes > kMaxNameBytes) {
    return absl::InvalidArgumentError("the name is too long");
  }
  HVDLITE_ASSIGN_OR_RETURN(message.name,
                           ReceiveText(socket, message.header.name_bytes));
  HVDLITE_ASSIGN_OR_RETURN(message.content,
                           ReceiveText(socket, message.header.content_bytes));
  if (ChecksumOf(message.name, message.content) != message.header.checksum) {
    return absl::DataLossError(
        "bytes changed in transit: the checksum does not match");
  }
  return message;
}

void SetTimeouts(int socket) {
  const timeval timeout = {.tv_sec = kTimeoutSeconds, .tv_usec = 0};
  setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
  setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
  const int on = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

absl::StatusOr<Addresses> Resolve(const std::string& host,
                                  const std::string& port) {
  const addrinfo hints = {.ai_flags = 0,
                          .ai_family = AF_UNSPEC,
                          .ai_socktype = SOCK_STREAM,
                          .ai_protocol = 0,
                          .ai_addrlen = 0,
                          .ai_addr = nullptr,
                          .ai_canonname = nullptr,
                          .ai_next = nullptr};
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), port.c_str(), &hints, &found);
  if (error != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", host, "': ", gai_strerror(error)));
  }
  return Addresses(found, &freeaddrinfo);
}

bool IsLoopback(const sockaddr& address) {
  if (address.sa_family == AF_INET) {
    const auto& ip = reinterpret_cast<const sockaddr_in&>(address);
    return (ntohl(ip.sin_addr.s_addr) >> 24) == 127;
  }
  const auto& ip = reinterpret_cast<const sockaddr_in6&>(address);
  return IN6_IS_ADDR_LOOPBACK(&ip.sin6_addr) != 0;
}

// Listens at a free port. If `own` is a loopback address, it listens there
// only; otherwise at all addresses of the same family.
absl::StatusOr<std::pair<Descriptor, int>> Listen(const addrinfo& own) {
  sockaddr_storage address = {};
  std::memcpy(&address, own.ai_addr, own.ai_addrlen);
  if (!IsLoopback(*own.ai_addr)) {
    address = {};
    address.ss_family = static_cast<sa_family_t>(own.ai_family);
  }
  auto* const plain = reinterpret_cast<sockaddr*>(&address);
  Descriptor listener(socket(own.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  socklen_t length = own.ai_addrlen;
  if (!listener.valid() || bind(listener.get(), plain, length) != 0 ||
      listen(listener.get(), 64) != 0 ||
      getsockname(listener.get(), plain, &length) != 0) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot listen at any port: ", std::strerror(errno)));
  }
  const uint16_t port =
      own.ai_family == AF_INET
          ? reinterpret_cast<const sockaddr_in&>(address).sin_port
          : reinterpret_cast<const sockaddr_in6&>(address).sin6_port;
  return std::pair(std::move(listener), static_cast<int>(ntohs(port)));
}

// HOST:PORT/SECRET.
struct Address {
  std::string host;
  std::string port;
  std::string secret;
};

absl::StatusOr<Address> ParseAddress(const std::string& text) {
  const size_t slash = text.rfind('/');
  const size_t colon = text.rfind(':', slash);
  int port = 0;
  if (slash == std::string::npos || colon == std::string::npos || colon == 0 ||
      text.size() - slash - 1 != kSecretBytes ||
      !absl::SimpleAtoi(text.substr(colon + 1, slash - colon - 1), &port)) {
    return absl::InvalidArgumentError(
        absl::StrCat(kCommitStoreVariable, "=", text,
                     " is not the address of a commit store"));
  }
  return Address{.host = text.substr(0, colon),
                 .port = absl::StrCat(port),
                 .secret = text.substr(slash + 1)};
}

// Like connect(2), but continues after an interrupt by a signal handler. On
// Linux the next call waits for the connection that has begun.
int ConnectTo(int socket, const addrinfo& to) {
  int result = 0;
  do {
    result = connect(socket, to.ai_addr, to.ai_addrlen);
  } while (result != 0 && errno == EINTR);
  return result;
}

absl::StatusOr<Descriptor> Connect(const Address& address) {
  HVDLITE_ASSIGN_OR_RETURN(const Addresses found,
                           Resolve(address.host, address.port));
  int error = 0;
  for (const addrinfo* one = found.get(); one != nullptr; one = one->ai_next) {
    Descriptor connection(
        socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (connection.valid()) SetTimeouts(connection.get());
    if (connection.valid() && ConnectTo(connection.get(), *one) == 0) {
      return connection;
    }
    error = errno;
  }
  return absl::UnavailableError(
      absl::StrCat("connect: ", std::strerror(error)));
}

absl::StatusOr<Message> Ask(const std::string& address, Kind kind,
                            absl::string_view name, uint64_t number,
                            absl::string_view content) {
  HVDLITE_ASSIGN_OR_RETURN(const Address parts, ParseAddress(address));
  const auto ask = [&]() -> absl::StatusOr<Message> {
    HVDLITE_ASSIGN_OR_RETURN(const Descriptor connection, Connect(parts));
    Header header;
    header.kind = kind;
    header.number = number;
    std::copy(parts.secret.begin(), parts.secret.end(), header.secret);
    // A store may refuse before it has received everything. Then the rest
    // cannot be sent, so an answer counts more than an error of Send().
    const absl::Status sent = Send(connection.get(), header, name, content);
    absl::StatusOr<Message> answer = Receive(
        connection.get(),
        [&](const Header& h) { return RequireSecret(h, parts.secret); });
    const bool answered = !absl::IsUnavailable(answer.status());
    return answered || sent.ok() ? std::move(answer) : sent;
  };
  absl::StatusOr<Message> answer = ask();
  absl::Status status = answer.status();
  if (answer.ok() && answer->header.kind != 0) {
    status = absl::Status(static_cast<absl::StatusCode>(answer->header.kind),
                          answer->content);
  }
  if (status.ok()) return answer;
  return absl::Status(status.code(),
                      absl::StrCat("the commit store at ", parts.host, ":",
                                   parts.port, ": ", status.message()));
}

absl::StatusOr<std::string> MakeSecret() {
  std::string bytes(kSecretBytes / 2, '\0');
  if (getrandom(bytes.data(), bytes.size(), 0) !=
      static_cast<ssize_t>(bytes.size())) {
    return absl::ResourceExhaustedError("getrandom() failed");
  }
  return absl::BytesToHexString(bytes);
}

}  // namespace

absl::StatusOr<std::unique_ptr<CommitStore>> CommitStore::Start(
    const std::string& host) {
  HVDLITE_ASSIGN_OR_RETURN(const Addresses own, Resolve(host, "0"));
  HVDLITE_ASSIGN_OR_RETURN(auto listening, Listen(*own));
  HVDLITE_ASSIGN_OR_RETURN(std::string secret, MakeSecret());
  std::string address = absl::StrCat(host, ":", listening.second, "/", secret);
  return std::unique_ptr<CommitStore>(new CommitStore(
      std::move(listening.first), std::move(address), std::move(secret)));
}

CommitStore::CommitStore(Descriptor listener, std::string address,
                         std::string secret)
    : listener_(std::move(listener)),
      address_(std::move(address)),
      secret_(std::move(secret)) {
  // Signals are handled by other threads of this process.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  accepting_ = std::thread([this] { Accept(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

CommitStore::~CommitStore() {
  ending_ = true;
  shutdown(listener_.get(), SHUT_RDWR);
  accepting_.join();
  EndClients(/*all=*/true);
}

void CommitStore::EndClients(bool all) {
  std::list<Client> ended;
  {
    const MutexLock lock(&mutex_);
    for (auto client = clients_.begin(); client != clients_.end();) {
      const auto next = std::next(client);
      if (all || client->ended) {
        if (all && !client->ended) {
          shutdown(client->connection.get(), SHUT_RDWR);
        }
        ended.splice(ended.end(), clients_, client);
      }
      client = next;
    }
  }
  for (Client& client : ended) client.thread.join();
}

void CommitStore::Accept() {
  while (!ending_) {
    Descriptor connection(
        accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!connection.valid()) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      if (errno != EMFILE && errno != ENFILE && errno != ENOBUFS &&
          errno != ENOMEM) {
        return;
      }
      EndClients(/*all=*/false);
      poll(nullptr, 0, /*timeout=*/100);  // until some are free
      continue;
    }
    SetTimeouts(connection.get());
    EndClients(/*all=*/false);
    const MutexLock lock(&mutex_);
    const bool has_place =
        ContainExceptions([&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
          clients_.emplace_back();
        });
    if (!has_place) continue;  // closes the connection
    Client& client = clients_.back();
    client.connection = std::move(connection);
    try {
      client.thread = std::thread([this, &client] {
        ContainExceptions([&] { Serve(client.connection); });
        const MutexLock ending(&mutex_);
        client.connection = Descriptor();  // also ends a client's send
        client.ended = true;
      });
    } catch (const std::exception&) {  // no thread or no memory
      clients_.pop_back();
    }
  }
}

void CommitStore::Serve(const Descriptor& connection) {
  const auto serve =
      [&]() -> absl::StatusOr<std::shared_ptr<const StoredCommit>> {
    HVDLITE_ASSIGN_OR_RETURN(
        Message message, Receive(connection.get(), [&](const Header& header) {
          return RequireSecret(header, secret_);
        }));
    const MutexLock lock(&mutex_);
    if (message.header.kind == kGet) {
      const auto found = commits_.find(message.name);
      if (found != commits_.end()) return found->second;
      return absl::NotFoundError("it has no commit yet");
    }
    if (message.header.kind != kPut) {
      return absl::InvalidArgumentError("unknown kind of request");
    }
    std::shared_ptr<const StoredCommit>& newest = commits_[message.name];
    if (newest != nullptr && newest->number > message.header.number) {
      return absl::FailedPreconditionError(
          absl::StrCat("it already has commit ", newest->number,
                       ", which is newer than ", message.header.number));
    }
    if (newest == nullptr || newest->number < message.header.number) {
      newest = std::make_shared<const StoredCommit>(
          StoredCommit{.number = message.header.number,
                       .bytes = std::move(message.content)});
    }
    return std::make_shared<const StoredCommit>();
  };
  const absl::StatusOr<std::shared_ptr<const StoredCommit>> result = serve();
  Header header;
  if (!absl::IsPermissionDenied(result.status())) {
    std::copy(secret_.begin(), secret_.end(), header.secret);
  }
  header.kind = static_cast<uint32_t>(result.status().code());
  header.number = result.ok() ? (*result)->number : 0;
  // The client may have gone.
  (void)Send(connection.get(), header, "",
             result.ok() ? absl::string_view((*result)->bytes)
                         : result.status().message());
}

absl::Status PutCommit(const std::string& address, const std::string& name,
                       uint64_t number, absl::string_view bytes) {
  return Ask(address, kPut, name, number, bytes).status();
}

absl::StatusOr<StoredCommit> GetCommit(const std::string& address,
                                       const std::string& name) {
  HVDLITE_ASSIGN_OR_RETURN(Message answer, Ask(address, kGet, name, 0, ""));
  return StoredCommit{.number = answer.header.number,
                      .bytes = std::move(answer.content)};
}

}  // namespace hvdlite::base
