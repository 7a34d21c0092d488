// How orders of the control plane change a unit that this gateway serves.
#include "control/volume/owned_unit.h"

#include <gtest/gtest.h>

#include "base/boot_clock.h"
#include "base/buffer.h"
#include "nexus/exports.h"
#include "nexus/nexus.h"
#include "unit/latency_log.h"
#include "unit/test_backend.h"
#include "unit/test_reactors.h"
#include "unit/unit.h"

namespace sluice::control {
namespace {

class OwnedUnitTest : public testing::Test {
 protected:
  static constexpr uint64_t kBytes = 1 << 20;

  OwnedUnitTest() {
    wanted_.set_size_bytes(kBytes);
    wanted_.set_block_size(512);
    control_ = std::make_unique<OwnedUnit>(
        lun::UnitIdentity{.uuid = {1}, .serial = "1", .block_size = 512}, wanted_, shared_, 1);
    unit_ = control_->unit();
    target_->set_luns({{0, unit_}}, reactors_);
    control_->serve(std::make_unique<lun::TestBackend>(kBytes), {}, 1);
    reactors_.run();
    EXPECT_TRUE(control_->shape(wanted_, true).ok());
  }
  // The unit attentions at the first command of a host that used another gateway for `age`.
  std::vector<lun::UnitAttention> pending(Nanos age) {
    const Nanos now = boot_clock_now();
    lun::NexusId id;
    id.initiator_name = "iqn.2026-11.test:host";
    const auto nexus = lun::Nexus::open(
        target_, id, {nullptr, &buffers_, &reactors_, 0, &now, &latencies_}, false, age);
    const std::vector<lun::UnitAttention> found = nexus->use(0)->pending;
    nexus->close(false, [] {});
    reactors_.run();
    return found;
  }

  lun::TestReactors reactors_{1};
  BufferPool buffers_{size_t{1} << 20};
  lun::LatencyLog latencies_;
  wire::DesiredVolume wanted_;
  OwnedUnit::Shared shared_{.reactors = reactors_, .store = nullptr};
  std::shared_ptr<lun::Unit> unit_;
  std::unique_ptr<OwnedUnit> control_;
  std::shared_ptr<lun::Target> target_ =
      std::make_shared<lun::Target>("iqn.2026-11.dev.sluice:t", "", 1);
};

TEST_F(OwnedUnitTest, AnOrderedWriteCacheChangeEstablishesAUnitAttentionForForwardedHosts) {
  EXPECT_EQ(pending(kSecond), std::vector<lun::UnitAttention>{});
  wanted_.set_write_cache(true);
  ASSERT_TRUE(control_->shape(wanted_, true).ok());
  EXPECT_TRUE(unit_->write_cache());
  EXPECT_EQ(pending(kSecond), (std::vector<lun::UnitAttention>{{0x2a, 0x01}}))
      << "MODE PARAMETERS CHANGED";
}

TEST_F(OwnedUnitTest, ANexusFromBeforeATakeoverReceivesAUnitAttentionForTheEnabledWriteCache) {
  control_->release([](bool) {});
  reactors_.run();
  auto cached = std::make_unique<lun::TestBackend>(kBytes);
  cached->cache = true;
  control_->serve(std::move(cached), {}, 2);
  reactors_.run();
  EXPECT_EQ(pending(kSecond), (std::vector<lun::UnitAttention>{{0x2a, 0x01}}));
}

TEST_F(OwnedUnitTest, AFailedWriteCacheChangeIsRepeatedWithTheNextOrder) {
  auto& backend = dynamic_cast<lun::TestBackend&>(*unit_->shared_backend());
  wanted_.set_write_cache(true);
  wanted_.set_size_bytes(2 * kBytes);
  backend.cache_changeable = false;
  EXPECT_FALSE(control_->shape(wanted_, true).ok());
  EXPECT_EQ(unit_->blocks(), 2 * kBytes / 512) << "what else is ordered is done";
  backend.cache_changeable = true;
  EXPECT_TRUE(control_->shape(wanted_, true).ok());
  EXPECT_TRUE(unit_->write_cache());
}

TEST_F(OwnedUnitTest, TheDefaultWriteCacheFollowsTheOrder) {
  wanted_.set_write_cache(true);
  ASSERT_TRUE(control_->shape(wanted_, true).ok());
  EXPECT_TRUE(unit_->default_write_cache());
  wanted_.set_write_cache(false);
  ASSERT_TRUE(control_->shape(wanted_, true).ok());
  EXPECT_FALSE(unit_->default_write_cache());
}

// Each gateway that exports the unit reports the change to its own hosts.
TEST_F(OwnedUnitTest, AnOrderedGrowthEstablishesNoUnitAttentionForForwardedHosts) {
  wanted_.set_size_bytes(2 * kBytes);
  ASSERT_TRUE(control_->shape(wanted_, true).ok());
  EXPECT_EQ(unit_->blocks(), 2 * kBytes / 512);
  EXPECT_EQ(pending(kSecond), std::vector<lun::UnitAttention>{});
}

}  // namespace
}  // namespace sluice::control
