// Changes the exports into the desired state. Every gateway has one exporter, whether its targets
// come from a configuration file or from the control plane.
//
// It is level-triggered: it compares an update with the present exports, so a repeated update
// changes nothing. A LUN without a unit is omitted and reported; the target serves the rest
// (DESIGN R15).
//
// The order within an update: access that hosts lose takes effect before any LUN appears.
//   1. Discovery. Targets that are removed. Access lists; if one differs, the target's sessions are
//      reviewed. The directory of all hosts. LUNs of units that another target is about to show.
//   2. LUN maps and ports. New targets, each with all its LUNs.
//
// Threads: one control thread. No function waits.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/reactors.h"
#include "desired/lun_map.h"
#include "desired/state.h"
#include "desired/units.h"
#include "nexus/exports.h"

namespace sluice::desired {

// What an update changed.
struct Outcome {
  std::vector<std::string> added;  // targets by IQN, here and in the next three
  std::vector<std::string> removed;
  std::vector<std::string> access_changed;
  std::map<std::string, std::string> refused;  // targets of which something is omitted, and why
  std::vector<LunName> luns_added;             // a number that got another unit is in both
  std::vector<LunName> luns_removed;
  bool discovery_changed = false;  // the credentials
};

class Exporter {
 public:
  struct Setup {
    lun::Exports& exports;
    Reactors& reactors;
    Units& units;
    // Sessions of this target may have lost their access; called when new logins already use the
    // new state.
    std::function<void(const std::string& iqn)> review;
  };
  explicit Exporter(Setup setup) : setup_(std::move(setup)) {}

  Outcome apply(Update update);
  // The portals of discovery answers.
  void show_portals(const std::vector<Portal>& portals);

 private:
  // A target that is put.
  struct Plan {
    Target desired;
    std::shared_ptr<lun::Target> target;
    bool added = false;
    LunEntries now;
    LunEntries next;
    LunMapDifference changes;
  };
  Plan plan(Target desired, Outcome* outcome);
  LunEntries luns_of(const Target& desired, std::string* problem);
  std::vector<std::string> targets_to_remove(const Update& update) const;
  void remove(const std::string& iqn, Outcome* outcome);
  void change_access(Plan& plan, Outcome* outcome);
  void update_directory(const std::vector<Plan>& plans);
  void withdraw_moved_units(const std::vector<Plan>& plans);
  void show(Plan& plan, Outcome* outcome);

  const Setup setup_;
};

}  // namespace sluice::desired
