// How the lock of a volume moves between gateways.
#include "base/limits.h"
#include "control/volume/volume_fixture.h"

namespace sluice::control {
namespace {

TEST_F(VolumeTest, AHolderYieldsToANewerOrderAndRefusesAnOlderOne) {
  own(5, 10);
  EXPECT_EQ(volume_->asked(9).yield, Yield::kRefused);
  EXPECT_EQ(volume_->asked(9).order, 10u);
  volume_->step(now_);
  EXPECT_FALSE(unit_.released);
  EXPECT_EQ(volume_->asked(11).yield, Yield::kYielding);
  volume_->step(now_);
  release_done();
  EXPECT_EQ(last().state(), wire::VOLUME_STATE_RELEASED);
  EXPECT_FALSE(disk_.locked);
  EXPECT_EQ(volume_->asked(11).yield, Yield::kNotHeld);
}

TEST_F(VolumeTest, AHolderYieldsToTheSameOrder) {
  own(5, 10);
  EXPECT_EQ(volume_->asked(10).yield, Yield::kYielding);
  volume_->step(now_);
  EXPECT_TRUE(unit_.released);
}

TEST_F(VolumeTest, AReleasedLockIsNoLongerReported) {
  give(order(wire::VOLUME_ROLE_ACQUIRING, 5, 10, kOther));
  ASSERT_EQ(volume_->observed()->state(), wire::VOLUME_STATE_LOCKED);
  EXPECT_EQ(volume_->asked(11).yield, Yield::kYielding);
  volume_->step(now_);
  EXPECT_FALSE(disk_.locked);
  EXPECT_FALSE(volume_->observed());
}

TEST_F(VolumeTest, AHolderThatReleasesItsLockInAClosedEpochReportsTheEpochAsReleased) {
  own(5, 10);
  EXPECT_EQ(volume_->asked(11).yield, Yield::kYielding);
  volume_->step(now_);
  release_done();
  give(order(wire::VOLUME_ROLE_ACQUIRING, 5, 12));
  ASSERT_EQ(last().state(), wire::VOLUME_STATE_LOCKED);
  EXPECT_EQ(volume_->asked(13).yield, Yield::kYielding);
  volume_->step(now_);
  give(order(wire::VOLUME_ROLE_OWNER, 5, 14));
  EXPECT_EQ(last().state(), wire::VOLUME_STATE_RELEASED);
  EXPECT_EQ(last().order(), 14u);
}

TEST_F(VolumeTest, AGatewayThatYieldedAcquiresTheLockAgainOnlyWithANewerOrder) {
  give(order(wire::VOLUME_ROLE_ACQUIRING, 5, 10, 0));
  EXPECT_EQ(volume_->asked(11).yield, Yield::kYielding);
  volume_->step(now_);
  EXPECT_FALSE(disk_.locked);
  give(order(wire::VOLUME_ROLE_ACQUIRING, 5, 11, 0));
  EXPECT_FALSE(disk_.locked);
  give(order(wire::VOLUME_ROLE_ACQUIRING, 5, 12, 0));
  EXPECT_TRUE(disk_.locked);
  EXPECT_EQ(last().state(), wire::VOLUME_STATE_LOCKED);
}

TEST_F(VolumeTest, AHeldLockIsRequestedFromItsHolderAndPolled) {
  disk_.locked = true;
  disk_.record = Record();
  disk_.answer = {Yield::kYielding, 0};
  const Nanos wait = give(order(wire::VOLUME_ROLE_ACQUIRING, 5, 10, 0));
  EXPECT_EQ(disk_.asked, 1);
  EXPECT_GT(wait, 0);
  EXPECT_LE(wait, limits::kLockPollMost);
  EXPECT_TRUE(reports_.empty());
  disk_.locked = false;
  now_ += wait;
  volume_->step(now_);
  EXPECT_EQ(last().state(), wire::VOLUME_STATE_LOCKED);
  EXPECT_EQ(disk_.killed, 0);
}

TEST_F(VolumeTest, ASilentHolderIsKilled) {
  disk_.locked = true;
  disk_.record = Record();
  disk_.answer = {Yield::kSilent, 0};
  const Nanos wait = give(order(wire::VOLUME_ROLE_ACQUIRING, 5, 10, 0));
  EXPECT_EQ(disk_.killed, 1);
  volume_->step(now_ + wait);
  EXPECT_EQ(last().state(), wire::VOLUME_STATE_LOCKED);
}

TEST_F(VolumeTest, AnUnreachableHolderIsKilledOnlyAfterItsPatienceWithoutAnAnswer) {
  disk_.locked = true;
  disk_.record = Record();
  disk_.answer = {Yield::kYielding, 0};
  give(order(wire::VOLUME_ROLE_ACQUIRING, 5, 10, 0));
  volume_->step(now_ += limits::kHolderPatience);
  disk_.answer = {Yield::kUnreachable, 0};
  volume_->step(now_ += limits::kHolderPatience);
  EXPECT_EQ(disk_.asked, 3);
  EXPECT_EQ(disk_.killed, 0) << "it has yielded, and may be about to end";
  disk_.answer = {Yield::kYielding, 0};
  volume_->step(now_ += limits::kHolderPatience);
  disk_.answer = {Yield::kUnreachable, 0};
  volume_->step(now_ += limits::kHolderPatience);
  EXPECT_EQ(disk_.killed, 0) << "it has answered since";
  volume_->step(now_ += limits::kHolderPatience);
  EXPECT_EQ(disk_.killed, 1);
}

TEST_F(VolumeTest, AHolderThatCannotBeKilledIsReportedAndItsLockIsStillAwaited) {
  disk_.locked = true;
  disk_.record = Record();
  disk_.answer = {Yield::kSilent, 0};
  disk_.kill_problem = "another pid namespace";
  give(order(wire::VOLUME_ROLE_ACQUIRING, 5, 10, 0));
  for (int i = 0; i < 4; ++i) next_ = volume_->step(now_ += limits::kHolderPatience);
  ASSERT_EQ(reports_.size(), 1u);
  EXPECT_EQ(last().state(), wire::VOLUME_STATE_FAILED);
  EXPECT_NE(last().reason().find("another pid namespace"), std::string::npos) << last().reason();
  EXPECT_NE(next_, Volume::kNever);
  disk_.locked = false;
  volume_->step(now_);
  EXPECT_EQ(last().state(), wire::VOLUME_STATE_LOCKED);
}

TEST_F(VolumeTest, AHolderWithANewerOrderIsNotKilledAndTheOlderOrderFails) {
  disk_.locked = true;
  disk_.record = Record();
  disk_.answer = {Yield::kRefused, 12};
  give(order(wire::VOLUME_ROLE_OWNER, 5, 10));
  EXPECT_EQ(last().state(), wire::VOLUME_STATE_FAILED);
  EXPECT_EQ(disk_.killed, 0);
}

}  // namespace
}  // namespace sluice::control
