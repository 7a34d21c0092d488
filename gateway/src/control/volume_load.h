// The load of a volume, for the heartbeat.
#pragma once

#include "control/wire.h"
#include "unit/unit.h"

namespace sluice::control {

// Appends what `unit` counted since it was opened.
void add_load(const lun::Unit& unit, wire::StreamHeartbeat* beat);

}  // namespace sluice::control
