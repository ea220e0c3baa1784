#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tools/doctor/check.h"
#include "tools/doctor/checks/world_checks.h"

namespace hvdlite::doctor {
Finding JudgeUcx(const std::optional<std::vector<UcxDevice>>& devices,
                 int hosts) {
  if (!devices.has_value()) {
    return {.verdict = hosts > 1 ? Verdict::kWarning : Verdict::kNote,
            .seen =
                "hvdlite was built without UCX: control messages between "
                "hosts use MPI, which must be polled",
            .remedy = "apt-get install libucx-dev, then build hvdlite again"};
  }
  std::map<std::string, std::vector<std::string>> transports;
  bool fast = false;
  for (const UcxDevice& device : *devices) {
    transports[device.device].push_back(device.transport);
    fast |= device.fast;
  }
  if (transports.empty()) {
    return {.verdict = hosts > 1 ? Verdict::kWarning : Verdict::kNote,
            .seen = "UCX finds no network device",
            .remedy = hosts > 1 ? "run ucx_info -d, and check whether "
                                  "UCX_NET_DEVICES or UCX_TLS is set"
                                : ""};
  }
  return {.seen = absl::StrCat(
              "UCX finds ",
              absl::StrJoin(transports, ", ",
                            [](std::string* out, const auto& device) {
                              absl::StrAppend(
                                  out, device.first, " (",
                                  absl::StrJoin(device.second, ", "), ")");
                            }),
              fast ? "" : ": no network faster than Ethernet")};
}

absl::StatusOr<Findings> RunUcx(Session& session) {
  return Findings{JudgeUcx(UcxDevices(), session.topology.cross_size)};
}

}  // namespace hvdlite::doctor
