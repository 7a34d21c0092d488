// The answer to SendTargets (RFC 7143 Appendix C): which targets an initiator may see, and where.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "iscsi/login/parameters.h"
#include "nexus/exports.h"

namespace sluice::iscsi {

// The address a portal is shown under: a wildcard listen address becomes the address the initiator
// came to (`local`, "ip:port") with the portal's own port. Empty: the portal can't be shown,
// because the initiator came over another address family.
std::string shown_address(std::string_view portal, std::string_view local);

// Produces the answer piece by piece, so that however many targets there are, only their names and
// the piece under way are in memory. It holds no target: an initiator that never asks for the rest
// must not keep a removed one alive.
class SendTargets {
 public:
  // `value` is the key's value. false: it may not be asked in this session (answer Reject).
  bool ask(const lun::Exports& exports, const Parameters& session, std::string_view value,
           std::string_view local_address);
  // Appends the keys of whole targets until `text` holds at least `size` bytes or all are told.
  void append(std::string* text, size_t size);
  bool done() const { return next_ == names_.size(); }

 private:
  const lun::Exports* exports_ = nullptr;
  std::vector<std::string> names_;
  size_t next_ = 0;
  std::string initiator_;
  bool own_only_ = false;               // the session's own target: it was admitted already
  std::vector<std::string> addresses_;  // "address,tpgt" of every portal, for hosts without a list
};

}  // namespace sluice::iscsi
