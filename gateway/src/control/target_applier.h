// Applies targets: their LUNs, access lists and ports, and the hosts that discovery admits. A LUN
// or host that can't be applied is omitted and reported; the target stays available to the others.
//
// Threads: the control thread only; host_of() on any thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/reactors.h"
#include "control/desired.h"
#include "control/lun_numbers.h"
#include "control/volume/volumes.h"
#include "nexus/exports.h"

namespace sluice::control {

class TargetApplier {
 public:
  struct Setup {
    lun::Exports& exports;
    Reactors& reactors;
    // Access to this target changed: checks again whether its sessions are still permitted.
    std::function<void(const std::string& iqn)> review;
    Volumes& volumes;
    LunNumbers& numbers;
  };
  // Sets the discovery policy to kHosts: a discovery session needs the authentication of its host.
  explicit TargetApplier(Setup setup) : setup_(std::move(setup)) {
    setup_.exports.set_discovery_policy(lun::DiscoveryPolicy::kHosts);
  }

  // `now`: the state that is being applied; it names this gateway's number and the hosts. Error:
  // what was omitted, with the reasons.
  Result<void> put(const wire::DesiredTarget& target, const Snapshot& now);
  void remove(const std::string& iqn);
  // The hosts of all targets of `now`, for discovery.
  void show_hosts(const Snapshot& now);

  // uid of the host to which `initiator` belongs at the target `iqn`; empty: unknown.
  std::string host_of(const std::string& iqn, const std::string& initiator) const;

 private:
  std::vector<lun::Target::LunEntry> luns_of(const wire::DesiredTarget& target,
                                             std::string* problem) const;
  static std::vector<lun::HostAccess> hosts_of(const wire::DesiredTarget& target,
                                               const Snapshot& now, std::string* problem);

  const Setup setup_;
};

}  // namespace sluice::control
