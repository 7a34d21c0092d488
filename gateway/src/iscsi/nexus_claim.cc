#include "iscsi/nexus_claim.h"

#include <utility>

namespace sluice::iscsi {

std::optional<NexusClaim::Refusal> NexusClaim::refusal(const Request& request) const {
  if (request.key.gateway != 0 && directory_->outdated(request.key, request.nexus)) {
    return Refusal{LoginStatus::kSessionDoesNotExist, "of a nexus that is no more"};
  }
  if (request.tsih == 0) return std::nullopt;
  // A connection reinstatement, which with ERL 0 and one connection replaces the session's only
  // connection and so ends all its tasks (RFC 7143 §6.3.4).
  if (!directory_->matches(request.key, request.tsih)) {
    return Refusal{LoginStatus::kSessionDoesNotExist, "TSIH of no session"};
  }
  // Another CID would add a connection, and MaxConnections is 1.
  if (directory_->cid(request.key) != request.cid) {
    return Refusal{LoginStatus::kTooManyConnections, "a second connection of a session"};
  }
  return std::nullopt;
}

void NexusClaim::take(Request request) {
  claimed_ = std::move(request.key);
  directory_->claim(*claimed_, connection_, request.tsih, request.cid, request.nexus);
}

void NexusClaim::release() {
  if (claimed_) directory_->release(*claimed_, connection_);
  claimed_.reset();
}

}  // namespace sluice::iscsi
