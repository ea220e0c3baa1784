// Runs a fuzz target without a fuzzer: on every file of its corpus, then on the
// requested number of mutations. The same arguments give the same inputs.
//
// The target runs in a child process. If the child crashes, takes too long or
// exceeds its memory limit, the input is written to a file in the working
// directory, and the name of the file is printed.

#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

#if defined(__SANITIZE_ADDRESS__)
// An allocation that is far too large is an error, like a crash.
extern "C" const char* __asan_default_options() {
  return "max_allocation_size_mb=1024:allocator_may_return_null=0";
}
constexpr bool kAddressSanitizer = true;
#else
constexpr bool kAddressSanitizer = false;
#endif

namespace {

constexpr size_t kMaxInputBytes = 1 << 16;
constexpr unsigned kMaxSeconds = 60;  // for one input

struct Options {
  std::string name;
  std::vector<std::filesystem::path> inputs;
  int64_t runs = 0;
  uint64_t seed = 1;
  int64_t memory_mib = 1024;
};

// The child's state, shared with the parent.
struct Shared {
  size_t size;
  int64_t run;
  int64_t finished;
  std::array<uint8_t, kMaxInputBytes> bytes;
};

class Mutator {
 public:
  Mutator(const std::vector<std::string>& corpus, uint64_t seed)
      : corpus_(corpus), random_(seed) {}

  std::string Next() {
    std::string bytes = Pick();
    for (uint64_t left = Below(6) + 1; left > 0; --left) Mutate(bytes);
    if (bytes.size() > kMaxInputBytes) bytes.resize(kMaxInputBytes);
    return bytes;
  }

 private:
  uint64_t Below(uint64_t end) { return end == 0 ? 0 : random_() % end; }
  const std::string& Pick() { return corpus_[Below(corpus_.size())]; }

  // A random part of `bytes`; most parts are short.
  std::pair<size_t, size_t> Part(const std::string& bytes) {
    const size_t begin = Below(bytes.size() + 1);
    const size_t longest = Below(4) == 0 ? bytes.size() : 16;
    return {begin, std::min(Below(longest + 1), bytes.size() - begin)};
  }

  void Mutate(std::string& bytes) {
    switch (Below(9)) {
      case 0:
        if (!bytes.empty()) bytes[Below(bytes.size())] ^= 1 << Below(8);
        break;
      case 1:
        if (!bytes.empty()) {
          bytes[Below(bytes.size())] = static_cast<char>(random_());
        }
        break;
      case 2:
        bytes.resize(Below(bytes.size() + 1));
        break;
      case 3: {
        const auto [begin, length] = Part(bytes);
        bytes.erase(begin, length);
        break;
      }
      case 4: {
        const auto [begin, length] = Part(bytes);
        const std::string part = bytes.substr(begin, length);
        for (uint64_t left = Below(3) + 1; left > 0; --left) {
          bytes.insert(Below(bytes.size() + 1), part);
        }
        break;
      }
      case 5: {
        const std::string& other = Pick();
        const auto [begin, length] = Part(other);
        bytes.insert(Below(bytes.size() + 1), other, begin, length);
        break;
      }
      case 6: {
        const std::string& other = Pick();
        bytes.resize(Below(bytes.size() + 1));
        bytes += other.substr(Below(other.size() + 1));
        break;
      }
      case 7:
        ReplaceDigits(bytes);
        break;
      case 8:
        Overwrite(bytes);
        break;
    }
  }

  // Replaces a number in digits by a limit of some type.
  void ReplaceDigits(std::string& bytes) {
    constexpr std::string_view kNumbers[] = {"0",
                                             "-1",
                                             "1",
                                             "255",
                                             "65536",
                                             "2147483647",
                                             "-2147483648",
                                             "4294967295",
                                             "4294967296",
                                             "9223372036854775807",
                                             "-9223372036854775808",
                                             "18446744073709551615",
                                             "99999999999999999999999",
                                             "1e308",
                                             "1e-999",
                                             "nan",
                                             "inf",
                                             ""};
    const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
    const size_t from = Below(bytes.size() + 1);
    const auto begin =
        std::find_if(bytes.begin() + from, bytes.end(), is_digit);
    if (begin == bytes.end()) return;
    const auto end = std::find_if_not(begin, bytes.end(), is_digit);
    bytes.replace(begin, end, kNumbers[Below(std::size(kNumbers))]);
  }

  // Overwrites bytes with a limit of some type, in either byte order.
  void Overwrite(std::string& bytes) {
    constexpr uint64_t kNumbers[] = {
        0,           1,          0x7f,        0x80,
        0xff,        0x7fff,     0xffff,      0x7fffffff,
        0x80000000,  0xffffffff, 0x100000000, 0x7fffffffffffffff,
        ~uint64_t{0}};
    const uint64_t number = kNumbers[Below(std::size(kNumbers))];
    char text[sizeof number];
    std::memcpy(text, &number, sizeof number);
    const size_t width = size_t{1} << Below(4);
    if (Below(2) == 0) std::reverse(text, text + width);
    if (bytes.size() < width) return;
    bytes.replace(Below(bytes.size() - width + 1), width, text, width);
  }

