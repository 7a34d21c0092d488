// The answer to SendTargets (RFC 7143 Appendix C): which targets an initiator may see, and where.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "iscsi/parameters.h"
#include "lun/exports.h"

namespace sluice::iscsi {

// The address a portal is shown under: a wildcard listen address becomes the address the initiator
// came to (`local`, "ip:port") with the portal's own port. Empty: the portal can't be shown,
// because the initiator came over another address family.
std::string shown_address(std::string_view portal, std::string_view local);

// Produces the answer piece by piece, so that however many targets there are, only the piece under
// way is in memory.
class SendTargets {
 public:
  // `value` is the key's value. false: it may not be asked in this session (answer Reject).
  bool ask(const lun::Exports& exports, const Parameters& session, std::string_view value,
           std::string_view local_address);
  // Appends the keys of whole targets until `text` holds at least `size` bytes or all are told.
  void append(std::string* text, size_t size);
  bool done() const { return next_ == targets_.size(); }

 private:
  std::vector<std::shared_ptr<lun::Target>> targets_;
  size_t next_ = 0;
  std::string initiator_;
  bool own_only_ = false;               // the session's own target: it was admitted already
  std::vector<std::string> addresses_;  // "address,tpgt" of every portal
};

}  // namespace sluice::iscsi
