// How a unit gets and changes a role. closing.cc has the loss of a role.
//
// The role, its gate bit and the backend change together under the unit's mutex. The backend
// changes only while nothing uses it: before the gate opens, or after closing.cc has seen the last
// command complete. Then every reactor with waiting commands is notified. A command that begins
// later sees the new gate.
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
    if (unit.backend_state_locked() != BackendState::kAbsent) {
      log::error("a unit that has a backend was given another; release it first",
                 {{"unit", unit.uuid_text()}});
      return;
    }
    // R8: the reservations are in effect before the gate opens.
    unit.open_locked(std::move(taken), std::move(store), std::move(reservations));
    unit.set_role_locked({Standing::kOwner, epoch, self});
  }
  resume_commands(unit, reactors);
}

void follow(Unit& unit, Reactors& reactors, Role role) {
  {
    const std::lock_guard lock(unit.mutex());
    if (unit.backend_state_locked() != BackendState::kAbsent) return;
    unit.set_role_locked(role);
  }
  resume_commands(unit, reactors);
}

void reshape(Unit& unit, Shape shape) {
  const std::lock_guard lock(unit.mutex());
  unit.reshape_locked(shape);
}

}  // namespace sluice::lun
