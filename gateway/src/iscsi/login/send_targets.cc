#include "iscsi/login/send_targets.h"

#include <algorithm>
#include <memory>

#include "iscsi/login/chap.h"
#include "iscsi/login/names.h"
#include "iscsi/login/text.h"

namespace sluice::iscsi {
namespace {

constexpr std::string_view kMapped = "[::ffff:";

struct Address {
  std::string_view host;  // with its brackets if it has some
  std::string_view port;
};

Address split_address(std::string_view text) {
  size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || text.ends_with(']')) return {text, "3260"};
  return {text.substr(0, colon), text.substr(colon + 1)};
}

// An IPv4 address that came over a dual-stack socket, without its IPv6 clothes.
std::string_view plain_host(std::string_view host) {
  bool mapped =
      host.starts_with(kMapped) && host.ends_with(']') && host.find('.') != std::string_view::npos;
  return mapped ? host.substr(kMapped.size(), host.size() - kMapped.size() - 1) : host;
}

}  // namespace

std::string shown_address(std::string_view portal, std::string_view local) {
  Address listen = split_address(portal);
  bool any4 = listen.host == "0.0.0.0";
  bool any6 = listen.host == "[::]";
  std::string_view host = any4 || any6 ? plain_host(split_address(local).host) : listen.host;
  if (host.empty() || (any4 && host.starts_with('['))) return {};
  return std::string(host) + ":" + std::string(listen.port);
}

bool SendTargets::ask(const lun::Exports& exports, const Parameters& session,
                      std::string_view value, std::string_view local_address) {
  exports_ = &exports;
  names_.clear();
  addresses_.clear();
  next_ = 0;
  initiator_ = session.initiator_name;
  own_only_ = !session.discovery;
  if (value == "All") {
    if (!session.discovery) return false;
    for (const auto& target : exports.all()) names_.push_back(target->iqn());
  } else if (value.empty()) {
    if (session.discovery) return false;
    names_.push_back(session.target_name);
  } else {
    Result<std::string> name = normalise_name(value);
    if (!name) return false;
    if (session.discovery || *name == session.target_name) names_.push_back(*name);
  }
  for (const lun::PortalInfo& portal : exports.portals()) {
    std::string shown = shown_address(portal.address, local_address);
    if (shown.empty()) continue;
    shown += "," + std::to_string(portal.tpgt);
    if (std::find(addresses_.begin(), addresses_.end(), shown) == addresses_.end()) {
      addresses_.push_back(std::move(shown));
    }
  }
  return true;
}

void SendTargets::append(std::string* text, size_t size) {
  for (; next_ < names_.size() && text->size() < size; ++next_) {
    const std::shared_ptr<lun::Target> target = exports_->find(names_[next_]);
    if (target == nullptr) continue;
    lun::HostAccess access;
    const bool admitted = target->access_for(initiator_, &access);
    wipe(&access);
    if (!own_only_ && !admitted) continue;
    append_pair(text, "TargetName", target->iqn());
    const auto& shown = access.portals.empty() ? addresses_ : access.portals;
    for (const std::string& address : shown) append_pair(text, "TargetAddress", address);
  }
}

}  // namespace sluice::iscsi
