// The targets and portals of this gateway. Login and discovery read them; configuration reloads and
// the control plane change them.
//
// Threads: any reactor may look up and takes a short lock; the I/O path never does. One control
// thread makes the changes.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "nexus/target.h"

namespace sluice::lun {

class HostDirectory;

// A portal in discovery answers (DESIGN §1: listen and advertised addresses may differ).
struct PortalInfo {
  // "192.0.2.1:3260" or "[2001:db8::1]:3260"; a wildcard address is replaced by the address to
  // which the initiator connected
  std::string address;
  uint16_t tpgt = 1;
  uint16_t relative_port = 1;
};

// The authentication of a discovery session.
enum class DiscoveryPolicy : uint8_t {
  kOneCredential,  // the same for every initiator: Exports::discovery_access()
  kHosts,          // as for the host's targets; other initiators are refused
};

class Exports {
 public:
  std::shared_ptr<Target> find(std::string_view iqn) const;  // nullptr: no such target
  std::vector<std::shared_ptr<Target>> all() const;          // sorted by name
  void add(std::shared_ptr<Target> target);                  // replaces one of the same name
  // Removes the target, and its LUNs from the nexuses that have it.
  void remove(std::string_view iqn, Reactors& reactors);

  std::vector<PortalInfo> portals() const;
  void set_portals(std::vector<PortalInfo> portals);

  // All hosts of all targets, for nexus/login_access.h; null: not set.
  std::shared_ptr<const HostDirectory> hosts() const;
  void set_hosts(std::shared_ptr<const HostDirectory> hosts);

  DiscoveryPolicy discovery_policy() const;
  void set_discovery_policy(DiscoveryPolicy policy);
  // CHAP for discovery sessions under DiscoveryPolicy::kOneCredential; empty: none required.
  HostAccess discovery_access() const;
  // False: it is in force already.
  bool set_discovery_access(HostAccess access);

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Target>, std::less<>> targets_;
  std::vector<PortalInfo> portals_;
  std::shared_ptr<const HostDirectory> hosts_;
  DiscoveryPolicy discovery_policy_ = DiscoveryPolicy::kOneCredential;
  HostAccess discovery_;
};

}  // namespace sluice::lun
