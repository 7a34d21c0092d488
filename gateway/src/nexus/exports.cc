#include "nexus/exports.h"

#include <utility>

namespace sluice::lun {

std::shared_ptr<Target> Exports::find(std::string_view iqn) const {
  std::lock_guard lock(mutex_);
  const auto at = targets_.find(iqn);
  return at == targets_.end() ? nullptr : at->second;
}

std::vector<std::shared_ptr<Target>> Exports::all() const {
  std::vector<std::shared_ptr<Target>> targets;
  std::lock_guard lock(mutex_);
  targets.reserve(targets_.size());
  for (const auto& [iqn, target] : targets_) targets.push_back(target);
  return targets;
}

void Exports::add(std::shared_ptr<Target> target) {
  std::lock_guard lock(mutex_);
  std::string iqn = target->iqn();
  targets_.insert_or_assign(std::move(iqn), std::move(target));
}

void Exports::remove(std::string_view iqn, Reactors& reactors) {
  if (const auto target = find(iqn)) target->set_luns({}, reactors);
  std::lock_guard lock(mutex_);
  const auto at = targets_.find(iqn);
  if (at != targets_.end()) targets_.erase(at);
}

std::vector<PortalInfo> Exports::portals() const {
  std::lock_guard lock(mutex_);
  return portals_;
}

void Exports::set_portals(std::vector<PortalInfo> portals) {
  std::lock_guard lock(mutex_);
  portals_ = std::move(portals);
}

std::shared_ptr<const HostDirectory> Exports::hosts() const {
  std::lock_guard lock(mutex_);
  return hosts_;
}

void Exports::set_hosts(std::shared_ptr<const HostDirectory> hosts) {
  std::lock_guard lock(mutex_);
  hosts_.swap(hosts);  // the last user of the old ones wipes them, outside the lock
}

DiscoveryPolicy Exports::discovery_policy() const {
  std::lock_guard lock(mutex_);
  return discovery_policy_;
}

void Exports::set_discovery_policy(DiscoveryPolicy policy) {
  std::lock_guard lock(mutex_);
  discovery_policy_ = policy;
}

HostAccess Exports::discovery_access() const {
  std::lock_guard lock(mutex_);
  return discovery_;
}

bool Exports::set_discovery_access(HostAccess access) {
  std::lock_guard lock(mutex_);
  if (access == discovery_) return false;
  discovery_ = std::move(access);
  return true;
}

}  // namespace sluice::lun
