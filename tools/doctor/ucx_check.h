// Judges what UCX can use between hosts.
#pragma once

#include <optional>
#include <vector>

#include "tools/doctor/finding.h"
#include "tools/doctor/ucx_devices.h"

namespace hvdlite::doctor {

Finding JudgeUcx(const std::optional<std::vector<UcxDevice>>& devices,
                 int hosts);

}  // namespace hvdlite::doctor
