// The effect of a PERSISTENT RESERVE OUT (SPC-5 §5.14): a pure function from state and request to
// the next state, the answer, and the nexuses to notify.
#pragma once

#include <optional>
#include <vector>

#include "scsi/pr_out_list.h"
#include "scsi/sense.h"
#include "unit/attention.h"
#include "unit/reservations/reservations.h"

namespace sluice::lun {

struct PrRequest {
  scsi::PrOutRequest list;
  bool persist_capable = true;  // a store exists, so APTPL is possible
  // SPEC_I_PT: the I_T nexuses the TransportIDs stand for.
  std::vector<NexusId> also;
  // Destination of REGISTER AND MOVE.
  std::optional<NexusId> move_to;
  // An error in the TransportIDs. Reported only to initiators with the correct key.
  std::optional<scsi::Sense> fault;
};

struct PrDecision {
  scsi::Status status = scsi::Status::kGood;
  scsi::Sense sense;       // with CHECK CONDITION
  bool changed = false;    // `state` must be committed before the answer
  ReservationState state;  // the next one
  // For the nexuses that a registration covers, except the requesting one.
  struct Attention {
    Registration who;
    UnitAttention what;
  };
  std::vector<Attention> attentions;
  // PREEMPT AND ABORT: the nexuses whose commands are aborted before the answer.
  std::vector<Registration> aborts;
};

PrDecision decide(const ReservationState& state, const NexusId& nexus, const PrRequest& request);

inline constexpr UnitAttention kReservationsPreempted{0x2a, 0x03};
inline constexpr UnitAttention kReservationsReleased{0x2a, 0x04};
inline constexpr UnitAttention kRegistrationsPreempted{0x2a, 0x05};

}  // namespace sluice::lun
