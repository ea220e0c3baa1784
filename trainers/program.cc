#include "trainers/program.h"

#include <hvdlite/hvdlite.h>

#include <exception>
#include <iostream>

#include "tools/support/input_error.h"
#include "trainers/agreement.h"
#include "trainers/divergence.h"

namespace hvdlite::trainers {
namespace {

// After an error that all ranks threw.
int EndTogether(const std::string& name, const std::exception& error,
                int exit_code) {
  if (rank() == 0) std::cerr << name << ": " << error.what() << "\n";
  shutdown();
  return exit_code;
}

int InitAndTrain(const std::string& name, const std::function<void()>& train) {
  init();
  try {
    train();
  } catch (const InputError& error) {
    return EndTogether(name, error, kInputErrorExitCode);
  } catch (const DivergenceError& error) {
    return EndTogether(name, error, 1);
  }
  shutdown();
  return 0;
}

}  // namespace

int RunProgram(const std::string& name, const std::function<void()>& train) {
  try {
    return InitAndTrain(name, train);
  } catch (const std::exception& error) {
    // The other ranks learn of it when this process ends.
    std::string message = name + ": ";
    if (is_initialized()) message += "rank " + std::to_string(rank()) + ": ";
    message += MessageOf(error) + "\n";
    std::cerr << message << std::flush;
    return 1;
  }
}

int EndEarly(const EarlyEnd& end) {
  // It is the same on all ranks. Without a working world, every process prints.
  bool prints = true;
  try {
    init();
    prints = rank() == 0;
  } catch (const std::exception&) {
    prints = true;
  }
  if (prints) (end.exit_code == 0 ? std::cout : std::cerr) << end.text;
  std::cout << std::flush;
  shutdown();  // rank 0 has printed before any process ends
  return end.exit_code;
}

}  // namespace hvdlite::trainers
