// How a unit of a cluster's volume changes what it is. Such a unit exists on every gateway of the
// path set, under one identity; a backend it has only where and while it is owned.
//
// The order of a takeover (DESIGN R2): open_unopened() at the first snapshot; follow() while others
// own it; the caller opens and locks the backend; serve(). Of a planned move (R7): release(), then
// follow(). Of a fenced owner (R4): fence(), then follow(). unit/closing.h has release() and
// fence().
//
// Threads: one control thread calls; reactors do the work.
#pragma once

#include <memory>

#include "base/reactors.h"
#include "unit/reservations/reservation_contract.h"
#include "unit/role.h"
#include "unit/unit.h"

namespace sluice::lun {

// A unit without a backend, Transitioning.
std::shared_ptr<Unit> open_unopened(UnitIdentity identity, Shape shape, unsigned reactors);

// The unit executes commands from now on, with `backend`, under `reservations` as loaded from
// `store`. Raises 2A/06 (ASYMMETRIC ACCESS STATE CHANGED) on every nexus (R10), but not if this is
// the first role it ever gets. Its Role is kOwner of `epoch`. Commands held meanwhile run.
// RESERVE(6) and mode parameters of an earlier owner are gone; of that 2A/06 tells. Only of a unit
// without a backend, which it is once `done` of release() or fence() runs; else nothing changes.
void serve(Unit& unit, Reactors& reactors, std::unique_ptr<backend::Backend> backend,
           std::shared_ptr<ReservationStore> store, ReservationState reservations, uint64_t epoch,
           uint16_t self);

// The unit isn't (any more) the owner's: it forwards, or answers as `role` says; role.standing is
// not kOwner. Raises 2A/06 where owner or standing changed. Only of a unit without a backend: of
// one that still has it, it does nothing.
void follow(Unit& unit, Reactors& reactors, Role role);

// Grows the size that an unopened unit tells; raises 2A/09. An opened one: Unit::resize().
void reshape(Unit& unit, Shape shape);

}  // namespace sluice::lun
