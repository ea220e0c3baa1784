// The subcommands that are about trace files rather than what they tell:
// repair, merge, slice.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "timeline/report/report.h"
#include "tools/timeline_viewer/slice.h"

namespace CLI {
class App;
}

namespace hvdlite::timeline_viewer {

class FileCommands {
 public:
  // Adds them to `app`, which must not outlive this. They read what `paths`
  // names, which the parser fills.
  void AddTo(CLI::App* app, std::vector<std::string>* paths);

  // Whether `command` is one of them.
  static bool Has(const std::string& command);

  // Carries out `command` as the parser has found it.
  absl::Status Run(const std::string& command, timeline::Report* report) const;

  // The file that is to be written.
  const std::string& output() const { return out_; }

 private:
  const std::vector<std::string>* paths_ = nullptr;
  std::string out_;
  std::string steps_;
  std::string ranks_;
  double from_ms_ = 0;
  double to_ms_ = 0;
  bool force_ = false;
  bool overwrite_ = false;
  SliceOptions slice_;
};

}  // namespace hvdlite::timeline_viewer
