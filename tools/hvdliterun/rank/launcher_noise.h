// Filters messages of MPI launchers and libraries after a rank has failed: long
// texts that only repeat hvdliterun's summary and hide it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace hvdlite::launch {

// Whether a line is noise, independent of the lines before and after it.
bool IsNoiseLine(const std::string& line);

// Removes noise from a stream. Noise is only what is known to be useless: Open
// MPI's help texts about ended ranks, lines of PMIx, stack traces of UCX and of
// Open MPI's signal handler, and messages of srun and MPICH about tasks that
// they end. Messages of launchers about lost hosts, and of MPI and UCX about
// their own errors, are kept.
class LauncherNoise {
 public:
  using Sink = std::function<void(absl::string_view text)>;

  // Text without noise goes to `pass_on`; noise goes to `leave_out` in whole
  // lines.
  LauncherNoise(Sink pass_on, Sink leave_out);

  // Starts filtering. Text before this call is passed on immediately; text
  // after it is passed on in whole lines.
  void Begin() { begun_ = true; }
  void Take(absl::string_view text);
  // Must be called at the end of the stream: passes on lines that are held.
  void End();

  int lines_left_out() const { return lines_left_out_; }

 private:
  // The possible kind of the held lines, until the last of them arrives.
  enum class Block { kNone, kHelp, kBacktrace };

  void TakeLine(const std::string& line);  // `line` has its line end
  void Decide(bool noise);                 // about the held lines

  Sink pass_on_;
  Sink leave_out_;
  bool begun_ = false;
  std::string unfinished_;
  Block block_ = Block::kNone;
  std::vector<std::string> held_;
  int lines_left_out_ = 0;
};

}  // namespace hvdlite::launch
