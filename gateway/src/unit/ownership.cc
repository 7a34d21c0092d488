// How a unit takes up and changes a role. How it gives one up: closing.cc.
//
// The role, the gate's bit for it and the backend change together under the unit's mutex, and the
// backend only while nothing that uses it is under way: before the gate opens, or after closing.cc
// has seen the last command out. Then every reactor that has commands waiting is told. One that
// begins later finds the new gate.
#include "unit/ownership.h"

#include <utility>

#include "base/log.h"

namespace sluice::lun {
namespace {

void resume_commands(Unit& unit, Reactors& reactors) {
  unit.attached().on_every(reactors, [](AttachedNexus& nexus) { nexus.on_role_change(); });
}

}  // namespace

std::shared_ptr<Unit> open_unopened(UnitIdentity identity, Shape shape, unsigned reactors) {
  return std::make_shared<Unit>(std::move(identity), shape, reactors);
}

void serve(Unit& unit, Reactors& reactors, std::unique_ptr<backend::Backend> backend,
           std::shared_ptr<ReservationStore> store, ReservationState reservations, uint64_t epoch,
           uint16_t self) {
  std::shared_ptr<backend::Backend> taken = std::move(backend);
  {
    const std::lock_guard lock(unit.mutex());
    if (!unit.vacant_locked()) {
      log::error("served twice: give it up first", {{"unit", unit.uuid_text()}});
      return;
    }
    // R8: in force before the gate opens.
    unit.open_locked(std::move(taken), std::move(store), std::move(reservations));
    unit.set_role_locked({Standing::kOwner, epoch, self});
  }
  resume_commands(unit, reactors);
}

void follow(Unit& unit, Reactors& reactors, Role role) {
  {
    const std::lock_guard lock(unit.mutex());
    if (!unit.vacant_locked()) return;
    unit.set_role_locked(role);
  }
  resume_commands(unit, reactors);
}

void reshape(Unit& unit, Shape shape) {
  const std::lock_guard lock(unit.mutex());
  unit.reshape_locked(shape);
}

}  // namespace sluice::lun
