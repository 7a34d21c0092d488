// LOGICAL UNIT RESETs of one nexus for units that this gateway did not own when they arrived. The
// unit's owner performs each (DESIGN R9). If a gateway answers that it is not the owner, or its
// link ends, the reset goes to the next owner, which may be this gateway. Later commands of the
// nexus for the unit wait behind the reset, so that a late reset aborts none of them (RFC 7143
// §11.5.1). gateway/decisions/logical-units.md
//
// Threads: the nexus's reactor.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "unit/role.h"

namespace sluice::lun {

class Itl;
class NexusContext;
class OwnerLinks;
class Unit;

class OwnerResets {
 public:
  OwnerResets(NexusContext& nexus, OwnerLinks& links) : nexus_(nexus), links_(links) {}

  // Adds a reset of the unit with number `lun`. `behind`: the I_T_L nexuses of this nexus with the
  // unit; they hold later commands until the reset has ended. `done(false)`: no owner performed it
  // in time, or none can. `done` may run within the call.
  void add(const std::shared_ptr<Unit>& unit, uint64_t lun,
           std::vector<std::shared_ptr<Itl>> behind, std::function<void(bool done)> done);
  // The unit's role may have changed.
  void on_role_change(const Unit& unit);
  // Time passed: checks all resets.
  void tick();
  // The nexus ends: drops all resets without answers.
  void clear();
  bool empty() const { return count_ == 0; }
  bool full() const;  // limits::kMaxFollowingResets is reached

 private:
  struct Reset {
    std::shared_ptr<Unit> unit;
    uint64_t lun_field = 0;
    std::vector<std::shared_ptr<Itl>> behind;  // hold later commands
    std::function<void(bool)> done;
    Nanos since = 0;
    bool asked = false;  // a link has it, to the gateway asked_of.owner
    Role asked_of;
  };
  using ResetPtr = std::shared_ptr<Reset>;

  void try_one(const ResetPtr& reset);
  void ask(const ResetPtr& reset, const Role& role);
  void answered(const ResetPtr& reset, bool done);
  // Removes it; commands behind it continue.
  void end(const ResetPtr& reset);
  void release_waiting(Reset& reset);

  NexusContext& nexus_;
  OwnerLinks& links_;
  std::map<const Unit*, std::vector<ResetPtr>> resets_;  // in the order of arrival
  size_t count_ = 0;
};

// The effects of a LOGICAL UNIT RESET by `nexus` on this gateway's part of a unit, except on the
// nexus's own commands: those end by themselves or come later. `done` runs on its reactor, possibly
// within the call.
void reset_here(NexusContext& nexus, const std::shared_ptr<Unit>& unit, std::function<void()> done);

}  // namespace sluice::lun
