// A pause between the commands of a unit, for a snapshot that no write cuts in half.
#pragma once

#include <functional>
#include <memory>

#include "base/reactors.h"
#include "base/result.h"
#include "unit/unit.h"

namespace sluice::control {

// Runs `task` while every block of the unit is held exclusively: commands that were submitted have
// completed, later ones wait (unit/ranges/range_table.h). Waits `patience` for that, not on a
// reactor.
Result<void> between_commands(const std::shared_ptr<lun::Unit>& unit, Reactors& reactors,
                              Nanos patience, const std::function<void()>& task);

}  // namespace sluice::control
