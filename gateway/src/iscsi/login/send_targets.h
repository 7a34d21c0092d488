// The answer to SendTargets (RFC 7143 Appendix C): the targets that an initiator may see, and their
// addresses.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "iscsi/login/parameters.h"
#include "nexus/exports.h"

namespace sluice::iscsi {

// The address of a portal for an initiator: a wildcard listen address is replaced by the address to
// which the initiator connected (`local`, "ip:port"), with the portal's port. Empty: not reachable,
// because the initiator uses another address family.
std::string shown_address(std::string_view portal, std::string_view local);

// Produces the answer in pieces, so that only the target names and the current piece are in memory.
// It references no target, because an initiator that never requests the rest must not keep a
// removed target alive.
class SendTargets {
 public:
  // `value` is the key's value. False: not permitted in this session (answer Reject).
  bool ask(const lun::Exports& exports, const Parameters& session, std::string_view value,
           std::string_view local_address);
  // Appends the keys of whole targets until `text` has at least `size` bytes or all are included.
  void append(std::string* text, size_t size);
  bool done() const { return next_ == names_.size(); }

 private:
  const lun::Exports* exports_ = nullptr;
  std::vector<std::string> names_;
  size_t next_ = 0;
  std::string initiator_;
  bool own_only_ = false;               // the session's own target, which is already admitted
  std::vector<std::string> addresses_;  // "address,tpgt" of every portal, for hosts without a list
};

}  // namespace sluice::iscsi
