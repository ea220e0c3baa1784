// Writes output files safely: an existing file is replaced only on request, an
// input is never overwritten, and a file appears only when it is complete. "-",
// /dev/stdout and the like, pipes and character devices may always be written.
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
  std::string flag;  // such as "--report"
  std::string file;  // "": nothing is written
  // The file may exist: it is extended, or belongs to this run.
  bool may_exist = false;
  // Another remedy if the file exists, such as "--resume auto continues from
  // it".
  std::string instead = {};
};

// Adds --overwrite, which every program that writes files has.
CLI::Option* AddOverwrite(CLI::App& app, bool& overwrite);

// Checks, before the work begins, whether a program may write `outputs`.
// `overwrite` (--overwrite) allows them to exist. `inputs` are the files that
// the program reads; a directory stands for all its files. Changes nothing.
//
// AlreadyExists if a file exists (also a dangling symbolic link), or is the
// same file as an input or another output, also through links. InvalidArgument
// if it exists and is not a regular file, or cannot be created. Messages name
// flag and file, and say what to do.
absl::Status CheckOutputs(const std::vector<Output>& outputs, bool overwrite,
                          const std::vector<std::string>& inputs = {});

// Like CheckOutputs(), but throws InputError.
void RequireOutputs(const std::vector<Output>& outputs, bool overwrite,
                    const std::vector<std::string>& inputs = {});

// Replaces the content of `file` by `text`, or writes `text` to the stream that
// `file` names. A file holds either the old or the whole new content, also
// after a power failure. Throws InputError that names `file`.
void WriteFile(const std::string& file, const std::string& text);

// WriteFile() with the error as a status.
absl::Status WriteNewFile(const std::string& file, const std::string& text);

}  // namespace hvdlite::support
