#include "negotiation/channel/ucx/ucx_worker.h"

#include <poll.h>
#include <time.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"

namespace hvdlite::negotiation {
namespace {

// UCX looks for HVDLITE_UCX_TLS first, and then for UCX_TLS.
constexpr char kPrefix[] = "HVDLITE";

// Sending and closing do not make the descriptor readable in all cases.
constexpr absl::Duration kLongestPause = absl::Milliseconds(1);

struct ConfigReleaser {
  void operator()(ucp_config_t* config) const { ucp_config_release(config); }
};
using Config = std::unique_ptr<ucp_config_t, ConfigReleaser>;

bool SetByUser(const base::Environment& environment, const std::string& name) {
  return environment.get(absl::StrCat("UCX_", name)).has_value() ||
         environment.get(absl::StrCat(kPrefix, "_UCX_", name)).has_value();
}

absl::StatusOr<Config> ReadConfig(const std::string& transports,
                                  const base::Environment& environment) {
  ucp_config_t* read = nullptr;
  HVDLITE_RETURN_IF_ERROR(
      UcxStatus(ucp_config_read(kPrefix, nullptr, &read), "ucp_config_read"));
  Config config(read);
  struct Setting {
    std::string name;
    std::string value;
    bool required = false;
  };
  const std::vector<Setting> settings = {
      {"TLS", transports, true},
      // UCX's thread for connections shares a lock with the calling thread.
      // With a spin lock, a caller of higher priority could keep that thread
      // from finishing.
      {"USE_MT_MUTEX", "y"},
      // Without this, UCX 1.13 aborts by an assertion if the peer dies during a
      // TCP message that is sent without a copy.
      {"ZCOPY_THRESH", "inf"},
  };
  for (const Setting& setting : settings) {
    if (SetByUser(environment, setting.name)) continue;
    const ucs_status_t status = ucp_config_modify(
        config.get(), setting.name.c_str(), setting.value.c_str());
    // Other versions of UCX may not have the optional settings.
    if (!setting.required) continue;
    HVDLITE_RETURN_IF_ERROR(UcxStatus(
        status, absl::StrCat("setting ", setting.name, "=", setting.value)));
  }
  return config;
}

}  // namespace

absl::Status UcxStatus(ucs_status_t status, absl::string_view call) {
  if (status == UCS_OK) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("UCX: ", call, ": ", ucs_status_string(status)));
}

absl::StatusOr<std::unique_ptr<UcxWorker>> UcxWorker::Create(
    const std::string& transports, const base::Environment& environment) {
  std::unique_ptr<UcxWorker> worker(new UcxWorker);
  HVDLITE_RETURN_IF_ERROR(worker->Start(transports, environment));
  return worker;
}

UcxWorker::~UcxWorker() {
  if (abandoned_) return;
  if (worker_ != nullptr) ucp_worker_destroy(worker_);
  if (context_ != nullptr) ucp_cleanup(context_);
}

absl::Status UcxWorker::Start(const std::string& transports,
                              const base::Environment& environment) {
  HVDLITE_ASSIGN_OR_RETURN(const Config config,
                           ReadConfig(transports, environment));
  ucp_params_t params = {};
  params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_NAME;
  params.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
  params.name = "hvdlite";
  HVDLITE_RETURN_IF_ERROR(
      UcxStatus(ucp_init(&params, config.get(), &context_), "ucp_init"));

  ucp_worker_params_t worker_params = {};
  worker_params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  worker_params.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  HVDLITE_RETURN_IF_ERROR(
      UcxStatus(ucp_worker_create(context_, &worker_params, &worker_),
                "ucp_worker_create"));
  HVDLITE_RETURN_IF_ERROR(UcxStatus(ucp_worker_get_efd(worker_, &descriptor_),
                                    "ucp_worker_get_efd"));

  ucp_address_t* address = nullptr;
  size_t length = 0;
  HVDLITE_RETURN_IF_ERROR(
      UcxStatus(ucp_worker_get_address(worker_, &address, &length),
                "ucp_worker_get_address"));
  address_.assign(reinterpret_cast<const char*>(address), length);
  ucp_worker_release_address(worker_, address);
  return absl::OkStatus();
}

absl::StatusOr<bool> UcxWorker::Arm() {
  const ucs_status_t status = ucp_worker_arm(worker_);
  if (status == UCS_ERR_BUSY) return false;
  HVDLITE_RETURN_IF_ERROR(UcxStatus(status, "ucp_worker_arm"));
  return true;
}

absl::Status UcxWorker::ProgressUntil(absl::FunctionRef<bool()> done,
                                      absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  for (;;) {
    while (Progress()) {
      if (done()) return absl::OkStatus();
    }
    if (done()) return absl::OkStatus();
    const absl::Duration left = deadline - absl::Now();
    if (left <= absl::ZeroDuration()) {
      return absl::DeadlineExceededError(
          absl::StrCat("not done within ", absl::FormatDuration(timeout)));
    }
    HVDLITE_ASSIGN_OR_RETURN(const bool armed, Arm());
    if (!armed) continue;
    pollfd watched = {descriptor_, POLLIN, 0};
    const timespec pause = absl::ToTimespec(std::min(left, kLongestPause));
    ppoll(&watched, 1, &pause, nullptr);
  }
}

}  // namespace hvdlite::negotiation
