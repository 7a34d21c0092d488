#include "commands/reservations/pr_decision.h"

#include <algorithm>

#include "base/limits.h"

namespace sluice::lun {
namespace {

using scsi::PrOutAction;
using scsi::PrType;
using scsi::Sense;
using scsi::SenseKey;
using scsi::Status;

// Field offsets of the basic parameter list (SPC-5 §6.17.3).
constexpr uint16_t kServiceActionKeyAt = 8;
constexpr uint16_t kFlagsAt = 20;
constexpr int kSpecIPtBit = 3;
constexpr int kAptplBit = 0;
// REGISTER AND MOVE (SPC-5 §6.17.4).
constexpr uint16_t kMoveFlagsAt = 17;
constexpr uint16_t kMoveTransportIdAt = 24;

class PrDecider {
 public:
  PrDecider(const ReservationState& state, const NexusId& nexus, const PrRequest& request)
      : old_(state), nexus_(nexus), request_(request), list_(request.list) {
    out_.state = state;
    own_ = state.find(nexus);
  }

  PrDecision take() {
    switch (list_.action) {
      case PrOutAction::kRegister:
      case PrOutAction::kRegisterAndIgnoreExistingKey:
        register_nexus();
        break;
      case PrOutAction::kReserve:
        reserve();
        break;
      case PrOutAction::kRelease:
        release();
        break;
      case PrOutAction::kClear:
        clear();
        break;
      case PrOutAction::kPreempt:
      case PrOutAction::kPreemptAndAbort:
        preempt();
        break;
      case PrOutAction::kRegisterAndMove:
        move();
        break;
    }
    return std::move(out_);
  }

 private:
  ReservationState& next() { return out_.state; }
  void conflict() { out_.status = Status::kReservationConflict; }
  void refuse(const Sense& sense) {
    out_.status = Status::kCheckCondition;
    out_.sense = sense;
  }
  void changed() { out_.changed = true; }
  void tell(const Registration& who, UnitAttention what) { out_.attentions.push_back({who, what}); }
  void notify_registrants(UnitAttention what) {
    for (const Registration& r : next().registrations) {
      // A registration that covers more ports than the requesting one concerns its other ports.
      if (!r.covers(nexus_) || r.all_target_ports) tell(r, what);
    }
  }
  bool key_is_right() const { return own_ && own_->key == list_.key; }

  void drop_reservation() {
    next().type = PrType::kNone;
    next().holder.reset();
  }
  // Releases a reservation that no registration supports any more.
  void settle() {
    const ReservationState& s = next();
    if (s.type == PrType::kNone) return;
    const bool orphan =
        scsi::is_all_registrants(s.type) ? s.registrations.empty() : !s.find(*s.holder);
    if (!orphan) return;
    const bool notify_others = scsi::is_registrants_only(s.type);
    drop_reservation();
    if (notify_others) notify_registrants(kReservationsReleased);
  }

  void register_nexus();
  void unregister();
  bool add_registration(const NexusId& who, bool all_ports);
  bool persist_refused(uint16_t at, int bit);
  void reserve();
  void release();
  void clear();
  void preempt();
  void preempt_reservation(bool everybody);
  void remove_registrations(bool everybody);
  void move();

