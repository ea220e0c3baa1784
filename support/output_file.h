// What programs write: nothing that exists is replaced unasked, nothing is
// written to a file that is read, and a file appears under its name once it is
// complete. "-", /dev/stdout and its like, pipes and character devices replace
// nothing, and may always be written to.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace hvdlite::support {

struct Output {
  std::string flag;  // that names it, such as "--report"
  std::string file;  // "": nothing is written
  // It may exist: what it holds is kept, or is of this run.
  bool may_exist = false;
  // What else can be done about one that exists, such as "--resume auto
  // continues from it".
  std::string instead = {};
};

// --overwrite, of every program that writes files.
CLI::Option* AddOverwrite(CLI::App& app, bool& overwrite);

// Whether a program may write `outputs`, of which `overwrite` (--overwrite) may
// exist, and which `inputs` it reads (of a directory all files in it); to be
// asked before its work begins.
// AlreadyExists if a file exists (a symbolic link does, wherever it leads), or
// if it is one of the inputs or another output, also through links.
// InvalidArgument if it is a directory or anything else that is no file, or
// cannot be made. A message names flag and file, and says what to do. Leaves
// everything as it is.
absl::Status CheckOutputs(const std::vector<Output>& outputs, bool overwrite,
                          const std::vector<std::string>& inputs = {});

// The same. Throws InputError.
void RequireOutputs(const std::vector<Output>& outputs, bool overwrite,
                    const std::vector<std::string>& inputs = {});

// Makes `text` what `file` holds, or writes it to the stream that `file` names.
// Whatever happens meanwhile, a file holds what it held before or all of the
// new, also after a power failure. Throws InputError that names `file`.
void WriteFile(const std::string& file, const std::string& text);

// WriteFile with the error as a status.
absl::Status WriteNewFile(const std::string& file, const std::string& text);

}  // namespace hvdlite::support
