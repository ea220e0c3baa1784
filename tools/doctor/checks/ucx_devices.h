// The network devices that UCX can use.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace hvdlite::doctor {

struct UcxDevice {
  std::string transport;  // "tcp", "rc_mlx5"
  std::string device;     // "eth0", "mlx5_0:1"
  bool fast = false;      // a network device that is not reached over TCP
};

// nullopt where hvdlite was built without UCX. Empty where UCX finds none.
std::optional<std::vector<UcxDevice>> UcxDevices();

}  // namespace hvdlite::doctor
