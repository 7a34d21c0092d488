// Pauses the commands of a unit, so that a snapshot contains whole writes only.
#pragma once

#include <functional>
#include <memory>

#include "base/reactors.h"
#include "base/result.h"
#include "unit/unit.h"

namespace sluice::control {

// Runs `task` while every block of the unit is locked exclusively: submitted commands have
// completed, later ones wait (unit/ranges/range_table.h). Waits for that for at most `patience`; do
// not call it on a reactor.
Result<void> between_commands(const std::shared_ptr<lun::Unit>& unit, Reactors& reactors,
                              Nanos patience, const std::function<void()>& task);

}  // namespace sluice::control
