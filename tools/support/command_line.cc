#include "tools/support/command_line.h"

#include <CLI/CLI.hpp>
#include <vector>

#include "base/environment.h"
#include "tools/support/input_error.h"

namespace hvdlite::support {
namespace {

constexpr char kExitCodes[] =
    "Exit codes: 0 done, 2 a flag, a setting or an input file is wrong, 74 done\n"
    "but for a report that cannot be written, 85 stopped early as asked, 1\n"
    "anything else, also an input file that turns out to be damaged while it is\n"
    "trained on.";

// About the first argument that no flag takes.
std::string DescribeUnknown(const CLI::App& app) {
  std::string argument = app.remaining().front();
  argument = argument.substr(0, argument.find('='));
  if (!argument.starts_with('-')) {
    return "unexpected argument '" + argument + "'";
  }
  std::vector<std::string> known;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      known.push_back("--" + name);
    }
  }
  const std::string nearest = base::NearestName(argument, known);
  return "unknown flag " + argument +
         (nearest.empty() ? "" : "; did you mean " + nearest + "?");
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
  } catch (const CLI::CallForHelp&) {
    return EarlyEnd{app.help(), 0};
  } catch (const CLI::CallForVersion& version) {
    return EarlyEnd{std::string(version.what()) + "\n", 0};
  } catch (const CLI::ExtrasError&) {
    return Refuse(app, DescribeUnknown(app));
  } catch (const CLI::RequiredError& error) {
    // The flag that is missing may be there, but mistyped.
    return Refuse(
        app, app.remaining().empty() ? error.what() : DescribeUnknown(app));
  } catch (const CLI::ParseError& error) {
    return Refuse(app, error.what());
  } catch (const InputError& error) {
    return Refuse(app, error.what());
  }
}

}  // namespace hvdlite::support
