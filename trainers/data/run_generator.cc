#include "trainers/data/run_generator.h"

#include <exception>
#include <iostream>
#include <system_error>

#include "tools/support/command_line.h"
#include "tools/support/input_error.h"

namespace hvdlite::trainers {

int RunGenerator(CLI::App& app, int argc, char** argv,
                 const std::function<void()>& generate) {
  support::AddVersion(app);
  try {
    app.parse(argc, argv);
    generate();
  } catch (const CLI::ParseError& error) {
    return support::EndOfParsing(app, error).Tell();
  } catch (const support::InputError& error) {
    std::cerr << app.get_name() << ": " << error.what() << "\n";
    return support::kInputErrorExitCode;
  } catch (const std::exception& error) {
    std::cerr << app.get_name() << ": " << error.what() << "\n";
    return 1;
  }
  return 0;
}

void CreateOutputDirectory(const std::filesystem::path& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) {
    throw support::InputError("cannot create '" + directory.string() +
                              "': " + error.message());
  }
}

}  // namespace hvdlite::trainers
