// LOGICAL UNIT RESETs of one nexus, of units that this gateway didn't own when they came. Each is
// carried out by whoever owns its unit (DESIGN R9), and so follows it: where a gateway says that it
// isn't the owner, or its link ends, the reset goes to the next one, which may be this gateway.
// What the nexus sends to the unit meanwhile is held behind it, so that a late reset finds nothing
// that came after it (RFC 7143 §11.5.1). gateway/decisions/logical-units.md
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

  // Of the unit under number `lun`. `behind`: the I_T_L nexuses of this nexus with the unit, which
  // hold later commands until the reset is over. `done(false)`: no owner carried it out in time, or
  // none can come. Perhaps inside the call.
  void add(const std::shared_ptr<Unit>& unit, uint64_t lun,
           std::vector<std::shared_ptr<Itl>> behind, std::function<void(bool done)> done);
  // The unit's role may have changed.
  void look(const Unit& unit);
  // Time passed: all are looked at.
  void tick();
  // The nexus ends, and nobody waits for them any more.
  void clear();
  bool empty() const { return count_ == 0; }
  bool full() const;  // no more; at most limits::kMaxFollowingResets

 private:
  struct Reset {
    std::shared_ptr<Unit> unit;
    uint64_t lun_field = 0;
    std::vector<std::shared_ptr<Itl>> behind;  // hold what comes after it
    std::function<void(bool)> done;
    Nanos since = 0;
    bool asked = false;  // a link has it, which asks asked_of.owner
    Role asked_of;
  };
  using ResetPtr = std::shared_ptr<Reset>;

  void try_one(const ResetPtr& reset);
  void ask(const ResetPtr& reset, const Role& role);
  void answered(const ResetPtr& reset, bool done);
  // Takes it out; what waits behind it goes on.
  void end(const ResetPtr& reset);
  void let_go(Reset& reset);

  NexusContext& nexus_;
  OwnerLinks& links_;
  std::map<const Unit*, std::vector<ResetPtr>> resets_;  // in the order in which they came
  size_t count_ = 0;
};

// What a LOGICAL UNIT RESET by `nexus` does to what this gateway has of a unit, but for the
// commands of the nexus itself, which end, or come later, on their own. `done` runs on its reactor,
// perhaps inside the call.
void reset_here(NexusContext& nexus, const std::shared_ptr<Unit>& unit, std::function<void()> done);

}  // namespace sluice::lun
