// Where a command goes whose unit isn't plainly ours: it runs here, goes to the owner, waits, or
// ends (DESIGN R1, R7, R11). The way round of Unit::kDetour; the direct way never comes here.
//
//   begin_by_detour -> [its data] -> place -+-> dispatch    owner, and bandwidth left
//                                           +-> Link::start forwarder
//                                           +-> held        transition, or no bandwidth left, or
//                                           |               behind a reset (lun/owner_resets.h)
//                                           +-> sense data  unavailable
//
// A command that was started never changes its place: what was started here completes here (R5),
// what a link was given ends by the link. One that waits for data, its turn in the task set or an
// owner was not started, and looks at the unit's role again when it goes on.
#pragma once

#include "lun/command.h"
#include "lun/nexus.h"
#include "lun/unit.h"

namespace sluice::lun {

// Nexus::begin() from where the command is in the task set. true: it waits for data.
bool begin_by_detour(Unit& unit, Command& command);

// Its data is all there.
void place(Unit& unit, Command& command);

// The unit's role changed, or time passed: held commands go on, in order, as far as they may.
void resume(Itl& itl);

// resume(), and ends what has waited too long for an owner.
void tick(Itl& itl);

// A held command ends.
void leave_held(Itl& itl, Command& command);

// It was forwarded to us, and we aren't owner of its epoch.
void finish_not_owner(Command& command);

// Why a unit can't be reached: 02/04/0A, or 02/04/0C where it is unavailable.
scsi::Sense inaccessible(Standing standing);

}  // namespace sluice::lun
