// What MPI launchers and libraries say once a rank has failed: pages that tell
// no more than hvdliterun's summary, and bury it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace hvdlite::launch {

// Whether a line is noise whatever stands before and after it.
bool IsNoiseLine(const std::string& line);

// Takes it out of a stream. Only what is known to be of no use: Open MPI's help
// texts about ranks that have ended, lines of PMIx, stack traces of UCX and of
// Open MPI's signal handler, srun's and MPICH's news of tasks that it ends.
// What a launcher says of hosts that are lost stays, and what MPI and UCX say
// of errors of their own.
class LauncherNoise {
 public:
  using Sink = std::function<void(absl::string_view text)>;

  // What is no noise goes to `pass_on`, noise, in whole lines, to `leave_out`.
  LauncherNoise(Sink pass_on, Sink leave_out);

  // From now on there is noise; what came before has been passed on at once,
  // what comes now is in whole lines.
  void Begin() { begun_ = true; }
  void Take(absl::string_view text);
  // At the end of the stream: passes on what may have been one.
  void End();

  int lines_left_out() const { return lines_left_out_; }

 private:
  // What the lines that are held are, until the last of them has come.
  enum class Block { kNone, kHelp, kBacktrace };

  void TakeLine(const std::string& line);  // with its end
  void Decide(bool noise);                 // about the lines that are held

  Sink pass_on_;
  Sink leave_out_;
  bool begun_ = false;
  std::string unfinished_;
  Block block_ = Block::kNone;
  std::vector<std::string> held_;
  int lines_left_out_ = 0;
};

}  // namespace hvdlite::launch
