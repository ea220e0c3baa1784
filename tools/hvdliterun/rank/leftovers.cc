#include "tools/hvdliterun/rank/leftovers.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <set>
#include <system_error>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/descriptor.h"

namespace hvdlite::launch {
namespace {

namespace fs = std::filesystem;

constexpr absl::Duration kYoung = absl::Minutes(1);

// Regular files, folders and the like in `folder` that are this user's; none
// where it cannot be read.
std::vector<fs::path> OwnEntries(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    struct stat status {};
    if (lstat(entry->path().c_str(), &status) == 0 &&
        status.st_uid == geteuid()) {
      entries.push_back(entry->path());
    }
  }
  return entries;
}

bool IsOwnFolder(const fs::path& path) {
  struct stat status {};
  return lstat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
         status.st_uid == geteuid();
}

bool IsOld(const fs::path& path, absl::Time now) {
  struct stat status {};
  return lstat(path.c_str(), &status) == 0 &&
         absl::TimeFromTimespec(status.st_mtim) + kYoung < now;
}

// Open MPI leaves the domain out, unless it is told otherwise.
std::set<std::string> NamesOf(const std::string& host) {
  return {host, host.substr(0, host.find('.'))};
}

// Names of the files in `folder` that processes of this user map; not
// `complete` where one cannot be looked at.
std::set<std::string> MappedIn(const std::string& folder,
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
      const size_t path = line.find(folder + "/");
      if (path == absl::string_view::npos) continue;
      const absl::string_view name = line.substr(path + folder.size() + 1);
      names.emplace(name.substr(0, name.find(' ')));  // "... (deleted)"
    }
  }
  return names;
}

int RemoveSegments(const LeftoverPlaces& places, absl::Time now) {
  std::vector<fs::path> old;
  for (const fs::path& path : OwnEntries(places.shared_memory)) {
    for (const std::string& host : NamesOf(places.host)) {
      // Open MPI 4's.
      if (absl::StartsWith(
              path.filename().native(),
              absl::StrCat("vader_segment.", host, ".", geteuid(), ".")) &&
          IsOld(path, now)) {
        old.push_back(path);
        break;
      }
    }
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

int RemoveSessions(const LeftoverPlaces& places, absl::Time now) {
  int removed = 0;
  std::error_code error;
  for (const std::string& host : NamesOf(places.host)) {
    const fs::path of_user = fs::path(places.temporary) /
                             absl::StrCat("ompi.", host, ".", geteuid());
    if (!IsOwnFolder(of_user)) continue;
    for (const fs::path& session : OwnEntries(of_user)) {
      const std::string id = session.filename().string();
      int64_t launcher = 0;
      if (!absl::StartsWith(id, "pid.") ||
          !absl::SimpleAtoi(id.substr(4), &launcher) || !IsOld(session, now) ||
          fs::exists(absl::StrCat(places.processes, "/", launcher), error)) {
        continue;
      }
      removed += fs::remove_all(session, error) > 0 ? 1 : 0;
    }
  }
  return removed;
}

}  // namespace

int RemoveLeftovers(const LeftoverPlaces& places, absl::Time now) {
  return RemoveSegments(places, now) + RemoveSessions(places, now);
}

int RemoveSessionsOf(pid_t launcher, const LeftoverPlaces& places) {
  std::error_code error;
  if (fs::exists(absl::StrCat(places.processes, "/", launcher), error)) {
    return 0;  // another process has its number
  }
  const uid_t user = geteuid();
  int removed = 0;
  for (const std::string& host : NamesOf(places.host)) {
    const std::string host_user = absl::StrCat(host, ".", user);
    std::vector<std::string> names = {
        absl::StrCat("ompi.", host_user, "/pid.", launcher),
        absl::StrCat("prte.", host_user, "/dvm.", launcher),
        absl::StrCat("prte.", host, ".", launcher, ".", user),
        absl::StrCat("prterun.", host, ".", launcher, ".", user),
    };
    // Not the folder of all jobs of a user of that number.
    if (static_cast<uid_t>(launcher) != user) {
      names.push_back(absl::StrCat("prte.", host, ".", launcher));
    }
    for (const std::string& name : names) {
      const fs::path session = fs::path(places.temporary) / name;
      const bool is_own =
          IsOwnFolder(session) &&
          (!absl::StrContains(name, "/") || IsOwnFolder(session.parent_path()));
      if (is_own && fs::remove_all(session, error) > 0) ++removed;
    }
  }
  return removed;
}

}  // namespace hvdlite::launch
