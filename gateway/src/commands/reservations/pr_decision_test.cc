#include "commands/reservations/pr_decision.h"

#include <gtest/gtest.h>

#include "base/limits.h"
#include "commands/reservations/pr_decision_fixture.h"

namespace sluice::lun {
namespace {

using scsi::PrOutAction;
using scsi::PrType;
using scsi::Status;

// --- REGISTER: SPC-5 tables of register behaviors

TEST_F(PrDecisionTest, RegisterOfAnUnregisteredNexusNeedsAZeroReservationKey) {
  EXPECT_EQ(ask(kA, PrOutAction::kRegister, 5, 0xa), Status::kReservationConflict);
  EXPECT_EQ(ask(kA, PrOutAction::kRegister, 5, 0), Status::kReservationConflict);
  EXPECT_EQ(state_.generation, 0u);
  EXPECT_EQ(ask(kA, PrOutAction::kRegister, 0, 0xa), Status::kGood);
  EXPECT_EQ(key_of(kA), 0xau);
  EXPECT_EQ(state_.generation, 1u);
}

TEST_F(PrDecisionTest, UnregisteringAnUnregisteredNexusChangesNothing) {
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

TEST_F(PrDecisionTest, ANewKeyOfTheHolderPreservesTheReservation) {
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

TEST_F(PrDecisionTest, SpecIPtIsRefusedExceptInAFirstRegister) {
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

TEST_F(PrDecisionTest, ATransportIdErrorIsReportedOnlyWithTheCorrectReservationKey) {
  PrRequest r = pr_request(PrOutAction::kRegister, 9, 0xa);
  r.list.spec_i_pt = true;
  r.fault = scsi::Sense::invalid_field_in_parameter_list(28);
  EXPECT_EQ(ask(kA, r), Status::kReservationConflict);
  r.list.key = 0;
  ask(kA, r);
  EXPECT_TRUE(refused(0x26, 0x00, 28));
}

// --- ALL_TG_PT

TEST_F(PrDecisionTest, AnAllTargetPortsRegistrationCoversLaterPorts) {
  enlist_all_ports(kA, 0xa);
  EXPECT_EQ(key_of(kA), 0xau);
  EXPECT_EQ(key_of(kA2), 0xau);
  EXPECT_EQ(key_of(test_nexus("a", 999)), 0xau);
  EXPECT_EQ(key_of(kB), 0u);
  EXPECT_EQ(state_.registrations.size(), 1u);
}

TEST_F(PrDecisionTest, OnePortOfAnAllTargetPortsRegistrationMayUnregisterOrChangeItsKey) {
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

TEST_F(PrDecisionTest, OnlyThePortThatReservedIsTheHolderOfAnAllTargetPortsRegistration) {
  enlist_all_ports(kA, 0xa);
  reserve(kA, 0xa, kWe);
  EXPECT_TRUE(state_.holds(kA));
  EXPECT_FALSE(state_.holds(kA2));
  EXPECT_EQ(ask(kA2, PrOutAction::kReserve, 0xa, 0, kWe), Status::kReservationConflict);
}

TEST_F(PrDecisionTest, PreemptingItsOwnKeyRetainsOnlyThePreemptingPort) {
  enlist_all_ports(kA, 0xa);
  EXPECT_EQ(ask(kA, PrOutAction::kPreemptAndAbort, 0xa, 0xa), Status::kGood);
  EXPECT_EQ(key_of(kA), 0xau);
  EXPECT_EQ(key_of(kA2), 0u);
  EXPECT_TRUE(got_attention(kA2, kRegistrationsPreempted));
  EXPECT_TRUE(aborts(kA2));
}

// --- RESERVE

TEST_F(PrDecisionTest, ReserveNeedsARegistrationAndItsKey) {
  EXPECT_EQ(ask(kA, PrOutAction::kReserve, 0, 0, kWe), Status::kReservationConflict);
  enlist(kA, 0xa);
  EXPECT_EQ(ask(kA, PrOutAction::kReserve, 0xb, 0, kWe), Status::kReservationConflict);
  EXPECT_EQ(state_.type, PrType::kNone);
}

TEST_F(PrDecisionTest, ARepeatedReserveReturnsGoodOnlyForTheHolderAndTheSameType) {
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

TEST_F(PrDecisionTest, TheReservationEndsWithItsHolderOrItsLastRegistrant) {
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
    EXPECT_EQ(got_attention(kB, kReservationsReleased), scsi::is_registrants_only(type));
    EXPECT_FALSE(got_attention(kA, kReservationsReleased));
    EXPECT_EQ(state_.holds(kB), all);
    ask(kB, PrOutAction::kRegister, 0xb, 0);
    EXPECT_EQ(state_.type, PrType::kNone);
  }
}

TEST_F(PrDecisionTest, AReleaseOfASharedReservationIsReportedToOtherRegistrants) {
  for (const PrType type : kAllTypes) {
    state_ = {};
    enlist(kA, 0xa);
    enlist(kB, 0xb);
    reserve(kA, 0xa, type);
    EXPECT_EQ(ask(kC, PrOutAction::kRelease, 0, 0, type), Status::kReservationConflict);
    EXPECT_EQ(ask(kA, PrOutAction::kRelease, 0xb, 0, type), Status::kReservationConflict);
    EXPECT_EQ(ask(kA, PrOutAction::kRelease, 0xa, 0, type), Status::kGood);
    EXPECT_EQ(state_.type, PrType::kNone);
    EXPECT_EQ(got_attention(kB, kReservationsReleased), type != kWe && type != kEa);
    EXPECT_FALSE(got_attention(kA, kReservationsReleased));
    EXPECT_EQ(ask(kA, PrOutAction::kRelease, 0xa, 0, type), Status::kGood) << "nothing held";
    EXPECT_FALSE(last_.changed);
  }
}

TEST_F(PrDecisionTest, AReleaseByANonHolderReturnsGoodAndChangesNothing) {
  enlist(kA, 0xa);
  enlist(kB, 0xb);
  reserve(kA, 0xa, kWero);
  const ReservationState before = state_;
  EXPECT_EQ(ask(kB, PrOutAction::kRelease, 0xb, 0, kWero), Status::kGood);
  EXPECT_FALSE(last_.changed);
  EXPECT_TRUE(last_.attentions.empty());
  EXPECT_EQ(state_, before);
}

TEST_F(PrDecisionTest, ReleaseOfAnotherTypeThanHeldIsRefused) {
  enlist(kA, 0xa);
  reserve(kA, 0xa, kWe);
  ask(kA, PrOutAction::kRelease, 0xa, 0, kEa);
  EXPECT_TRUE(refused(0x26, 0x04));
  EXPECT_EQ(state_.type, kWe);
}

// --- CLEAR

TEST_F(PrDecisionTest, ClearRemovesAllRegistrationsAndIsReportedToOtherRegistrants) {
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
  EXPECT_TRUE(got_attention(kB, kReservationsPreempted));
  EXPECT_FALSE(got_attention(kA, kReservationsPreempted));
}

}  // namespace
}  // namespace sluice::lun
