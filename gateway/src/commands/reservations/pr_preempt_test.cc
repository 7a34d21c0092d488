// PREEMPT, PREEMPT AND ABORT, REGISTER AND MOVE.
#include <gtest/gtest.h>

#include "commands/reservations/pr_decision_fixture.h"

namespace sluice::lun {
namespace {

using scsi::PrOutAction;
using scsi::PrType;
using scsi::Status;

// --- PREEMPT: SPC-5 table of preempting actions

TEST_F(PrDecisionTest, PreemptWithoutReservationRemovesRegistrationsOnly) {
  enlist(kA, 0xa);
  enlist(kB, 0xb);
  enlist(kC, 0xb);
  EXPECT_EQ(ask(kA, PrOutAction::kPreempt, 0xa, 0xb), Status::kGood) << "TYPE is not looked at";
  EXPECT_EQ(key_of(kB), 0u);
  EXPECT_EQ(key_of(kC), 0u);
  EXPECT_EQ(state_.type, PrType::kNone);
  EXPECT_TRUE(got_attention(kB, kRegistrationsPreempted));
  EXPECT_TRUE(got_attention(kC, kRegistrationsPreempted));
  EXPECT_TRUE(last_.aborts.empty());
  EXPECT_EQ(state_.generation, 4u);
}

TEST_F(PrDecisionTest, PreemptOfAnUnregisteredKeyConflicts) {
  enlist(kA, 0xa);
  EXPECT_EQ(ask(kA, PrOutAction::kPreempt, 0xa, 0xb), Status::kReservationConflict);
  EXPECT_EQ(ask(kB, PrOutAction::kPreempt, 0, 0xa), Status::kReservationConflict);
  EXPECT_EQ(ask(kA, PrOutAction::kPreempt, 0xb, 0xa), Status::kReservationConflict);
  EXPECT_EQ(state_.generation, 1u);
}

TEST_F(PrDecisionTest, PreemptOfTheHoldersKeyTransfersTheReservation) {
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
      EXPECT_TRUE(got_attention(kA, kRegistrationsPreempted));
      EXPECT_EQ(got_attention(kC, kReservationsReleased), held != wanted);
      EXPECT_FALSE(got_attention(kB, kReservationsReleased));
      EXPECT_TRUE(aborts(kA));
      EXPECT_FALSE(aborts(kB));
      EXPECT_FALSE(aborts(kC));
    }
  }
}

TEST_F(PrDecisionTest, PreemptOfAnotherRegistrantsKeyPreservesTheReservation) {
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

TEST_F(PrDecisionTest, PreemptWithAZeroKeyIsValidOnlyForAllRegistrantsReservations) {
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
    EXPECT_TRUE(got_attention(kA, kRegistrationsPreempted));
    EXPECT_TRUE(got_attention(kC, kRegistrationsPreempted));
    EXPECT_TRUE(aborts(kA));
    EXPECT_TRUE(aborts(kC));
  }
}

TEST_F(PrDecisionTest, PreemptMayRemoveOneRegistrantOfAnAllRegistrantsReservation) {
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
  EXPECT_TRUE(got_attention(kB, kReservationsReleased));
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

TEST_F(RegisterAndMoveTest, TheReservationMovesToAnotherNexusWithItsType) {
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
