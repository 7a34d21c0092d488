// What a heartbeat says of a volume's load.
#pragma once

#include "control/wire.h"
#include "unit/unit.h"

namespace sluice::control {

// Appends the commands and bytes of `unit` since it was opened.
void add_load(const lun::Unit& unit, wire::StreamHeartbeat* beat);

}  // namespace sluice::control
