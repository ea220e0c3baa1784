#include "tools/hvdliterun/rank/leftovers.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/descriptor.h"

namespace hvdlite::launch {
namespace {

namespace fs = std::filesystem;

constexpr absl::Duration kYoung = absl::Minutes(1);

// All entries of `directory` (files, directories, ...) that belong to this
// user; empty if it cannot be read.
std::vector<fs::path> OwnEntries(const fs::path& directory) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end;
       !error && entry != end; entry.increment(error)) {
    struct stat status {};
    if (lstat(entry->path().c_str(), &status) == 0 &&
        status.st_uid == geteuid()) {
      entries.push_back(entry->path());
    }
  }
  return entries;
}

bool IsOwnDirectory(const fs::path& path) {
  struct stat status {};
  return lstat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
         status.st_uid == geteuid();
}

bool IsOld(const fs::path& path, absl::Time now) {
  struct stat status {};
  return lstat(path.c_str(), &status) == 0 &&
         absl::TimeFromTimespec(status.st_mtim) + kYoung < now;
}

// Open MPI omits the domain by default.
std::set<std::string> NamesOf(const std::string& host) {
  return {host, host.substr(0, host.find('.'))};
}

// The names of the files in `directory` that processes of this user map. Sets
// `complete` to false if a process cannot be examined.
std::set<std::string> MappedIn(const std::string& directory,
                               const std::string& processes, bool* complete) {
  std::set<std::string> names;
  *complete = true;
  int64_t id = 0;
  for (const fs::path& process : OwnEntries(processes)) {
    if (!absl::SimpleAtoi(process.filename().string(), &id)) continue;
    const absl::StatusOr<std::string> maps =
        base::ReadFile((process / "maps").string());
    if (!maps.ok()) {
      std::error_code error;
      *complete = *complete && !fs::exists(process, error);  // it has ended
      continue;
    }
    for (const absl::string_view line : absl::StrSplit(*maps, '\n')) {
      const size_t path = line.find(directory + "/");
      if (path == absl::string_view::npos) continue;
      const absl::string_view name = line.substr(path + directory.size() + 1);
      names.emplace(name.substr(0, name.find(' ')));  // "... (deleted)"
    }
  }
  return names;
}

int RemoveSegments(const LeftoverPlaces& places, absl::Time now) {
  std::vector<fs::path> old;
  for (const fs::path& path : OwnEntries(places.shared_memory)) {
    const std::string name = path.filename().string();
    const bool is_segment =
        absl::c_any_of(NamesOf(places.host), [&name](const std::string& host) {
          const std::string rest = absl::StrCat(host, ".", geteuid(), ".");
          return absl::StartsWith(name, "vader_segment." + rest) ||
                 absl::StartsWith(name, "sm_segment." + rest);
        });
    if (is_segment && IsOld(path, now)) old.push_back(path);
  }
  if (old.empty()) return 0;
  bool complete = false;
  const std::set<std::string> mapped =
      MappedIn(places.shared_memory, places.processes, &complete);
  if (!complete) return 0;
  int removed = 0;
  std::error_code error;
  for (const fs::path& path : old) {
    if (mapped.contains(path.filename().string())) continue;
    removed += fs::remove(path, error) ? 1 : 0;
  }
  return removed;
}

// The directory of a launcher's job, and the launcher's process id.
struct Session {
  fs::path path;
  int64_t launcher;
};

// Adds the sessions in `directory` with the name PREFIX, process id, SUFFIX.
void AddSessions(const fs::path& directory, absl::string_view prefix,
                 absl::string_view suffix, std::vector<Session>* sessions) {
  for (const fs::path& path : OwnEntries(directory)) {
    const std::string name = path.filename().string();
    absl::string_view id = name;
    int64_t launcher = 0;
    if (absl::ConsumePrefix(&id, prefix) && absl::ConsumeSuffix(&id, suffix) &&
        absl::SimpleAtoi(id, &launcher) && IsOwnDirectory(path)) {
      sessions->push_back({path, launcher});
    }
  }
}

// All sessions of this user.
std::vector<Session> Sessions(const LeftoverPlaces& places) {
  const fs::path directory = places.temporary;
  const std::string user = absl::StrCat(".", geteuid());
  std::vector<Session> sessions;
  for (const std::string& host : NamesOf(places.host)) {
    for (const auto& [of_user, prefix] :
         {std::pair(directory / absl::StrCat("ompi.", host, user), "pid."),
          std::pair(directory / absl::StrCat("prte.", host, user), "dvm.")}) {
      if (IsOwnDirectory(of_user)) AddSessions(of_user, prefix, "", &sessions);
    }
    for (const char* program : {"prte.", "prterun."}) {
      AddSessions(directory, absl::StrCat(program, host, "."), user, &sessions);
    }
  }
  return sessions;
}

bool IsThere(int64_t process, const LeftoverPlaces& places) {
  std::error_code error;
  return fs::exists(absl::StrCat(places.processes, "/", process), error);
}

// Removes the sessions whose launcher has ended and for which `removes` is
// true. Returns how many.
template <typename Condition>
int RemoveSessions(const LeftoverPlaces& places, Condition removes) {
  int removed = 0;
  std::error_code error;
  for (const Session& session : Sessions(places)) {
    if (IsThere(session.launcher, places) || !removes(session)) continue;
    removed += fs::remove_all(session.path, error) > 0 ? 1 : 0;
  }
  return removed;
}

}  // namespace

int RemoveLeftovers(const LeftoverPlaces& places, absl::Time now) {
  return RemoveSegments(places, now) +
         RemoveSessions(places, [now](const Session& session) {
           return IsOld(session.path, now);
         });
}

int RemoveSessionsOf(pid_t launcher, const LeftoverPlaces& places) {
  return RemoveSessions(places, [launcher](const Session& session) {
    return session.launcher == launcher;
  });
}

}  // namespace hvdlite::launch
