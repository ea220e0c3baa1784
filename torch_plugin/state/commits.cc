#include "torch_plugin/state/commits.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/checkpoint_file.h"
#include "base/environment.h"
#include "torch_plugin/state/archives.h"

namespace hvdlite::elastic {

using internal::Warn;

Commits::Commits(const StateOptions& options)
    : options_(options),
      store_(options.store().value_or(base::ProcessEnvironment()
                                          .get(base::kCommitStoreVariable)
                                          .value_or(""))) {
  if (!store_.empty()) {
    store_writer_.emplace(
        [this](const base::StoredCommit& commit) {
          return base::PutCommit(store_, options_.name(), commit.number,
                                 commit.bytes);
        },
        Warn);
  }
  if (!options_.path().empty()) {
    file_writer_.emplace(
        [this](const base::StoredCommit& commit) {
          return base::WriteCheckpointFile(options_.path(), commit.bytes,
                                           /*keep_previous=*/true);
        },
        Warn);
  }
}

void Commits::Keep(std::string bytes) {
  last_ = std::make_shared<base::StoredCommit>(
      base::StoredCommit{++number_, std::move(bytes)});
  origin_ = "the last commit";
}

void Commits::Send(Save save) {
  sent_ = last_;
  if (store_writer_) store_writer_->Write(last_);
  const bool is_due = IsDue();
  if (file_writer_ &&
      (save == Save::Now || (save == Save::WhenDue && is_due))) {
    ToFile();
  }
}

bool Commits::Flush() {
  if (store_writer_) store_writer_->Wait();
  if (!file_writer_ || sent_ == nullptr || sent_->number == 0) return true;
  if (to_file_ == sent_->number && file_writer_->Wait()) return true;
  if (to_file_ != sent_->number) ToFile();
  return file_writer_->Wait();
}

void Commits::FindNewer() {
  absl::Status stored_status;
  if (!store_.empty()) {
    absl::StatusOr<base::StoredCommit> stored =
        base::GetCommit(store_, options_.name());
    if (!absl::IsNotFound(stored.status())) stored_status = stored.status();
    if (stored.ok() && (last_ == nullptr || stored->number > last_->number)) {
      Take(*std::move(stored), "the commit in the launcher's store");
    }
  }
  if (!options_.path().empty() && checkpoint_exists(options_.path())) {
    try {
      ReadFile(options_.path());
    } catch (const std::exception& error) {
      if (last_ == nullptr) throw;
      Warn(absl::StrCat(internal::TextOf(error), "; using ", origin_));
    }
  }
  if (stored_status.ok()) return;
  // Do not start from scratch: the store may answer the next time.
  if (last_ == nullptr) throw StoreFailure(stored_status.message());
  Warn(absl::StrCat(stored_status.message(), "; using ", origin_));
}

void Commits::ReadFile(const std::string& path) {
  internal::WholeCheckpoint file = internal::ReadWholeCheckpoint(path);
  c10::IValue number(int64_t{0});
  file.archive.try_read(kCommitNumber, number);
  const auto counted = static_cast<uint64_t>(number.toInt());
  if (last_ != nullptr && last_->number >= counted) return;
  Take({counted, std::move(file.bytes)},
       absl::StrCat("the checkpoint '", file.file, "'"));
  if (path == options_.path()) to_file_ = counted;
}

void Commits::Take(base::StoredCommit commit, std::string origin) {
  last_ = std::make_shared<base::StoredCommit>(std::move(commit));
  sent_ = last_;
  number_ = std::max(number_, last_->number);
  origin_ = std::move(origin);
}

void Commits::ToFile() {
  to_file_ = sent_->number;
  commits_since_save_ = 0;
  saved_at_ = Clock::now();
  file_writer_->Write(sent_);
}

bool Commits::IsDue() {
  ++commits_since_save_;
  const double seconds =
      std::chrono::duration<double>(Clock::now() - saved_at_).count();
  return (options_.save_every_commits() > 0 &&
          commits_since_save_ >= options_.save_every_commits()) ||
         (options_.save_every_seconds() > 0 &&
          seconds >= options_.save_every_seconds());
}

}  // namespace hvdlite::elastic
