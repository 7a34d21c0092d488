// A unit's write cache, on and off. Whoever is told that it is off may rely on everything he was
// answered before (DESIGN R12), so turning it off takes its time:
//
//   mode off -> what began before is through -> flush -> told; failed: mode on again
//
// Until then hosts that ask still find it on. Who else wants it off meanwhile, on whatever reactor,
// waits for the same flush and is told what came of it.
#pragma once

#include <functional>
#include <optional>

#include "backend/backend.h"
#include "base/result.h"
#include "unit/reactor_context.h"
#include "unit/unit.h"

namespace sluice::lun {

// On `context`'s reactor, for the unit's owner. Writes that begin meanwhile neither wait nor are
// waited for. `done` is told the flush, perhaps inside the call; result < 0: the cache is on again.
// False: the backend can't, and `done` isn't called.
bool turn_cache_off(Unit& unit, const ReactorContext& context,
                    std::function<void(const backend::Io&)> done);
// false: the backend can't. Nothing: it is being turned off, and what comes of that isn't known
// yet.
std::optional<bool> turn_cache_on(Unit& unit);

// Back to the default, after a logical unit reset. `done` follows once the mode says the truth.
void reset_cache(Unit& unit, const ReactorContext& context, std::function<void()> done);

// What the administrator wants, which is the default from then on. For control threads, never a
// reactor's: blocks until it is done.
Result<void> set_write_cache(Unit& unit, bool on);

}  // namespace sluice::lun
