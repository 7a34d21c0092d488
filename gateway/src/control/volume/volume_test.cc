#include "control/volume/volume.h"

#include "base/limits.h"
#include "control/volume/volume_fixture.h"

namespace sluice::control {
namespace {

TEST_F(VolumeTest, AcquiringObtainsTheLockReportsItsOrderAndServesNothing) {
  give(order(wire::VOLUME_ROLE_ACQUIRING, 5, 10, kOther));
  EXPECT_EQ(last().state(), wire::VOLUME_STATE_LOCKED);
  EXPECT_EQ(last().order(), 10u);
  EXPECT_TRUE(disk_.locked && disk_.outlasts == Outlasts::kProcess);
  EXPECT_EQ(unit_.serving, 0u);
  EXPECT_EQ(disk_.record->holder.incarnation, "me");
  EXPECT_EQ(unit_.role->standing, lun::Standing::kForwarder);
  give(order(wire::VOLUME_ROLE_OWNER, 6, 11));
  loaded(Loaded::What::kState, 4, 77);
  EXPECT_EQ(last().state(), wire::VOLUME_STATE_SERVING);
  EXPECT_EQ(unit_.serving, 6u);
  EXPECT_EQ(unit_.pr_generation, 77u);
  EXPECT_EQ(disk_.outlasts, Outlasts::kPowerCut);
  EXPECT_EQ(disk_.record->epoch, 6u);
  EXPECT_EQ(disk_.record->generation, 4u);
  EXPECT_EQ(commits_->generation, 4u);
}

TEST_F(VolumeTest, AnOrderFailsIfTheRecordHasANewerEpoch) {
  disk_.record = Record();
  disk_.record->epoch = 9;
  give(order(wire::VOLUME_ROLE_OWNER, 8, 10));
  EXPECT_EQ(last().state(), wire::VOLUME_STATE_FAILED);
  EXPECT_FALSE(disk_.locked);
  EXPECT_EQ(disk_.record->epoch, 9u);
  EXPECT_EQ(unit_.serving, 0u);
}

TEST_F(VolumeTest, ALoadOfReservationsReceivesTheRecordOfTheVolume) {
  disk_.record = Record();
  disk_.record->epoch = 5;
  disk_.record->generation = 6;
  disk_.record->reservations.generation = 42;
  give(order(wire::VOLUME_ROLE_OWNER, 6, 11));
  EXPECT_EQ(beside_.generation, 6u);
  EXPECT_EQ(beside_.reservations.generation, 42u);
  EXPECT_EQ(unit_.serving, 0u);
}

// A step may wait for a medium that hangs, so the report needs none.
TEST_F(VolumeTest, AServedVolumeIsReportedAgainWithoutAStepWhenTheHealthOfItsMediumChanges) {
  own(1, 1);
  const size_t before = reports_.size();
  volume_->review_medium();
  EXPECT_EQ(reports_.size(), before);
  unit_.medium = {.ready = false, .problem = "the file was deleted while in use"};
  volume_->review_medium();
  ASSERT_EQ(reports_.size(), before + 1);
  EXPECT_EQ(last().state(), wire::VOLUME_STATE_SERVING);
  EXPECT_EQ(last().epoch(), 1u);
  EXPECT_TRUE(last().medium_not_ready());
  EXPECT_EQ(last().medium_problem(), "the file was deleted while in use");
  EXPECT_FALSE(last().medium_stuck());
  volume_->review_medium();
  EXPECT_EQ(reports_.size(), before + 1) << "an unchanged health is reported twice";
  unit_.medium = {.ready = true, .problem = {}, .stuck = true};
  volume_->review_medium();
  ASSERT_EQ(reports_.size(), before + 2);
  EXPECT_FALSE(last().medium_not_ready());
  EXPECT_EQ(last().medium_problem(), "");
  EXPECT_TRUE(last().medium_stuck());
  unit_.medium = {.ready = true, .problem = {}, .errors = true};
  volume_->review_medium();
  ASSERT_EQ(reports_.size(), before + 3);
  EXPECT_FALSE(last().medium_stuck());
  EXPECT_TRUE(last().medium_errors());
  unit_.medium = {};
  volume_->review_medium();
  ASSERT_EQ(reports_.size(), before + 4);
  EXPECT_FALSE(last().medium_errors());
}

TEST_F(VolumeTest, TheHealthOfAVolumeThatIsNotServedIsNotReported) {
  own(1, 1);
  give(order(wire::VOLUME_ROLE_RELEASING, 1, 2));
  release_done();
  ASSERT_EQ(last().state(), wire::VOLUME_STATE_RELEASED);
  const size_t before = reports_.size();
  unit_.medium = {.ready = true, .problem = {}, .stuck = true};
  volume_->review_medium();
  EXPECT_EQ(reports_.size(), before);
}

TEST_F(VolumeTest, ReleaseIsFinalForTheEpoch) {
  own(5, 10);
  give(order(wire::VOLUME_ROLE_RELEASING, 5, 11));
  release_done();
  EXPECT_EQ(last().state(), wire::VOLUME_STATE_RELEASED);
  EXPECT_EQ(last().epoch(), 5u);
  unit_.serving = 0;
  give(order(wire::VOLUME_ROLE_OWNER, 5, 12));  // CancelMove
  EXPECT_EQ(loads_, 1);
  EXPECT_FALSE(disk_.locked);
  EXPECT_EQ(last().state(), wire::VOLUME_STATE_RELEASED);
  EXPECT_EQ(last().order(), 12u);
  own(6, 13);
  EXPECT_EQ(unit_.serving, 6u);
}

TEST_F(VolumeTest, AFailedOpeningIsFinalForTheEpoch) {
  disk_.broken = true;
  give(order(wire::VOLUME_ROLE_OWNER, 5, 10));
  EXPECT_EQ(last().state(), wire::VOLUME_STATE_FAILED);
  EXPECT_EQ(last().reason(), "no such file");
  disk_.broken = false;
  give(order(wire::VOLUME_ROLE_OWNER, 5, 11));
  EXPECT_EQ(last().state(), wire::VOLUME_STATE_FAILED);
  EXPECT_FALSE(disk_.locked);
}

// R11: a gateway that can't open the volume does not know whether another one can.
TEST_F(VolumeTest, HostsWaitAfterAFailedOpeningUntilTheControlPlaneExcludesATakeover) {
  disk_.broken = true;
  give(order(wire::VOLUME_ROLE_OWNER, 5, 10));
  EXPECT_EQ(last().state(), wire::VOLUME_STATE_FAILED);
  EXPECT_EQ(unit_.role->standing, lun::Standing::kTransitioning);
  wire::DesiredVolume next = order(wire::VOLUME_ROLE_FORWARDER, 5, 11, 0);
  next.set_transitioning(true);
  give(next);
  EXPECT_EQ(unit_.role->standing, lun::Standing::kTransitioning);
  next.set_order(12);
  next.set_transitioning(false);
  give(next);
  EXPECT_EQ(unit_.role->standing, lun::Standing::kUnavailable);
}

// R11: hosts use other paths while this gateway reaches neither the owner nor the control plane.
TEST_F(VolumeTest, AForwarderThatIsCutOffFromTheOwnerIsUnavailableUntilItReachesIt) {
  give(order(wire::VOLUME_ROLE_FORWARDER, 5, 10, kOther));
  const int before = wakes_;
  volume_->review_contact();
  EXPECT_EQ(wakes_, before) << "nothing has changed";
  for (const auto& [owner, standing] :
       {std::pair{kOther, lun::Standing::kCutOff}, {uint16_t{0}, lun::Standing::kForwarder}}) {
    cut_off_from_ = owner;
    const int woken = wakes_;
    volume_->review_contact();
    ASSERT_EQ(wakes_, woken + 1);
    volume_->step(now_);
    EXPECT_EQ(unit_.role->standing, standing);
    EXPECT_EQ(unit_.role->owner, kOther);
    EXPECT_EQ(unit_.role->epoch, 5u);
  }
}

TEST_F(VolumeTest, AnOwnerIsNotCutOffFromItself) {
  own(5, 10);
  cut_off_from_ = kSelf;
  const int before = wakes_;
  volume_->review_contact();
  EXPECT_EQ(wakes_, before);
}

TEST_F(VolumeTest, ANewerEpochFencesTheServingOwner) {
  own(5, 10);
  give(order(wire::VOLUME_ROLE_FORWARDER, 6, 11, kOther));
  ASSERT_TRUE(unit_.fenced);
  EXPECT_FALSE(unit_.released);
  unit_.backend.reset();
  unit_.fenced();
  volume_->step(now_);
  EXPECT_EQ(last().state(), wire::VOLUME_STATE_FENCED);
  EXPECT_EQ(last().epoch(), 5u);
  EXPECT_EQ(unit_.role->standing, lun::Standing::kForwarder);
  EXPECT_EQ(unit_.role->owner, kOther);
  EXPECT_FALSE(commits_);
}

TEST_F(VolumeTest, ANewerEpochSeenByAPeerFencesTheOwner) {
  own(5, 10);
  volume_->saw_epoch(6);
  volume_->step(now_);
  EXPECT_TRUE(unit_.fenced);
}

TEST_F(VolumeTest, WithoutTheControlPlaneARecordOfTheSameEpochSufficesToServe) {
  disk_.record = Record();
  disk_.record->epoch = 5;
  disk_.record->generation = 3;
  disk_.record->reservations.generation = 42;
  give(order(wire::VOLUME_ROLE_OWNER, 5, 10));
  EXPECT_TRUE(settle_) << "a commit of a former life may be on its way";
  loaded(Loaded::What::kFailed);
  EXPECT_EQ(last().state(), wire::VOLUME_STATE_SERVING);
  EXPECT_EQ(unit_.pr_generation, 42u);
}

TEST_F(VolumeTest, ARecordWithoutReservationsDoesNotSubstituteForTheControlPlane) {
  disk_.record = Record();
  disk_.record->epoch = 5;
  disk_.record->reservations_known = false;
  give(order(wire::VOLUME_ROLE_OWNER, 5, 10));
  loaded(Loaded::What::kFailed);
  EXPECT_EQ(next_, limits::kLoadAgain);
  EXPECT_EQ(unit_.serving, 0u);
  volume_->step(now_);
  loaded(Loaded::What::kState);
  EXPECT_EQ(last().state(), wire::VOLUME_STATE_SERVING);
}

TEST_F(VolumeTest, AnOlderRecordDoesNotSufficeAndTheLoadIsRetried) {
  disk_.record = Record();
  disk_.record->epoch = 4;
  give(order(wire::VOLUME_ROLE_OWNER, 5, 10));
  EXPECT_FALSE(settle_);
  loaded(Loaded::What::kFailed);
  EXPECT_EQ(next_, limits::kLoadAgain);
  EXPECT_EQ(unit_.serving, 0u);
  volume_->step(now_);
  EXPECT_EQ(loads_, 2);
  loaded(Loaded::What::kState);
  EXPECT_EQ(unit_.serving, 5u);
}

TEST_F(VolumeTest, AnOlderOrderIsRefused) {
  own(5, 10);
  EXPECT_FALSE(volume_->order(order(wire::VOLUME_ROLE_RELEASING, 5, 9)));
  EXPECT_FALSE(volume_->order(order(wire::VOLUME_ROLE_FORWARDER, 4, 12)));
  volume_->step(now_);
  EXPECT_FALSE(unit_.released);
}

TEST_F(VolumeTest, ANewerOrderWithTheSameContentIsReported) {
  own(5, 10);
  give(order(wire::VOLUME_ROLE_OWNER, 5, 11));
  EXPECT_EQ(last().state(), wire::VOLUME_STATE_SERVING);
  EXPECT_EQ(last().order(), 11u);
}

TEST_F(VolumeTest, ARemovedVolumeIsReleasedBeforeItsRemovalCompletes) {
  own(5, 10);
  bool gone = false;
  volume_->remove([&] { gone = true; });
  volume_->step(now_);
  EXPECT_FALSE(gone);
  release_done();
  EXPECT_TRUE(gone);
  EXPECT_EQ(last().state(), wire::VOLUME_STATE_RELEASED);
}

}  // namespace
}  // namespace sluice::control
