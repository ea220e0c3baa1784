#include "support/command_line.h"

#include <CLI/CLI.hpp>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/environment.h"
#include "support/input_error.h"
#include "support/text_table.h"

namespace hvdlite::support {
namespace {

constexpr char kExitCodes[] =
    "Exit codes: 0 success, 1 failure, 2 a wrong flag, setting or input file, "
    "74 finished, but a report cannot be written, 85 stopped early on request, "
    "130 stopped by Ctrl-C.";

// Wraps a line of CLI11's help. The description of a flag begins after two
// blanks and stays in its column.
std::string InLines(const std::string& line) {
  const size_t name = line.find_first_not_of(' ');
  if (name == line.npos) return line + "\n";
  const size_t gap = name == 0 ? line.npos : line.find("  ", name);
  const size_t after_gap =
      gap == line.npos ? line.npos : line.find_first_not_of(' ', gap);
  if (after_gap != line.npos) {
    return Wrapped(line.substr(after_gap), line.substr(0, after_gap),
                   kHelpWidth);
  }
  // A list of choices, {a,b}, is one word.
  const size_t blank = line.find(' ', name);
  if (line[name] == '-' && blank != line.npos) {
    return Wrapped(absl::StrReplaceAll(line.substr(blank + 1),
                                       {{", ", ", "}, {",", ", "}}),
                   line.substr(0, blank + 1), kHelpWidth);
  }
  return Wrapped(line.substr(name), line.substr(0, name), kHelpWidth);
}

// The first argument that is no flag or command; "": none.
std::string FirstUnknown(const CLI::App& app) {
  for (const std::string& argument : app.remaining(/*recurse=*/true)) {
    if (argument != "--") return argument;
  }
  return "";
}

std::string DescribeUnknown(const CLI::App& app) {
  std::string argument = FirstUnknown(app);
  argument = argument.substr(0, argument.find('='));
  const bool is_flag = argument.starts_with('-');
  std::vector<std::string> known;
  const auto add_options = [&known](const CLI::App& one) {
    for (const CLI::Option* option : one.get_options()) {
      for (const std::string& name : option->get_lnames()) {
        known.push_back("--" + name);
      }
    }
  };
  if (is_flag) {
    add_options(app);
    for (const CLI::App* command : app.get_subcommands()) add_options(*command);
  } else if (app.get_subcommands().empty()) {
    for (const CLI::App* command : app.get_subcommands(/*filter=*/{})) {
      known.push_back(command->get_name());
    }
  }
  const std::string nearest = base::NearestName(argument, known);
  return (is_flag ? "unknown flag " + argument
                  : "unexpected argument '" + argument + "'") +
         (nearest.empty() ? "" : "; did you mean " + nearest + "?");
}

// Rewrites CLI11's message for a flag without its value, "--resume: 1 required
// FILE|auto missing". Other text is unchanged.
std::string DescribeError(const std::string& text) {
  const size_t between = text.find(": 1 required ");
  absl::string_view type =
      between == text.npos ? "" : absl::string_view(text).substr(between + 13);
  if (!absl::ConsumeSuffix(&type, " missing")) return text;
  // "TEXT:{a,b}": the choices are more useful than the type.
  const size_t colon = type.find(':');
  if (colon != absl::string_view::npos) type.remove_prefix(colon + 1);
  return absl::StrCat(text.substr(0, between), " needs a value",
                      type.empty() ? "" : ": ", type);
}

EarlyEnd Refuse(const CLI::App& app, const std::string& reason) {
  return {app.get_name() + ": " + reason + "\nRun " + app.get_name() +
              " --help for all flags.\n",
          kInputErrorExitCode};
}

}  // namespace

void AddVersion(CLI::App& app) {
  app.set_version_flag("--version",
                       app.get_name() + " (hvdlite) " + HVDLITE_VERSION,
                       "Print the version");
}

std::string HelpOf(const CLI::App& app) {
  const std::string help = app.help();
  std::string text;
  for (const absl::string_view line :
       absl::StrSplit(absl::StripSuffix(help, "\n"), '\n')) {
    absl::StrAppend(&text, line.size() <= kHelpWidth
                               ? absl::StrCat(line, "\n")
                               : InLines(std::string(line)));
  }
  return text;
}

EarlyEnd EndOfParsing(const CLI::App& app, const CLI::ParseError& error) {
  if (dynamic_cast<const CLI::CallForHelp*>(&error) != nullptr) {
    return {HelpOf(app), 0};
  }
  if (dynamic_cast<const CLI::CallForVersion*>(&error) != nullptr) {
    return {std::string(error.what()) + "\n", 0};
  }
  // A missing argument may have been mistyped.
  const bool may_be_mistyped =
      dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr ||
      dynamic_cast<const CLI::RequiredError*>(&error) != nullptr;
  const bool is_unknown = may_be_mistyped && !FirstUnknown(app).empty();
  return Refuse(
      app, is_unknown ? DescribeUnknown(app) : DescribeError(error.what()));
}

std::optional<EarlyEnd> internal::ParseArguments(
    const std::string& program, const std::string& description, int argc,
    const char* const* argv, const std::function<void(CLI::App&)>& add,
    const std::function<void()>& check) {
  CLI::App app(description, program);
  app.footer(kExitCodes);
  AddVersion(app);
  app.option_defaults()->always_capture_default();
  add(app);
  for (CLI::Option* option : app.get_options()) {
    if (option->get_items_expected_max() == 1) {
      option->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    }
  }
  try {
    app.parse(argc, argv);
    check();
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    return EndOfParsing(app, error);
  } catch (const InputError& error) {
    return Refuse(app, error.what());
  }
}

}  // namespace hvdlite::support
