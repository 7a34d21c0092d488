// Resolves the TransportIDs of a PERSISTENT RESERVE OUT to I_T nexuses.
#pragma once

#include <span>

#include "commands/reservations/pr_decision.h"

namespace sluice::lun {

// Fills request.also, move_to and fault from request.list. `known`: the nexuses that are live or
// registered. They determine which initiator ports a device name stands for (SPC-5 §7.6.4.6, format
// 00b), and to which target ports a reservation can move.
void resolve_transport_ids(const NexusId& own, std::span<const NexusId> known, PrRequest& request);

}  // namespace sluice::lun
