// Makes a desired state true, object by object: one that can't be is refused with the reason, the
// others go on (DESIGN R15). Level-triggered: what was refused is tried again with every update.
//
// Threads: one, the control thread. Nothing here waits for a disk or another process; volumes do
// that in turns of their own (volumes.h).
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/reactors.h"
#include "control/desired.h"
#include "control/diff.h"
#include "control/lun_numbers.h"
#include "control/volume/volumes.h"
#include "nexus/exports.h"

namespace sluice::control {

// What the rest of the gateway does for this room; main.cc wires it.
struct Surroundings {
  lun::Exports& exports;
  Reactors& reactors;
  // This gateway's number, its forwarding port and the keys of all. Error: the port can't be
  // opened.
  std::function<Result<void>(const wire::DesiredSettings&)> settings;
  // All peers, whenever one changed.
  std::function<void(const std::vector<wire::DesiredPeer>&)> peers;
  // The address bound, "ip:port".
  std::function<Result<std::string>(const wire::DesiredListener&)> open_portal;
  // By the address bound; connections that came in by it stay.
  std::function<void(const std::string& bound)> close_portal;
  // Sessions of this target may have lost their right to be there.
  std::function<void(const std::string& iqn)> review;
};

class Applier {
 public:
  // From now on a discovery session must prove what its host must prove at a target.
  Applier(Surroundings surroundings, Volumes& volumes, LunNumbers& numbers)
      : around_(std::move(surroundings)), volumes_(volumes), numbers_(numbers) {
    around_.exports.set_discovery_policy(lun::DiscoveryPolicy::kHosts);
  }

  // From what was applied before to `next`. All that is refused now.
  std::map<Key, std::string> apply(Snapshot next);
  // Tries again what is refused.
  std::map<Key, std::string> apply_again();
  const std::map<Key, std::string>& refused() const { return refused_; }

  // uid of the host that this initiator is, for this target; empty: unknown.
  std::string host_of(const std::string& iqn, const std::string& initiator) const;

 private:
  struct Listening {
    wire::DesiredListener listener;
    std::string bound;
  };
  void run(const Action& action);
  Result<void> put(const Action& action);
  void remove(const Action& action);
  Result<void> put_settings(const wire::DesiredSettings& settings);
  Result<void> put_listener(const Key& key, const wire::DesiredListener& listener);
  Result<void> put_target(const wire::DesiredTarget& target);
  std::vector<lun::Target::LunEntry> luns_of(const wire::DesiredTarget& target,
                                             std::string* problem) const;
  std::vector<lun::HostAccess> hosts_of(const wire::DesiredTarget& target,
                                        std::string* problem) const;
  void show_hosts();
  void remove_target(const std::string& iqn);
  void show_portals();
  void tell_peers();

  const Surroundings around_;
  Volumes& volumes_;
  LunNumbers& numbers_;
  Snapshot now_;
  std::map<Key, std::string> refused_;
  std::map<Key, Listening> listening_;
};

}  // namespace sluice::control
