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

bool IsOld(const fs::path& path, absl::Time now) {
  struct stat status {};
  return lstat(path.c_str(), &status) == 0 &&
         absl::TimeFromTimespec(status.st_mtim) + kYoung < now;
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
    // Open MPI 4's.
    if (absl::StartsWith(
            path.filename().native(),
            absl::StrCat("vader_segment.", places.host, ".", geteuid(), ".")) &&
        IsOld(path, now)) {
      old.push_back(path);
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
  for (const fs::path& of_user : OwnEntries(places.temporary)) {
    if (of_user.filename() !=
            absl::StrCat("ompi.", places.host, ".", geteuid()) ||
        !fs::is_directory(fs::symlink_status(of_user, error))) {
      continue;
    }
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

}  // namespace hvdlite::launch
