#include "nexus/login_access.h"

#include "nexus/host_directory.h"

namespace sluice::lun {
namespace {

// A refused login, with the authentication that `initiator` needs at every target.
LoginAccess refusal(const HostDirectory* hosts, std::string_view initiator, std::string why) {
  LoginAccess access;
  access.why = std::move(why);
  if (hosts == nullptr) return access;
  if (const HostAccess* known = hosts->find(initiator)) {
    access.host.chap = known->chap;
    access.host.mutual = known->mutual;
  } else {
    access.provable = !hosts->asks_chap();
  }
  return access;
}

LoginAccess discovery_access(const Exports& exports, std::string_view initiator) {
  LoginAccess access;
  if (exports.discovery_policy() == DiscoveryPolicy::kOneCredential) {
    access.host = exports.discovery_access();
    access.admitted = true;
    return access;
  }
  const std::shared_ptr<const HostDirectory> hosts = exports.hosts();
  const HostAccess* known = hosts == nullptr ? nullptr : hosts->find(initiator);
  if (known == nullptr) {
    return refusal(hosts.get(), initiator,
                   std::string(initiator) + " is no host of any target of this gateway");
  }
  access.host = *known;
  access.admitted = true;
  return access;
}

}  // namespace

LoginAccess login_access(const Exports& exports, std::string_view initiator,
                         std::optional<std::string_view> target) {
  if (!target) return discovery_access(exports, initiator);
  LoginAccess access;
  access.target = exports.find(*target);
  if (access.target != nullptr && access.target->access_for(initiator, &access.host)) {
    access.admitted = true;
    return access;
  }
  return refusal(exports.hosts().get(), initiator,
                 access.target == nullptr
                     ? "there is no target " + std::string(*target) + " here"
                     : std::string(initiator) + " may not log in to " + std::string(*target));
}

}  // namespace sluice::lun
