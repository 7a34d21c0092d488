// How a unit loses its backend. unit/ownership.h describes the order of a takeover.
//
// Threads: one control thread calls; reactors do the work. `done` runs on a reactor. The reactors
// must live until then, because a backend may end its close() on a thread of its own.
#pragma once

#include <functional>

#include "base/reactors.h"

namespace sluice::lun {

class Unit;

// Planned release (R7): holds new commands (kTransitioning), waits until all running ones have
// completed, flushes, closes the backend and thus its lock, and waits until it is closed. Memory
// that the backend lent to slow peers stays valid.
//
// - `done(true)`: this gateway can't access the volume any more, and its lock is released. Also for
//   a unit without a backend.
// - `done(false)`: the same, but a flush failed, or fence() was called meanwhile; the nexuses were
//   dropped.
//
// The role is kTransitioning with the same epoch and owner until follow() or serve().
void release(Unit& unit, Reactors& reactors, std::function<void(bool flushed)> done);

// Fencing (R4): answers no more commands and drops every nexus that uses the unit, as lost, through
// the `drop` of its transport. Then waits until the backend has completed every command (R5),
// closes it without a flush, and waits until it is closed. It may be called during a release(). The
// role afterwards is as after release().
void fence(Unit& unit, Reactors& reactors, std::function<void()> done);

}  // namespace sluice::lun
