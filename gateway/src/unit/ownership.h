// Role changes of a cluster volume's unit. Such a unit exists on every gateway of the path set,
// under one identity. It has a backend only on its owner.
//
// - Takeover (DESIGN R2): open_unopened() at the first snapshot; follow() while another gateway
//   owns it; the caller opens and locks the backend; serve().
// - Planned move (R7): release(), then follow().
// - Fenced owner (R4): fence(), then follow().
//
// unit/closing.h has release() and fence(). Threads: one control thread calls; reactors do the
// work.
#pragma once

#include <memory>

#include "base/reactors.h"
#include "unit/reservations/reservation_contract.h"
#include "unit/role.h"
#include "unit/unit.h"

namespace sluice::lun {

// Creates a unit without a backend; its standing is Transitioning.
std::shared_ptr<Unit> open_unopened(UnitIdentity identity, Shape shape, unsigned reactors);

// The unit executes commands from now on, with `backend` and the `reservations` that were loaded
// from `store`. Its Role is kOwner of `epoch`. Held commands run. Raises 2A/06 (ASYMMETRIC ACCESS
// STATE CHANGED) on every nexus (R10), unless this is the unit's first role. RESERVE(6) and mode
// parameters of an earlier owner are lost, which 2A/06 announces. The unit must have no backend,
// which is true when `done` of release() or fence() runs; otherwise nothing changes.
void serve(Unit& unit, Reactors& reactors, std::unique_ptr<backend::Backend> backend,
           std::shared_ptr<ReservationStore> store, ReservationState reservations, uint64_t epoch,
           uint16_t self);

// The unit is not owned here: it forwards, or answers as `role` says; role.standing is not kOwner.
// Raises 2A/06 if owner or standing changed. Does nothing for a unit with a backend.
void follow(Unit& unit, Reactors& reactors, Role role);

// Grows the size that an unopened unit reports; raises 2A/09. For an opened one use Unit::resize().
void reshape(Unit& unit, Shape shape);

}  // namespace sluice::lun
