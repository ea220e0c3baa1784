#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "tools/doctor/check.h"
#include "tools/doctor/checks/world_checks.h"

namespace hvdlite::doctor {
namespace {

std::string OneOf(const std::vector<std::string>& names) {
  return names.empty() ? "none" : absl::StrJoin(names, ", ");
}

}  // namespace

TransportFacts TransportsIn(absl::Span<const support::Library> loaded) {
  TransportFacts facts;
  for (const support::Library& library : loaded) {
    absl::string_view name = library.name;
    if (!absl::ConsumePrefix(&name, "mca_")) continue;
    name = name.substr(0, name.find(".so"));
    if (absl::ConsumePrefix(&name, "pml_")) facts.pml.emplace_back(name);
    if (absl::ConsumePrefix(&name, "btl_")) facts.btl.emplace_back(name);
    if (absl::ConsumePrefix(&name, "mtl_")) facts.mtl.emplace_back(name);
  }
  return facts;
}

Finding JudgeTransports(const TransportFacts& facts) {
  if (facts.pml.empty()) {
    return {.verdict = Verdict::kNote,
            .seen = absl::StrCat(facts.mpi_library,
                                 " does not report its transports")};
  }
  Finding finding = {
      .seen = absl::StrCat(
          "Open MPI sends messages with ", OneOf(facts.pml), " (pml), over ",
          absl::c_linear_search(facts.pml, "ucx")
              ? "the devices that UCX chooses"
          : facts.mtl.empty() ? absl::StrCat(OneOf(facts.btl), " (btl)")
                              : absl::StrCat(OneOf(facts.mtl), " (mtl)"))};
  const bool over_tcp = absl::c_linear_search(facts.pml, "ob1") &&
                        !absl::c_linear_search(facts.btl, "openib") &&
                        !absl::c_linear_search(facts.btl, "ofi");
  if (facts.hosts > 1 && over_tcp && !facts.fast_devices.empty()) {
    finding.verdict = Verdict::kProblem;
    absl::StrAppend(&finding.seen, ", although it could use ",
                    absl::StrJoin(facts.fast_devices, ", "));
    finding.remedy = "mpirun --mca pml ucx ... (or export OMPI_MCA_pml=ucx)";
  }
  return finding;
}

absl::StatusOr<Findings> RunTransports(Session& session) {
  if (!session.mpi.has_value()) {
    return Findings{{.seen = "MPI is not used"}};
  }
  TransportFacts facts = TransportsIn(support::LoadedLibraries());
  facts.mpi_library = session.mpi->library;
  facts.hosts = session.topology.cross_size;
  for (const UcxDevice& device :
       UcxDevices().value_or(std::vector<UcxDevice>())) {
    if (device.fast) facts.fast_devices.push_back(device.device);
  }
  return Findings{JudgeTransports(facts)};
}

}  // namespace hvdlite::doctor
