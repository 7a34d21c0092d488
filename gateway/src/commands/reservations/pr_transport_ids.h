// From the TransportIDs of a PERSISTENT RESERVE OUT to the I_T nexuses they stand for.
#pragma once

#include <span>

#include "commands/reservations/pr_decision.h"

namespace sluice::lun {

// Fills request.also, move_to and fault from request.list. `known`: the nexuses that live or are
// registered; they say which initiator ports a device name stands for (SPC-5 §7.6.4.6, format
// 00b) and which target ports there are to move to.
void resolve_transport_ids(const NexusId& own, std::span<const NexusId> known, PrRequest& request);

}  // namespace sluice::lun
