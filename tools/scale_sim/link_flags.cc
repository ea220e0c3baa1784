#include "tools/scale_sim/link_flags.h"

#include "tools/support/flag_checks.h"

namespace hvdlite::scale_sim {
namespace {

void AddFlagsOfLink(CLI::App& app, const std::string& prefix,
                    const std::string& where, LinkParameters& link) {
  app.add_option("--" + prefix + "-latency-us", link.latency_us, "L " + where)
      ->check(base::NotNegative());
  app.add_option("--" + prefix + "-overhead-us", link.overhead_us,
                 "o, a core's time per message sent or received, " + where)
      ->check(base::NotNegative());
  app.add_option("--" + prefix + "-gap-us", link.gap_us,
                 "g, between messages at a port, " + where)
      ->check(base::NotNegative());
  app.add_option("--" + prefix + "-ns-per-byte", link.ns_per_byte, "G " + where)
      ->check(base::NotNegative());
}

}  // namespace

void AddLinkFlags(CLI::App& app, LinkFlags& flags) {
  app.add_option("--network", flags.network,
                 "Between nodes (docs/scale_sim.md says where the figures are "
                 "from)")
      ->check(CLI::IsMember({"tcp", "infiniband", "tofu"}))
      ->capture_default_str();
  AddFlagsOfLink(app, "node", "within a node", flags.within_node);
  AddFlagsOfLink(app, "net", "between nodes, instead of the network's",
                 flags.between_nodes);
}

LinkParameters BetweenNodes(const LinkFlags& flags) {
  LinkParameters link = *LinkPreset(flags.network);
  const auto replace = [](double flag, double& value) {
    if (flag >= 0) value = flag;
  };
  replace(flags.between_nodes.latency_us, link.latency_us);
  replace(flags.between_nodes.overhead_us, link.overhead_us);
  replace(flags.between_nodes.gap_us, link.gap_us);
  replace(flags.between_nodes.ns_per_byte, link.ns_per_byte);
  return link;
}

}  // namespace hvdlite::scale_sim