  const std::vector<std::string>& corpus_;
  std::mt19937_64 random_;
};

int64_t PeakMib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss / 1024;
}

void LimitMemory(int64_t mib) {
  if (kAddressSanitizer) return;  // its shadow needs terabytes of addresses
  rlimit limit{};
  getrlimit(RLIMIT_AS, &limit);
  // 2 GiB are for libraries and stacks.
  limit.rlim_cur = static_cast<rlim_t>(mib + 2048) << 20;
  setrlimit(RLIMIT_AS, &limit);
}

void RunOne(const std::string& bytes, Shared& shared) {
  shared.size = std::min(bytes.size(), kMaxInputBytes);
  std::memcpy(shared.bytes.data(), bytes.data(), shared.size);
  ++shared.run;
  if (shared.run % 64 == 1) alarm(kMaxSeconds);
  // A buffer of exactly this size, so that a read beyond its end is detected.
  const std::vector<uint8_t> input(shared.bytes.data(),
                                   shared.bytes.data() + shared.size);
  LLVMFuzzerTestOneInput(input.data(), input.size());
  ++shared.finished;
}

int RunAll(const Options& options, Shared& shared) {
  std::vector<std::string> corpus;
  for (const std::filesystem::path& path : options.inputs) {
    std::ifstream file(path, std::ios::binary);
    corpus.emplace_back(std::istreambuf_iterator<char>(file),
                        std::istreambuf_iterator<char>());
  }
  LimitMemory(options.memory_mib);
  for (const std::string& bytes : corpus) RunOne(bytes, shared);
  const int64_t before_mib = PeakMib();
  Mutator mutator(corpus, options.seed);
  for (int64_t i = 0; i < options.runs; ++i) {
    RunOne(mutator.Next(), shared);
    if (PeakMib() - before_mib > options.memory_mib) {
      std::fprintf(stderr, "grew by more than %lld MiB\n",
                   static_cast<long long>(options.memory_mib));
      return 3;
    }
  }
  alarm(0);
  return 0;
}

void Tell(const Options& options, const Shared& shared, int status) {
  const std::string_view bytes(
      reinterpret_cast<const char*>(shared.bytes.data()), shared.size);
  char file[300];
  std::snprintf(file, sizeof file, "%s-%016zx", options.name.c_str(),
                std::hash<std::string_view>()(bytes));
  std::ofstream(file, std::ios::binary) << bytes;
  const bool late = WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM;
  std::fprintf(
      stderr, "%s: input %lld of seed %llu %s (%s %d); the input is in %s/%s\n",
      options.name.c_str(), static_cast<long long>(shared.run),
      static_cast<unsigned long long>(options.seed),
      late ? "takes too long" : "fails",
      WIFSIGNALED(status) ? "signal" : "exit code",
      WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status),
      std::filesystem::current_path().c_str(), file);
}

bool TakeNumber(std::string_view argument, std::string_view flag,
                int64_t* value) {
  if (argument.substr(0, flag.size()) != flag) return false;
  *value = std::atoll(std::string(argument.substr(flag.size())).c_str());
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  options.name = std::filesystem::path(argv[0]).filename().string();
  int64_t seed = 1;
  for (int i = 1; i < argc; ++i) {
    if (TakeNumber(argv[i], "--runs=", &options.runs) ||
        TakeNumber(argv[i], "--memory-mib=", &options.memory_mib) ||
        TakeNumber(argv[i], "--seed=", &seed)) {
      continue;
    }
    if (std::filesystem::is_directory(argv[i])) {
      for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
        options.inputs.push_back(entry.path());
      }
    } else if (std::filesystem::exists(argv[i])) {
      options.inputs.emplace_back(argv[i]);
    } else {
      options.inputs.clear();
      break;
    }
  }
  options.seed = static_cast<uint64_t>(seed);
  std::sort(options.inputs.begin(), options.inputs.end());
  if (options.inputs.empty()) {
    std::fprintf(stderr,
                 "usage: %s [--runs=MUTATIONS] [--seed=1] [--memory-mib=1024] "
                 "FILE|DIRECTORY ...\n",
                 argv[0]);
    return 2;
  }

  void* const memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    std::perror("mmap");
    return 2;
  }
  Shared& shared = *new (memory) Shared{};
  const auto start = std::chrono::steady_clock::now();
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) std::exit(RunAll(options, shared));
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) {
    std::perror("fork");
    return 2;
  }
  if (status != 0) {
    Tell(options, shared, status);
    return 1;
  }
  const std::chrono::duration<double> took =
      std::chrono::steady_clock::now() - start;
  std::printf("%s: %zu files and %lld mutations, %.1f s\n",
              options.name.c_str(), options.inputs.size(),
              static_cast<long long>(options.runs), took.count());
  return 0;
}
