// Switches a unit's write cache on and off. A host that sees WCE off may rely on the durability of
// everything acknowledged before (DESIGN R12). So switching off takes several steps:
//
// 1. The mode changes to write-through.
// 2. Earlier writes complete.
// 3. A flush.
// 4. Success is reported; if the flush failed, the cache is on again.
//
// Until step 4 hosts see WCE on. Other requests to switch it off, on any reactor, wait for the same
// flush and get the same result.
#pragma once

#include <functional>
#include <optional>

#include "backend/backend.h"
#include "base/result.h"
#include "unit/reactor_context.h"
#include "unit/unit.h"

namespace sluice::lun {

// On `context`'s reactor, for the unit's owner. Writes that begin meanwhile neither wait nor delay
// the flush. `done` gets the result of the flush, possibly during the call; result < 0: the cache
// is on again. False: the backend can't switch it off, and `done` is not called.
bool disable_write_cache(Unit& unit, const ReactorContext& context,
                         std::function<void(const backend::Io&)> done);
// False: the backend can't switch it on. nullopt: it is being switched off, and the result is not
// known yet.
std::optional<bool> enable_write_cache(Unit& unit);

// Restores the default after a logical unit reset. `done` runs when the mode is final.
void reset_cache(Unit& unit, const ReactorContext& context, std::function<void()> done);

// Sets the administrator's choice, which is also the new default. Blocks until it is effective; for
// control threads, never on a reactor.
Result<void> set_write_cache(Unit& unit, bool on);

}  // namespace sluice::lun
