// Translates targets and hosts that the control plane sends to desired state. A host that can't be
// used is omitted and reported; the target admits the others.
#pragma once

#include "base/result.h"
#include "control/desired.h"
#include "control/wire.h"
#include "desired/state.h"

namespace sluice::control {

// `now`: the state that is being applied; it names this gateway's number and the hosts. A volume is
// named by its uid. Error: the target can't be put yet.
Result<desired::Target> desired_target(const wire::DesiredTarget& target, const Snapshot& now);

}  // namespace sluice::control
