// How a unit loses its backend. unit/ownership.h has the order of a takeover.
//
// Threads: one control thread calls; reactors do the work. `done` runs on a reactor; the reactors
// live until then, for a backend may end its close() on a thread of its own.
#pragma once

#include <functional>

#include "base/reactors.h"

namespace sluice::lun {

class Unit;

// Planned (R7): holds new commands (kTransitioning), waits until all that run have completed,
// flushes, closes the backend and with it its lock, and waits for that. What the backend lent to
// slow peers stays valid. `done(true)`: nothing of this gateway can reach the volume any more, lock
// and all. `done(false)`: a flush failed, or a fence() came in between; the nexuses were dropped,
// and the rest is true too. Role: kTransitioning of the same epoch and owner, until follow() or
// serve(). Of a unit without a backend: done(true).
void release(Unit& unit, Reactors& reactors, std::function<void(bool flushed)> done);

// Fenced (R4): answers nothing more, ends every nexus that has the unit, as lost, through the
// `drop` of their transports, waits until the backend has released every command (R5), closes it
// without a flush, and waits for that. May come while a release() is under way. Role as after
// release().
void fence(Unit& unit, Reactors& reactors, std::function<void()> done);

}  // namespace sluice::lun
