#include "iscsi/early_requests.h"

#include <algorithm>
#include <utility>

namespace sluice::iscsi {

bool EarlyRequests::add(const pdu::Pdu& pdu, Nanos now) {
  const uint32_t cmd_sn = pdu.header.cmd_sn();
  if (contains(cmd_sn)) return true;
  if (bytes_ + pdu.data_size > kBytes) return false;
  bytes_ += pdu.data_size;
  requests_.push_back({cmd_sn, std::make_unique<pdu::Pdu>(pdu), now});
  return true;
}

std::optional<EarlyRequests::Request> EarlyRequests::take(uint32_t cmd_sn) {
  const auto found = std::ranges::find(requests_, cmd_sn, &Request::cmd_sn);
  if (found == requests_.end()) return std::nullopt;
  Request request = std::move(*found);
  requests_.erase(found);
  if (request.pdu) bytes_ -= request.pdu->data_size;
  return request;
}

void EarlyRequests::cancel(uint32_t cmd_sn) {
  const auto found = std::ranges::find(requests_, cmd_sn, &Request::cmd_sn);
  if (found == requests_.end()) {
    requests_.push_back({cmd_sn, nullptr, 0});
  } else if (found->pdu) {
    drop_pdu(*found);
  }
}

bool EarlyRequests::contains(uint32_t cmd_sn) const {
  return std::ranges::find(requests_, cmd_sn, &Request::cmd_sn) != requests_.end();
}

std::optional<uint32_t> EarlyRequests::cmd_sn_of(uint32_t itt) const {
  const auto found = std::ranges::find_if(
      requests_, [itt](const Request& r) { return is_command(r) && r.pdu->header.itt() == itt; });
  if (found == requests_.end()) return std::nullopt;
  return found->cmd_sn;
}

void EarlyRequests::clear() {
  requests_.clear();
  bytes_ = 0;
}

void EarlyRequests::drop_pdu(Request& request) {
  bytes_ -= request.pdu->data_size;
  request.pdu.reset();
}

}  // namespace sluice::iscsi
