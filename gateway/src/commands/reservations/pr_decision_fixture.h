// Persistent reservations without a unit: applies each decision as the handler would.
#pragma once

#include <gtest/gtest.h>

#include "commands/reservations/reservations_fixture.h"

namespace sluice::lun {

inline const NexusId kA = test_nexus("a");
inline const NexusId kA2 = test_nexus("a", 2);
inline const NexusId kB = test_nexus("b");
inline const NexusId kC = test_nexus("c");

class PrDecisionTest : public ::testing::Test {
 protected:
  scsi::Status ask(const NexusId& who, const PrRequest& what) {
    last_ = decide(state_, who, what);
    if (last_.changed) state_ = last_.state;
    return last_.status;
  }
  scsi::Status ask(const NexusId& who, scsi::PrOutAction action, uint64_t key,
                   uint64_t service_action_key = 0, scsi::PrType type = scsi::PrType::kNone) {
    return ask(who, pr_request(action, key, service_action_key, type));
  }
  void enlist(const NexusId& who, uint64_t key) {
    ASSERT_EQ(ask(who, scsi::PrOutAction::kRegisterAndIgnoreExistingKey, 0, key),
              scsi::Status::kGood);
  }
  void enlist_all_ports(const NexusId& who, uint64_t key) {
    PrRequest r = pr_request(scsi::PrOutAction::kRegisterAndIgnoreExistingKey, 0, key);
    r.list.all_target_ports = true;
    ASSERT_EQ(ask(who, r), scsi::Status::kGood);
  }
  void reserve(const NexusId& who, uint64_t key, scsi::PrType type) {
    ASSERT_EQ(ask(who, scsi::PrOutAction::kReserve, key, 0, type), scsi::Status::kGood);
  }
  uint64_t key_of(const NexusId& who) const {
    const Registration* r = state_.find(who);
    return r ? r->key : 0;
  }
  bool got_attention(const NexusId& who, UnitAttention what) const {
    for (const auto& a : last_.attentions) {
      if (a.what == what && a.who.covers(who)) return true;
    }
    return false;
  }
  bool aborts(const NexusId& who) const {
    for (const Registration& r : last_.aborts) {
      if (r.covers(who)) return true;
    }
    return false;
  }
  testing::AssertionResult refused(uint8_t asc, uint8_t ascq, uint16_t field = 0) const {
    if (last_.status == scsi::Status::kCheckCondition && !last_.changed &&
        last_.sense.key == scsi::SenseKey::kIllegalRequest && last_.sense.asc == asc &&
        last_.sense.ascq == ascq && last_.sense.pointer == field) {
      return testing::AssertionSuccess();
    }
    return testing::AssertionFailure()
           << "status " << static_cast<int>(last_.status) << " asc " << int{last_.sense.asc}
           << " ascq " << int{last_.sense.ascq} << " field " << last_.sense.pointer;
  }

  ReservationState state_;
  PrDecision last_;
};

}  // namespace sluice::lun
