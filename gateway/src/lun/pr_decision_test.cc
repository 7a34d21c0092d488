#include "lun/pr_decision.h"

#include <gtest/gtest.h>

#include "lun/reservations_fixture.h"

namespace sluice::lun {
namespace {

using scsi::PrOutAction;
using scsi::PrType;
using scsi::SenseKey;
using scsi::Status;

const NexusId kA = test_nexus("a");
const NexusId kA2 = test_nexus("a", 2);
const NexusId kB = test_nexus("b");
const NexusId kC = test_nexus("c");

class PrDecisionTest : public ::testing::Test {
 protected:
  Status ask(const NexusId& who, const PrRequest& what) {
    last_ = decide(state_, who, what);
    if (last_.changed) state_ = last_.state;
    return last_.status;
  }
  Status ask(const NexusId& who, PrOutAction action, uint64_t key, uint64_t service_action_key = 0,
             PrType type = PrType::kNone) {
    return ask(who, pr_request(action, key, service_action_key, type));
  }
  void enlist(const NexusId& who, uint64_t key) {
    ASSERT_EQ(ask(who, PrOutAction::kRegisterAndIgnoreExistingKey, 0, key), Status::kGood);
  }
  void enlist_all_ports(const NexusId& who, uint64_t key) {
    PrRequest r = pr_request(PrOutAction::kRegisterAndIgnoreExistingKey, 0, key);
    r.list.all_target_ports = true;
    ASSERT_EQ(ask(who, r), Status::kGood);
  }
  void reserve(const NexusId& who, uint64_t key, PrType type) {
    ASSERT_EQ(ask(who, PrOutAction::kReserve, key, 0, type), Status::kGood);
  }
  uint64_t key_of(const NexusId& who) const {
    const Registration* r = state_.find(who);
    return r ? r->key : 0;
  }
  bool told(const NexusId& who, UnitAttention what) const {
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
    if (last_.status == Status::kCheckCondition && !last_.changed &&
        last_.sense.key == SenseKey::kIllegalRequest && last_.sense.asc == asc &&
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

// --- REGISTER: SPC-5 tables of register behaviors

TEST_F(PrDecisionTest, RegisterOfAnUnregisteredNexusNeedsAZeroReservationKey) {
  EXPECT_EQ(ask(kA, PrOutAction::kRegister, 5, 0xa), Status::kReservationConflict);
  EXPECT_EQ(ask(kA, PrOutAction::kRegister, 5, 0), Status::kReservationConflict);
  EXPECT_EQ(state_.generation, 0u);
  EXPECT_EQ(ask(kA, PrOutAction::kRegister, 0, 0xa), Status::kGood);
  EXPECT_EQ(key_of(kA), 0xau);
  EXPECT_EQ(state_.generation, 1u);
}

TEST_F(PrDecisionTest, RegisteringNothingWhereNothingIsRegisteredDoesNothing) {
  EXPECT_EQ(ask(kA, PrOutAction::kRegister, 0, 0), Status::kGood);
  EXPECT_EQ(ask(kA, PrOutAction::kRegisterAndIgnoreExistingKey, 7, 0), Status::kGood);
  EXPECT_FALSE(last_.changed);
  EXPECT_EQ(state_, ReservationState{});
}

TEST_F(PrDecisionTest, RegisterOfARegisteredNexusNeedsItsKey) {
  enlist(kA, 0xa);
  EXPECT_EQ(ask(kA, PrOutAction::kRegister, 0, 0xaa), Status::kReservationConflict);
  EXPECT_EQ(ask(kA, PrOutAction::kRegister, 0xa, 0xaa), Status::kGood);
  EXPECT_EQ(key_of(kA), 0xaau);
  EXPECT_EQ(ask(kA, PrOutAction::kRegister, 0xa, 0), Status::kReservationConflict);
  EXPECT_EQ(ask(kA, PrOutAction::kRegister, 0xaa, 0), Status::kGood);
  EXPECT_EQ(key_of(kA), 0u);
  EXPECT_EQ(state_.generation, 3u);
}

TEST_F(PrDecisionTest, IgnoringTheExistingKeyRegistersChangesAndUnregisters) {
  enlist(kA, 0xa);
  EXPECT_EQ(ask(kA, PrOutAction::kRegisterAndIgnoreExistingKey, 99, 0xb), Status::kGood);
  EXPECT_EQ(key_of(kA), 0xbu);
  EXPECT_EQ(ask(kA, PrOutAction::kRegisterAndIgnoreExistingKey, 99, 0), Status::kGood);
  EXPECT_EQ(key_of(kA), 0u);
}

TEST_F(PrDecisionTest, ANewKeyOfTheHolderKeepsTheReservation) {
  enlist(kA, 0xa);
  reserve(kA, 0xa, kWe);
  ask(kA, PrOutAction::kRegister, 0xa, 0xaa);
  EXPECT_TRUE(state_.holds(kA));
  EXPECT_TRUE(last_.attentions.empty());
}

TEST_F(PrDecisionTest, AptplIsRefusedWithoutAStoreAndFollowsTheLastRegister) {
  PrRequest r = pr_request(PrOutAction::kRegister, 0, 0xa);
  r.list.aptpl = true;
  r.persist_capable = false;
  ask(kA, r);
  EXPECT_TRUE(refused(0x26, 0x00, 20));
  r.persist_capable = true;
  EXPECT_EQ(ask(kA, r), Status::kGood);
  EXPECT_TRUE(state_.aptpl);
  reserve(kA, 0xa, kWe);
  EXPECT_TRUE(state_.aptpl) << "RESERVE has no APTPL";
  enlist(kB, 0xb);
  EXPECT_FALSE(state_.aptpl);
}

TEST_F(PrDecisionTest, RegistrationsAreBounded) {
  for (unsigned i = 0; i < limits::kMaxRegistrations; ++i) {
    state_.registrations.push_back({test_nexus("x" + std::to_string(i)), i + 1, false, {}});
  }
  ask(kA, PrOutAction::kRegister, 0, 0xa);
  EXPECT_TRUE(refused(0x55, 0x04));
  EXPECT_EQ(state_.registrations.size(), limits::kMaxRegistrations);
  EXPECT_EQ(ask(test_nexus("x5"), PrOutAction::kRegister, 6, 7), Status::kGood)
      << "room of its own";
}

// --- SPEC_I_PT

TEST_F(PrDecisionTest, SpecifiedInitiatorPortsAreRegisteredAllOrNone) {
  PrRequest r = pr_request(PrOutAction::kRegister, 0, 0xa);
  r.list.spec_i_pt = true;
  r.also = {kB, kC};
  EXPECT_EQ(ask(kA, r), Status::kGood);
  EXPECT_EQ(key_of(kB), 0xau);
  EXPECT_EQ(key_of(kC), 0xau);
  EXPECT_EQ(state_.generation, 1u);

  state_ = {};
  enlist(kC, 0xc);
  EXPECT_EQ(ask(kA, r), Status::kReservationConflict);
  EXPECT_EQ(key_of(kA), 0u);
  EXPECT_EQ(key_of(kB), 0u);
  EXPECT_EQ(state_.generation, 1u);
}

TEST_F(PrDecisionTest, SpecifyingInitiatorPortsIsForFirstRegistrationsOnly) {
  enlist(kA, 0xa);
  PrRequest r = pr_request(PrOutAction::kRegister, 0xa, 0xb);
  r.list.spec_i_pt = true;
  ask(kA, r);
  EXPECT_TRUE(refused(0x26, 0x00, 20));
  r = pr_request(PrOutAction::kRegisterAndIgnoreExistingKey, 0, 0xb);
  r.list.spec_i_pt = true;
  ask(kB, r);
  EXPECT_TRUE(refused(0x26, 0x00, 20));
}

TEST_F(PrDecisionTest, AFaultInTheTransportIdsIsToldOnlyToThoseWithTheRightKey) {
  PrRequest r = pr_request(PrOutAction::kRegister, 9, 0xa);
  r.list.spec_i_pt = true;
  r.fault = scsi::Sense::invalid_field_in_parameter_list(28);
  EXPECT_EQ(ask(kA, r), Status::kReservationConflict);
  r.list.key = 0;
  ask(kA, r);
  EXPECT_TRUE(refused(0x26, 0x00, 28));
}

// --- ALL_TG_PT

TEST_F(PrDecisionTest, AllTargetPortsCoversPortsThatComeLater) {
  enlist_all_ports(kA, 0xa);
  EXPECT_EQ(key_of(kA), 0xau);
  EXPECT_EQ(key_of(kA2), 0xau);
  EXPECT_EQ(key_of(test_nexus("a", 999)), 0xau);
  EXPECT_EQ(key_of(kB), 0u);
  EXPECT_EQ(state_.registrations.size(), 1u);
}

TEST_F(PrDecisionTest, OnePortCanLeaveOrRekeyWithoutTheOthers) {
  enlist_all_ports(kA, 0xa);
  ask(kA2, PrOutAction::kRegister, 0xa, 0);
  EXPECT_EQ(key_of(kA2), 0u);
  EXPECT_EQ(key_of(kA), 0xau);
  ask(kA, PrOutAction::kRegister, 0xa, 0xaa);
  EXPECT_EQ(key_of(kA), 0xaau);
  EXPECT_EQ(key_of(test_nexus("a", 3)), 0xau);
  enlist_all_ports(kA, 0xb);
  EXPECT_EQ(state_.registrations.size(), 1u);
  EXPECT_EQ(key_of(kA2), 0xbu);
}

TEST_F(PrDecisionTest, TheHolderIsTheOnePortThatReservedEvenIfAllAreRegistered) {
  enlist_all_ports(kA, 0xa);
  reserve(kA, 0xa, kWe);
  EXPECT_TRUE(state_.holds(kA));
  EXPECT_FALSE(state_.holds(kA2));
  EXPECT_EQ(ask(kA2, PrOutAction::kReserve, 0xa, 0, kWe), Status::kReservationConflict);
}

TEST_F(PrDecisionTest, PreemptingItsOwnKeyKeepsThePreemptingPortOnly) {
  enlist_all_ports(kA, 0xa);
  EXPECT_EQ(ask(kA, PrOutAction::kPreemptAndAbort, 0xa, 0xa), Status::kGood);
  EXPECT_EQ(key_of(kA), 0xau);
  EXPECT_EQ(key_of(kA2), 0u);
  EXPECT_TRUE(told(kA2, kRegistrationsPreempted));
  EXPECT_TRUE(aborts(kA2));
}

// --- RESERVE

TEST_F(PrDecisionTest, ReserveNeedsARegistrationAndItsKey) {
  EXPECT_EQ(ask(kA, PrOutAction::kReserve, 0, 0, kWe), Status::kReservationConflict);
  enlist(kA, 0xa);
  EXPECT_EQ(ask(kA, PrOutAction::kReserve, 0xb, 0, kWe), Status::kReservationConflict);
  EXPECT_EQ(state_.type, PrType::kNone);
}

TEST_F(PrDecisionTest, ReserveAgainIsGoodForTheHolderWithTheSameTypeOnly) {
  for (const PrType type : kAllTypes) {
    for (const PrType again : kAllTypes) {
      state_ = {};
      enlist(kA, 0xa);
      enlist(kB, 0xb);
      reserve(kA, 0xa, type);
      const uint32_t generation = state_.generation;
      const bool all = scsi::is_all_registrants(type);
      EXPECT_EQ(ask(kA, PrOutAction::kReserve, 0xa, 0, again) == Status::kGood, type == again);
      EXPECT_FALSE(last_.changed);
      EXPECT_EQ(ask(kB, PrOutAction::kReserve, 0xb, 0, again) == Status::kGood,
                all && type == again);
      EXPECT_EQ(state_.type, type);
      EXPECT_EQ(state_.generation, generation) << "RESERVE doesn't count";
    }
  }
}

// --- leaving and RELEASE

TEST_F(PrDecisionTest, TheReservationGoesWithItsHolderOrItsLastRegistrant) {
  for (const PrType type : kAllTypes) {
    state_ = {};
    enlist(kA, 0xa);
    enlist(kB, 0xb);
    enlist(kC, 0xc);
    reserve(kA, 0xa, type);
    ask(kC, PrOutAction::kRegister, 0xc, 0);
    EXPECT_EQ(state_.type, type) << "another's leaving changes nothing";
    ask(kA, PrOutAction::kRegister, 0xa, 0);
    const bool all = scsi::is_all_registrants(type);
    EXPECT_EQ(state_.type, all ? type : PrType::kNone);
    EXPECT_EQ(told(kB, kReservationsReleased), scsi::is_registrants_only(type));
    EXPECT_FALSE(told(kA, kReservationsReleased));
    EXPECT_EQ(state_.holds(kB), all);
    ask(kB, PrOutAction::kRegister, 0xb, 0);
    EXPECT_EQ(state_.type, PrType::kNone);
  }
}

TEST_F(PrDecisionTest, ReleaseTellsOtherRegistrantsOfSharedReservations) {
  for (const PrType type : kAllTypes) {
    state_ = {};
    enlist(kA, 0xa);
    enlist(kB, 0xb);
    reserve(kA, 0xa, type);
    EXPECT_EQ(ask(kC, PrOutAction::kRelease, 0, 0, type), Status::kReservationConflict);
    EXPECT_EQ(ask(kA, PrOutAction::kRelease, 0xb, 0, type), Status::kReservationConflict);
    EXPECT_EQ(ask(kA, PrOutAction::kRelease, 0xa, 0, type), Status::kGood);
    EXPECT_EQ(state_.type, PrType::kNone);
    EXPECT_EQ(told(kB, kReservationsReleased), type != kWe && type != kEa);
    EXPECT_FALSE(told(kA, kReservationsReleased));
    EXPECT_EQ(ask(kA, PrOutAction::kRelease, 0xa, 0, type), Status::kGood) << "nothing held";
    EXPECT_FALSE(last_.changed);
  }
}

TEST_F(PrDecisionTest, ReleaseOfAnothersReservationIsGoodAndDoesNothing) {
  enlist(kA, 0xa);
  enlist(kB, 0xb);
  reserve(kA, 0xa, kWero);
  EXPECT_EQ(ask(kB, PrOutAction::kRelease, 0xb, 0, kWero), Status::kGood);
  EXPECT_TRUE(state_.holds(kA));
}

TEST_F(PrDecisionTest, ReleaseOfAnotherTypeThanHeldIsRefused) {
  enlist(kA, 0xa);
  reserve(kA, 0xa, kWe);
  ask(kA, PrOutAction::kRelease, 0xa, 0, kEa);
  EXPECT_TRUE(refused(0x26, 0x04));
  EXPECT_EQ(state_.type, kWe);
}

// --- CLEAR

TEST_F(PrDecisionTest, ClearEmptiesEverythingAndTellsTheOthers) {
  enlist(kA, 0xa);
  enlist(kB, 0xb);
  reserve(kB, 0xb, kEa);
  EXPECT_EQ(ask(kA, PrOutAction::kClear, 1), Status::kReservationConflict);
  EXPECT_EQ(ask(kC, PrOutAction::kClear, 0), Status::kReservationConflict);
  const uint32_t generation = state_.generation;
  EXPECT_EQ(ask(kA, PrOutAction::kClear, 0xa), Status::kGood);
  EXPECT_TRUE(state_.registrations.empty());
  EXPECT_EQ(state_.type, PrType::kNone);
  EXPECT_EQ(state_.generation, generation + 1);
  EXPECT_TRUE(told(kB, kReservationsPreempted));
  EXPECT_FALSE(told(kA, kReservationsPreempted));
}

// --- PREEMPT: SPC-5 table of preempting actions

TEST_F(PrDecisionTest, PreemptWithoutReservationRemovesRegistrationsOnly) {
  enlist(kA, 0xa);
  enlist(kB, 0xb);
  enlist(kC, 0xb);
  EXPECT_EQ(ask(kA, PrOutAction::kPreempt, 0xa, 0xb), Status::kGood) << "TYPE is not looked at";
  EXPECT_EQ(key_of(kB), 0u);
  EXPECT_EQ(key_of(kC), 0u);
  EXPECT_EQ(state_.type, PrType::kNone);
  EXPECT_TRUE(told(kB, kRegistrationsPreempted));
  EXPECT_TRUE(told(kC, kRegistrationsPreempted));
  EXPECT_TRUE(last_.aborts.empty());
  EXPECT_EQ(state_.generation, 4u);
}

TEST_F(PrDecisionTest, PreemptOfAKeyNobodyHasConflicts) {
  enlist(kA, 0xa);
  EXPECT_EQ(ask(kA, PrOutAction::kPreempt, 0xa, 0xb), Status::kReservationConflict);
  EXPECT_EQ(ask(kB, PrOutAction::kPreempt, 0, 0xa), Status::kReservationConflict);
  EXPECT_EQ(ask(kA, PrOutAction::kPreempt, 0xb, 0xa), Status::kReservationConflict);
  EXPECT_EQ(state_.generation, 1u);
}

TEST_F(PrDecisionTest, PreemptOfTheHoldersKeyTakesTheReservationOver) {
  for (const PrType held : {kWe, kEa, kWero, kEaro}) {
    for (const PrType wanted : kAllTypes) {
      state_ = {};
      enlist(kA, 0xa);
      enlist(kB, 0xb);
      enlist(kC, 0xc);
      reserve(kA, 0xa, held);
      EXPECT_EQ(ask(kB, PrOutAction::kPreemptAndAbort, 0xb, 0xa, wanted), Status::kGood);
      EXPECT_EQ(key_of(kA), 0u);
      EXPECT_EQ(state_.type, wanted);
      EXPECT_TRUE(state_.holds(kB));
      EXPECT_EQ(state_.holds(kC), scsi::is_all_registrants(wanted));
      EXPECT_TRUE(told(kA, kRegistrationsPreempted));
      EXPECT_EQ(told(kC, kReservationsReleased), held != wanted);
      EXPECT_FALSE(told(kB, kReservationsReleased));
      EXPECT_TRUE(aborts(kA));
      EXPECT_FALSE(aborts(kB));
      EXPECT_FALSE(aborts(kC));
    }
  }
}

TEST_F(PrDecisionTest, PreemptOfABystandersKeyLeavesTheReservation) {
  for (const PrType held : kAllTypes) {
    state_ = {};
    enlist(kA, 0xa);
    enlist(kB, 0xb);
    enlist(kC, 0xc);
    reserve(kA, 0xa, held);
    EXPECT_EQ(ask(kB, PrOutAction::kPreempt, 0xb, 0xc, kWe), Status::kGood);
    EXPECT_EQ(state_.type, held);
    EXPECT_TRUE(state_.holds(kA));
    EXPECT_EQ(key_of(kC), 0u);
  }
}

TEST_F(PrDecisionTest, PreemptWithAKeyOfZeroIsForAllRegistrantsOnly) {
  for (const PrType held : {PrType::kNone, kWe, kEa, kWero, kEaro}) {
    state_ = {};
    enlist(kA, 0xa);
    enlist(kB, 0xb);
    if (held != PrType::kNone) reserve(kA, 0xa, held);
    ask(kB, PrOutAction::kPreempt, 0xb, 0, kWe);
    EXPECT_TRUE(refused(0x26, 0x00, 8)) << static_cast<int>(held);
  }
  for (const PrType held : {kWear, kEaar}) {
    state_ = {};
    enlist(kA, 0xa);
    enlist(kB, 0xb);
    enlist(kC, 0xc);
    reserve(kA, 0xa, held);
    EXPECT_EQ(ask(kB, PrOutAction::kPreemptAndAbort, 0xb, 0, kWe), Status::kGood);
    EXPECT_EQ(state_.registrations.size(), 1u);
    EXPECT_EQ(state_.type, kWe);
    EXPECT_TRUE(state_.holds(kB));
    EXPECT_TRUE(told(kA, kRegistrationsPreempted));
    EXPECT_TRUE(told(kC, kRegistrationsPreempted));
    EXPECT_TRUE(aborts(kA));
    EXPECT_TRUE(aborts(kC));
  }
}

TEST_F(PrDecisionTest, OneRegistrantOfAnAllRegistrantsReservationCanBeRemoved) {
  enlist(kA, 0xa);
  enlist(kB, 0xb);
  reserve(kA, 0xa, kWear);
  EXPECT_EQ(ask(kB, PrOutAction::kPreempt, 0xb, 0xa, kEa), Status::kGood);
  EXPECT_EQ(state_.type, kWear) << "the reservation stays what it is";
  EXPECT_FALSE(state_.holds(kA));
  EXPECT_TRUE(state_.holds(kB));
}

TEST_F(PrDecisionTest, TheHolderMayPreemptItselfToChangeTheType) {
  enlist(kA, 0xa);
  enlist(kB, 0xb);
  reserve(kA, 0xa, kWe);
  EXPECT_EQ(ask(kA, PrOutAction::kPreempt, 0xa, 0xa, kEa), Status::kGood);
  EXPECT_EQ(key_of(kA), 0xau);
  EXPECT_EQ(state_.type, kEa);
  EXPECT_TRUE(state_.holds(kA));
  EXPECT_TRUE(told(kB, kReservationsReleased));
}

TEST_F(PrDecisionTest, PreemptChecksTheTypeOnlyWhenItReserves) {
  enlist(kA, 0xa);
  enlist(kB, 0xb);
  reserve(kA, 0xa, kWe);
  ask(kB, PrOutAction::kPreempt, 0xb, 0xa, PrType::kNone);
  EXPECT_TRUE(refused(0x24, 0x00, 2));
  EXPECT_EQ(key_of(kA), 0xau);
}

// --- REGISTER AND MOVE

class RegisterAndMoveTest : public PrDecisionTest {
 protected:
  PrRequest move_to_b(uint64_t key, uint64_t new_key) {
    PrRequest r = pr_request(PrOutAction::kRegisterAndMove, key, new_key);
    r.move_to = kB;
    return r;
  }
};

TEST_F(RegisterAndMoveTest, TheReservationGoesToAnotherNexusWithItsType) {
  for (const bool leaves : {false, true}) {
    state_ = {};
    enlist(kA, 0xa);
    enlist(kC, 0xc);
    reserve(kA, 0xa, kEaro);
    PrRequest r = move_to_b(0xa, 0xb);
    r.list.unregister = leaves;
    EXPECT_EQ(ask(kA, r), Status::kGood);
    EXPECT_EQ(key_of(kB), 0xbu);
    EXPECT_EQ(key_of(kA), leaves ? 0u : 0xau);
    EXPECT_EQ(state_.type, kEaro);
    EXPECT_TRUE(state_.holds(kB));
    EXPECT_FALSE(state_.holds(kA));
    EXPECT_EQ(state_.generation, 3u);
    EXPECT_TRUE(last_.attentions.empty());
  }
}

TEST_F(RegisterAndMoveTest, OnlyTheHolderOfAnUnsharedReservationMayMoveIt) {
  EXPECT_EQ(ask(kA, move_to_b(0, 0xb)), Status::kReservationConflict);
  enlist(kA, 0xa);
  ask(kA, move_to_b(0xa, 0xb));
  EXPECT_TRUE(refused(0x24, 0x00, 1)) << "nothing to move";
  reserve(kA, 0xa, kWear);
  EXPECT_EQ(ask(kA, move_to_b(0xa, 0xb)), Status::kReservationConflict);
  ask(kA, PrOutAction::kRelease, 0xa, 0, kWear);
  reserve(kA, 0xa, kWe);
  enlist(kC, 0xc);
  EXPECT_EQ(ask(kC, move_to_b(0xc, 0xb)), Status::kReservationConflict);
  EXPECT_EQ(ask(kA, move_to_b(0xb, 0xb)), Status::kReservationConflict);
}

TEST_F(RegisterAndMoveTest, NeedsANewKeyAndAnotherNexus) {
  enlist(kA, 0xa);
  reserve(kA, 0xa, kWe);
  ask(kA, move_to_b(0xa, 0));
  EXPECT_TRUE(refused(0x26, 0x00, 8));
  PrRequest r = move_to_b(0xa, 0xb);
  r.move_to = kA;
  ask(kA, r);
  EXPECT_TRUE(refused(0x26, 0x00, 24));
  r.move_to.reset();
  ask(kA, r);
  EXPECT_TRUE(refused(0x26, 0x00, 24));
}

}  // namespace
}  // namespace sluice::lun