  const ReservationState& old_;
  const NexusId& nexus_;
  const PrRequest& request_;
  const scsi::PrOutRequest& list_;
  const Registration* own_ = nullptr;
  PrDecision out_;
};

// Removes the registration of one nexus, or of all target ports of its initiator port.
void withdraw(ReservationState& state, const NexusId& who, bool all_ports) {
  std::erase_if(state.registrations, [&](Registration& r) {
    if (all_ports) return same_initiator_port(r.nexus, who);
    if (!r.covers(who)) return false;
    if (!r.all_target_ports) return true;
    r.except_ports.push_back(who.relative_target_port);
    return false;
  });
}

// Registers with the request's key. False (and refused): too many registrations.
bool PrDecider::add_registration(const NexusId& who, bool all_ports) {
  ReservationState& state = next();
  withdraw(state, who, all_ports);
  if (state.registrations.size() >= limits::kMaxRegistrations) {
    // INSUFFICIENT REGISTRATION RESOURCES (SPC-5 §5.14.7)
    refuse(Sense::make(SenseKey::kIllegalRequest, 0x55, 0x04));
    return false;
  }
  state.registrations.push_back({who, list_.service_action_key, all_ports, {}});
  return true;
}

bool PrDecider::persist_refused(uint16_t at, int bit) {
  if (!list_.aptpl || request_.persist_capable) return false;
  refuse(Sense::invalid_field_in_parameter_list(at, bit));
  return true;
}

// SPC-5 §5.14.7, tables of register behaviors for unregistered and registered nexuses.
void PrDecider::register_nexus() {
  const bool checks_key = list_.action == PrOutAction::kRegister;
  if (checks_key && (own_ ? own_->key != list_.key : list_.key != 0)) return conflict();
  const bool leaves = list_.service_action_key == 0;
  if (list_.spec_i_pt && (own_ || !checks_key || leaves)) {
    return refuse(Sense::invalid_field_in_parameter_list(kFlagsAt, kSpecIPtBit));
  }
  if (request_.fault) return refuse(*request_.fault);
  if (persist_refused(kFlagsAt, kAptplBit)) return;
  if (leaves && !own_) return;  // "do nothing except return GOOD"

  if (leaves) {
    unregister();
  } else {
    if (!add_registration(nexus_, list_.all_target_ports)) return;
    for (const NexusId& other : request_.also) {
      // As if the request had arrived from that port with a reservation key of zero.
      if (old_.find(other)) return conflict();
      if (!add_registration(other, list_.all_target_ports)) return;
    }
  }
  next().aptpl = list_.aptpl;
  ++next().generation;
  changed();
}

// SPC-5 §5.14.11.3: a holder that unregisters releases; other nexuses are notified for
// registrants-only types.
void PrDecider::unregister() {
  withdraw(next(), nexus_, list_.all_target_ports);
  settle();
}

void PrDecider::reserve() {
  if (!key_is_right()) return conflict();
  if (list_.type == PrType::kNone) return refuse(scsi::invalid_pr_type());
  if (old_.type != PrType::kNone) {
    // The holder may repeat its RESERVE (SPC-5 §5.14.9).
    if (!old_.holds(nexus_) || old_.type != list_.type) conflict();
    return;
  }
  next().type = list_.type;
  if (!scsi::is_all_registrants(list_.type)) next().holder = nexus_;
  changed();
}

void PrDecider::release() {
  if (!key_is_right()) return conflict();
  if (!old_.holds(nexus_)) return;  // GOOD: nothing to release, or not its own (SPC-5 §5.14.11.2)
  if (old_.type != list_.type) {
    // INVALID RELEASE OF PERSISTENT RESERVATION
    return refuse(Sense::make(SenseKey::kIllegalRequest, 0x26, 0x04));
  }
  drop_reservation();
  if (scsi::is_registrants_only(old_.type) || scsi::is_all_registrants(old_.type)) {
    notify_registrants(kReservationsReleased);
  }
  changed();
}

void PrDecider::clear() {
  if (!key_is_right()) return conflict();
  notify_registrants(kReservationsPreempted);
  drop_reservation();
  next().registrations.clear();
  ++next().generation;
  changed();
}

// SPC-5 §5.14.11.4, table of preempting actions.
void PrDecider::preempt() {
  if (!key_is_right()) return conflict();
  const uint64_t victim = list_.service_action_key;
  const bool held = old_.type != PrType::kNone;
  const bool all_registrants = scsi::is_all_registrants(old_.type);
  if (victim == 0) {
    if (!all_registrants) {
      return refuse(Sense::invalid_field_in_parameter_list(kServiceActionKeyAt));
    }
    preempt_reservation(true);
  } else if (std::none_of(old_.registrations.begin(), old_.registrations.end(),
                          [&](const Registration& r) { return r.key == victim; })) {
    return conflict();
  } else if (held && !all_registrants && old_.find(*old_.holder)->key == victim) {
    preempt_reservation(false);
  } else {
    remove_registrations(false);
  }
  if (out_.status != Status::kGood) return;
  ++next().generation;
  changed();
}

void PrDecider::preempt_reservation(bool everybody) {
  if (list_.type == PrType::kNone) return refuse(scsi::invalid_pr_type());
  remove_registrations(everybody);
  next().type = list_.type;
  if (scsi::is_all_registrants(list_.type)) {
    next().holder.reset();
  } else {
    next().holder.emplace(nexus_);
  }
  // Remaining registrants are notified only if the reservation type changed.
  if (list_.type != old_.type) notify_registrants(kReservationsReleased);
}

// Removes registrations with the victim's key, or all, but never that of the preempting nexus.
void PrDecider::remove_registrations(bool everybody) {
  std::vector<Registration> kept;
  for (const Registration& r : old_.registrations) {
    const bool named = everybody || r.key == list_.service_action_key;
    if (!named) {
      kept.push_back(r);
      continue;
    }
    const bool own = r.covers(nexus_);
    // Of a registration for all target ports, the preempting port keeps its own part.
    if (own) kept.push_back(r.all_target_ports ? Registration{nexus_, r.key, false, {}} : r);
    if (own && !r.all_target_ports) continue;
    tell(r, kRegistrationsPreempted);
    if (list_.action == PrOutAction::kPreemptAndAbort) out_.aborts.push_back(r);
  }
  next().registrations = std::move(kept);
}

// SPC-5 §5.14.8.
void PrDecider::move() {
  if (!key_is_right()) return conflict();
  if (old_.type == PrType::kNone) return refuse(Sense::invalid_field_in_cdb(1, 4));
  if (!old_.holds(nexus_) || scsi::is_all_registrants(old_.type)) return conflict();
  if (list_.service_action_key == 0) {
    return refuse(Sense::invalid_field_in_parameter_list(kServiceActionKeyAt));
  }
  if (request_.fault) return refuse(*request_.fault);
  if (!request_.move_to || same_ports(*request_.move_to, nexus_)) {
    return refuse(Sense::invalid_field_in_parameter_list(kMoveTransportIdAt));
  }
  if (persist_refused(kMoveFlagsAt, kAptplBit)) return;
  if (!add_registration(*request_.move_to, false)) return;
  if (list_.unregister) withdraw(next(), nexus_, false);
  next().holder = *request_.move_to;
  next().aptpl = list_.aptpl;
  ++next().generation;
  changed();
}

}  // namespace

PrDecision decide(const ReservationState& state, const NexusId& nexus, const PrRequest& request) {
  return PrDecider(state, nexus, request).take();
}

}  // namespace sluice::lun
