// Judges what UCX can use between hosts.
#pragma once

#include <optional>
#include <vector>

#include "tools/doctor/checks/ucx_devices.h"
#include "tools/doctor/finding.h"

namespace hvdlite::doctor {

Finding JudgeUcx(const std::optional<std::vector<UcxDevice>>& devices,
                 int hosts);

}  // namespace hvdlite::doctor
