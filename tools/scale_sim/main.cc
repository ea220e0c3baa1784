// scale_sim: the negotiation of up to thousands of ranks, simulated.

#include <CLI/CLI.hpp>
#include <iostream>

#include "support/command_line.h"
#include "support/interrupt_notice.h"
#include "tools/scale_sim/commands.h"

namespace hvdlite::scale_sim {
namespace {

int Main(int argc, char** argv) {
  support::TellIfInterrupted(
      "scale_sim", "no file is written; the same command begins anew");
  CLI::App app(
      "Simulates the negotiation of worlds of many ranks in virtual time, and "
      "prints what it costs as a table. See docs/scale_sim.md.",
      "scale_sim");
  hvdlite::support::AddVersion(app);
  app.require_subcommand(0, 1);
  NegotiationFlags negotiation;
  AddNegotiationFlags(app, negotiation);
  CLI::App* const life = app.add_subcommand(
      "life",
      "Tells what the phases of a world's life cost its busiest rank: steps "
      "that announce, a steady one, ranks that are late, shutdown.");
  LifeFlags life_flags;
  AddLifeFlags(*life, life_flags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return support::EndOfParsing(app, error).Tell();
  }
  if (!app.get_subcommands().empty()) {
    for (const CLI::Option* option : app.get_options()) {
      if (option->count() == 0) continue;
      std::cerr
          << "scale_sim: " << option->get_name()
          << " is for the simulation without a command; flags of a command "
             "follow it\n";
      return 2;
    }
  }
  if (life->parsed()) return RunLife(life_flags);
  return RunNegotiation(negotiation);
}

}  // namespace
}  // namespace hvdlite::scale_sim

int main(int argc, char** argv) { return hvdlite::scale_sim::Main(argc, argv); }
