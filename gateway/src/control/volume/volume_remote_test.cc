// A volume whose storage answers later, as a Ceph image does, and which may be lost.
#include "base/limits.h"
#include "control/volume/volume_fixture.h"

namespace sluice::control {
namespace {

class RemoteVolumeTest : public VolumeTest {
 protected:
  RemoteVolumeTest() { disk_.remote = true; }
  void step() { next_ = volume_->step(now_); }
};

TEST_F(RemoteVolumeTest, OpensThenLoadsThenClaimsThenServes) {
  disk_.opening = true;
  give(order(wire::VOLUME_ROLE_OWNER, 5, 10));
  EXPECT_EQ(unit_.role->standing, lun::Standing::kTransitioning);
  now_ += 2 * limits::kLockGivesUp;
  step();
  EXPECT_EQ(next_, Volume::kNever);
  EXPECT_EQ(loads_, 0) << "loaded before it was open";
  EXPECT_TRUE(reports_.empty()) << "what is pending is waited for";
  disk_.opening = false;
  disk_.claiming = true;
  const int before = wakes_;
  disk_.wake();
  EXPECT_GT(wakes_, before);
  step();
  EXPECT_TRUE(disk_.locked);
  EXPECT_EQ(loads_, 1);
  loaded(Loaded::What::kState, 4, 77);
  EXPECT_EQ(unit_.serving, 0u) << "served before its record was written";
  disk_.claiming = false;
  step();
  EXPECT_EQ(unit_.serving, 5u);
  EXPECT_EQ(unit_.pr_generation, 77u);
  EXPECT_EQ(disk_.record->epoch, 5u);
  EXPECT_EQ(commits_->generation, 4u);
  EXPECT_EQ(last().state(), wire::VOLUME_STATE_SERVING);
}

TEST_F(RemoteVolumeTest, TheRecordDoesNotSubstituteForTheControlPlane) {
  disk_.record = Record();
  disk_.record->epoch = 5;
  give(order(wire::VOLUME_ROLE_OWNER, 5, 10));
  loaded(Loaded::What::kFailed);
  EXPECT_EQ(unit_.serving, 0u);
  EXPECT_EQ(next_, limits::kLoadAgain);
  step();
  EXPECT_EQ(loads_, 2);
  loaded(Loaded::What::kState);
  EXPECT_EQ(unit_.serving, 5u);
}

TEST_F(RemoteVolumeTest, ALostVolumeIsFencedAndNotServedAgainInThatEpoch) {
  own(5, 10);
  disk_.lost = "blocklisted";
  step();
  ASSERT_TRUE(unit_.fenced);
  EXPECT_FALSE(unit_.released);
  unit_.backend.reset();
  disk_.closing = true;
  unit_.fenced();
  step();
  EXPECT_EQ(last().state(), wire::VOLUME_STATE_SERVING) << "reported before the image was closed";
  disk_.closing = false;
  disk_.lost.clear();
  step();
  EXPECT_EQ(last().state(), wire::VOLUME_STATE_FENCED);
  EXPECT_EQ(last().reason(), "blocklisted");
  EXPECT_EQ(last().epoch(), 5u);
  unit_.serving = 0;
  give(order(wire::VOLUME_ROLE_OWNER, 5, 11));
  EXPECT_EQ(unit_.serving, 0u);
  EXPECT_FALSE(disk_.locked);
  EXPECT_EQ(last().state(), wire::VOLUME_STATE_FENCED);
  own(6, 12);
  EXPECT_EQ(unit_.serving, 6u);
}

TEST_F(RemoteVolumeTest, APendingGrowthDoesNotDelayTheRestOfTheOrder) {
  own(5, 10);
  disk_.growing = true;
  wire::DesiredVolume larger = order(wire::VOLUME_ROLE_OWNER, 5, 11);
  larger.set_size_bytes(2 << 20);
  larger.mutable_qos()->set_iops(100);
  give(larger);
  EXPECT_EQ(unit_.shape.size_bytes(), 0) << "the unit was to grow, and would have waited";
  EXPECT_EQ(unit_.shape.qos().iops(), 100);
  EXPECT_EQ(last().order(), 11u);
  EXPECT_EQ(last().state(), wire::VOLUME_STATE_SERVING);
  EXPECT_EQ(last().capacity_bytes(), 1 << 20) << "reported too early";
  const size_t told = reports_.size();
  step();
  EXPECT_EQ(reports_.size(), told);
  disk_.growing = false;
  step();
  EXPECT_EQ(unit_.shape.size_bytes(), 2 << 20);
  EXPECT_EQ(last().capacity_bytes(), 2 << 20);
}

TEST_F(RemoteVolumeTest, TheReasonOfAFailedGrowthIsReported) {
  own(5, 10);
  disk_.no_growth = "no room";
  wire::DesiredVolume larger = order(wire::VOLUME_ROLE_OWNER, 5, 11);
  larger.set_size_bytes(2 << 20);
  give(larger);
  EXPECT_EQ(unit_.shape.size_bytes(), 0);
  EXPECT_EQ(last().state(), wire::VOLUME_STATE_SERVING);
  EXPECT_EQ(last().reason(), "no room");
}

TEST_F(RemoteVolumeTest, AVolumeThatIsLostBeforeItServesIsReportedAsFailed) {
  give(order(wire::VOLUME_ROLE_OWNER, 5, 10));
  disk_.lost = "blocklisted";
  loaded(Loaded::What::kState);
  EXPECT_EQ(unit_.serving, 0u);
  EXPECT_EQ(last().state(), wire::VOLUME_STATE_FAILED);
  EXPECT_EQ(last().reason(), "blocklisted");
}

TEST_F(RemoteVolumeTest, AReleaseIsReportedAfterTheImageIsClosed) {
  own(5, 10);
  give(order(wire::VOLUME_ROLE_RELEASING, 5, 11));
  disk_.closing = true;
  release_done();
  EXPECT_EQ(last().state(), wire::VOLUME_STATE_SERVING);
  disk_.closing = false;
  step();
  EXPECT_EQ(last().state(), wire::VOLUME_STATE_RELEASED);
  EXPECT_EQ(last().order(), 11u);
}

TEST_F(RemoteVolumeTest, ACancelledOpeningEndsBeforeTheReleaseIsReported) {
  disk_.opening = true;
  give(order(wire::VOLUME_ROLE_OWNER, 5, 10));
  give(order(wire::VOLUME_ROLE_RELEASING, 5, 11));
  EXPECT_TRUE(reports_.empty());
  disk_.opening = false;
  step();
  EXPECT_EQ(last().state(), wire::VOLUME_STATE_RELEASED);
  EXPECT_EQ(last().epoch(), 5u);
  EXPECT_EQ(loads_, 0);
}

TEST_F(RemoteVolumeTest, AFailureIsReportedAfterTheStorageIsClosed) {
  disk_.record = Record();
  disk_.record->epoch = 9;
  disk_.closing = true;
  give(order(wire::VOLUME_ROLE_OWNER, 8, 10));
  EXPECT_TRUE(reports_.empty());
  disk_.closing = false;
  step();
  EXPECT_EQ(last().state(), wire::VOLUME_STATE_FAILED);
  EXPECT_NE(last().reason().find("epoch 9"), std::string::npos);
}

TEST_F(RemoteVolumeTest, ARemovalCompletesAfterTheStorageIsClosed) {
  own(5, 10);
  bool gone = false;
  volume_->remove([&] { gone = true; });
  step();
  disk_.closing = true;
  release_done();
  EXPECT_FALSE(gone);
  disk_.closing = false;
  step();
  EXPECT_TRUE(gone);
}

TEST_F(RemoteVolumeTest, ANewerEpochBeforeTheClaimReloadsTheReservations) {
  disk_.claiming = true;
  give(order(wire::VOLUME_ROLE_OWNER, 5, 10));
  loaded(Loaded::What::kState, 3);
  give(order(wire::VOLUME_ROLE_OWNER, 6, 11));
  disk_.claiming = false;
  step();
  EXPECT_EQ(unit_.serving, 0u) << "what was loaded for an older epoch was served";
  loaded(Loaded::What::kState, 4);
  EXPECT_EQ(unit_.serving, 6u);
  EXPECT_EQ(disk_.record->epoch, 6u);
}

}  // namespace
}  // namespace sluice::control
