// Applies a desired state object by object; desired/exporter.h applies the targets. An object that
// can't be applied is refused with a reason; the other objects are applied (DESIGN R15). It is
// level-triggered: every update also retries the refused objects.
//
// Threads: the control thread only. No function waits for a disk or another process; volumes do
// that on their own strands (volumes.h).
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/reactors.h"
#include "control/desired.h"
#include "control/diff.h"
#include "control/lun_numbers.h"
#include "control/lun_units.h"
#include "control/volume/volumes.h"
#include "desired/exporter.h"
#include "nexus/exports.h"

namespace sluice::control {

// The parts of the gateway that the applier controls. main.cc sets all members.
struct Surroundings {
  lun::Exports& exports;
  Reactors& reactors;
  // This gateway's number, its forwarding port and the keys. Error: the port can't be opened.
  std::function<Result<void>(const wire::DesiredSettings&)> settings;
  // All peers; called when any of them changes.
  std::function<void(const std::vector<wire::DesiredPeer>&)> peers;
  // Returns the bound address, "ip:port".
  std::function<Result<std::string>(const wire::DesiredListener&)> open_portal;
  // `bound`: what open_portal returned. Connections that were accepted on it stay open.
  std::function<void(const std::string& bound)> close_portal;
  // Access to this target changed: checks again whether its sessions are still permitted.
  std::function<void(const std::string& iqn)> review;
};

class Applier {
 public:
  // A discovery session needs the authentication of its host from now on.
  Applier(Surroundings surroundings, Volumes& volumes, LunNumbers& numbers);

  // Applies the difference between the applied state and `next`. Returns all refused objects, each
  // with its reason.
  std::map<Key, std::string> apply(Snapshot next);
  // Retries all refused objects. Returns the objects that are still refused.
  std::map<Key, std::string> apply_again();
  const std::map<Key, std::string>& refused() const { return refused_; }

 private:
  struct Listening {
    wire::DesiredListener listener;
    std::string bound;
  };
  void run(const Action& action);
  void export_targets(std::span<const Action> actions);  // in one update
  void note(const Key& key, const Result<void>& done);
  Result<void> put(const Action& action);
  void remove(const Action& action);
  Result<void> put_settings(const wire::DesiredSettings& settings);
  Result<void> put_listener(const Key& key, const wire::DesiredListener& listener);
  void show_portals();
  void update_peers();

  const Surroundings around_;
  Volumes& volumes_;
  LunUnits units_;
  desired::Exporter exporter_;
  Snapshot now_;
  std::map<Key, std::string> refused_;
  std::map<Key, Listening> listening_;
};

}  // namespace sluice::control
