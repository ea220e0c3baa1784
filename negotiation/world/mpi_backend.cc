#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "collective/mpi/mpi_communicator.h"
#include "collective/mpi/mpi_session.h"
#include "negotiation/world/backend.h"
#include "negotiation/world/control_plane.h"
#include "negotiation/world/data_plane.h"
#include "negotiation/world/start_agreement.h"
#include "negotiation/world/world_exit.h"

namespace hvdlite::internal {
namespace {

// What a backend consists of, beside the session.
struct Parts {
  collective::Topology topology;
  std::unique_ptr<collective::Communicator> communicator;
  std::unique_ptr<negotiation::ControlChannel> channel;
  std::vector<std::string> warnings;
};

class MpiBackend final : public Backend {
 public:
  MpiBackend(std::unique_ptr<collective::MpiSession> session, Parts parts)
      : session_(std::move(session)),
        parts_(std::move(parts)),
        only_once_(!session_->application_owns_mpi()) {}

  const collective::Topology& topology() const override {
    return parts_.topology;
  }
  collective::Communicator& communicator() override {
    return *parts_.communicator;
  }
  negotiation::ControlChannel& channel() override { return *parts_.channel; }
  const std::vector<std::string>& warnings() const override {
    return parts_.warnings;
  }

  absl::Status Close() override {
    parts_.channel.reset();
    parts_.communicator.reset();
    return session_->Finalize();
  }

  bool only_once() const override { return only_once_; }

 private:
  const std::unique_ptr<collective::MpiSession> session_;
  Parts parts_;
  const bool only_once_;
};

// Makes of the communicator over all ranks what `config` asks for. Errors are
// the same on all ranks, also where their configurations differ.
absl::Status Assemble(const Config& config, const collective::Topology& hosts,
                      Parts& parts) {
  HVDLITE_RETURN_IF_ERROR(AgreeOnConfig(*parts.communicator, config));
  HVDLITE_ASSIGN_OR_RETURN(parts.topology, collective::WithVirtualNodes(
                                               hosts, config.virtual_nodes));
  HVDLITE_ASSIGN_OR_RETURN(
      parts.channel, ChooseControlChannel(config, parts.topology,
                                          *parts.communicator, parts.warnings));
  return ChooseDataPlane(config, parts.topology, parts.communicator,
                         parts.warnings);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Backend>> CreateMpiBackend(
    const Config& config) {
  HVDLITE_ASSIGN_OR_RETURN(std::unique_ptr<collective::MpiSession> session,
                           collective::MpiSession::Start(LeaveAtFinalize));
  Parts parts;
  HVDLITE_ASSIGN_OR_RETURN(parts.communicator,
                           collective::CreateMpiCommunicator());
  const absl::Status status = Assemble(config, session->topology(), parts);
  if (status.ok()) {
    return std::make_unique<MpiBackend>(std::move(session), std::move(parts));
  }
  if (absl::IsInvalidArgument(status)) {
    parts.channel.reset();
    parts.communicator.reset();
    session->Finalize().IgnoreError();  // all ranks have come here
  } else {
    parts.channel.release();
    parts.communicator.release();  // peers may still write to its memory
  }
  return status;
}

}  // namespace hvdlite::internal
