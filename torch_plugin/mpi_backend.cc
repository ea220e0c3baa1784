#include <utility>

#include "base/status_macros.h"
#include "collective/mpi/mpi_communicator.h"
#include "collective/mpi/mpi_session.h"
#include "negotiation/in_process/in_process_channel.h"
#include "negotiation/mpi/mpi_channel.h"
#include "torch_plugin/backend.h"

namespace hvdlite::internal {
namespace {

class MpiBackend final : public Backend {
 public:
  MpiBackend(std::unique_ptr<collective::MpiSession> session,
             std::unique_ptr<collective::Communicator> communicator,
             std::unique_ptr<negotiation::ControlChannel> channel)
      : session_(std::move(session)),
        communicator_(std::move(communicator)),
        channel_(std::move(channel)),
        only_once_(!session_->application_owns_mpi()) {}

  const collective::Topology& topology() const override {
    return session_->topology();
  }
  collective::Communicator& communicator() override { return *communicator_; }
  negotiation::ControlChannel& channel() override { return *channel_; }

  absl::Status Close() override {
    channel_.reset();
    communicator_.reset();
    return session_->Finalize();
  }

  bool only_once() const override { return only_once_; }

 private:
  std::unique_ptr<collective::MpiSession> session_;
  std::unique_ptr<collective::Communicator> communicator_;
  std::unique_ptr<negotiation::ControlChannel> channel_;
  const bool only_once_;
};

// A single rank has nobody to hear from: it need not poll MPI.
absl::StatusOr<std::unique_ptr<negotiation::ControlChannel>> CreateChannel(
    int size) {
  if (size > 1) return negotiation::CreateMpiChannel();
  HVDLITE_ASSIGN_OR_RETURN(auto channels,
                           negotiation::CreateInProcessChannels(1));
  return std::move(channels.front());
}

}  // namespace

absl::StatusOr<std::unique_ptr<Backend>> CreateMpiBackend() {
  HVDLITE_ASSIGN_OR_RETURN(std::unique_ptr<collective::MpiSession> session,
                           collective::MpiSession::Start());
  HVDLITE_ASSIGN_OR_RETURN(
      std::unique_ptr<collective::Communicator> communicator,
      collective::CreateMpiCommunicator());
  HVDLITE_ASSIGN_OR_RETURN(std::unique_ptr<negotiation::ControlChannel> channel,
                           CreateChannel(session->topology().size));
  return std::make_unique<MpiBackend>(
      std::move(session), std::move(communicator), std::move(channel));
}

}  // namespace hvdlite::internal
