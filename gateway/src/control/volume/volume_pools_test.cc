// Pools while volumes are added and removed, without real volumes.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "control/client_commits.h"
#include "control/volume/reservations.h"
#include "control/volume/volumes.h"

namespace sluice::control {
namespace {

class NoUnits final : public Units {
 public:
  std::shared_ptr<lun::Unit> open(const lun::UnitIdentity&, const wire::DesiredVolume&) override {
    return nullptr;
  }
  std::unique_ptr<LogicalUnitControl> control_of(const std::shared_ptr<lun::Unit>&,
                                                 uint16_t) override {
    return nullptr;
  }
};

class CountedPool final : public StoragePool {
 public:
  Result<std::shared_ptr<VolumeStorage>> storage_of(const wire::DesiredVolume&,
                                                    std::function<void()>) override {
    return Error{"there is none"};
  }
  void run_job(const wire::Job&, const JobServices&, std::function<void(JobOutcome)>) override {}
  void observe(const std::string&, std::function<void(wire::PoolObserved)>) override {}
  void tick() override { ++ticks; }

  unsigned ticks = 0;
};

class CountedPools final : public PoolKind {
 public:
  Result<std::shared_ptr<StoragePool>> open(const wire::DesiredPool&,
                                            const PoolServices&) override {
    const auto pool = std::make_shared<CountedPool>();
    opened.push_back(pool);
    return std::shared_ptr<StoragePool>(pool);
  }
  bool stop() override { return true; }

  std::vector<std::weak_ptr<CountedPool>> opened;
};

class VolumePoolsTest : public testing::Test {
 protected:
  ~VolumePoolsTest() override { executor_.stop(); }

  void put(const std::string& user) {
    wire::DesiredPool pool;
    pool.set_uid("pool");
    pool.mutable_rbd()->set_user(user);
    ASSERT_TRUE(volumes_.put_pool(pool).ok());
  }

  NoUnits units_;
  StrandExecutor executor_{1};
  StreamReservations store_{{.request = [](const wire::ConnectRequest&) { return false; },
                             .fenced = [](const std::string&) {},
                             .executor = executor_}};
  ClientCommits commits_{[](const wire::ConnectRequest&) { return false; }};
  const std::shared_ptr<CountedPools> kind_ = std::make_shared<CountedPools>();
  Volumes volumes_{{.units = units_,
                    .executor = executor_,
                    .reservations = store_,
                    .report = [](const wire::VolumeObserved&) {},
                    .services = {.commits = commits_, .incarnation = "i"},
                    .rbd = kind_,
                    .nearly_full = nullptr}};
};

// Only the pool's ticks wake a volume that waits for the pool or for a client.
TEST_F(VolumePoolsTest, APoolThatWasChangedOrRemovedGoesOnWhileSomebodyHasAPlaceInIt) {
  put("one");
  std::shared_ptr<StoragePool> pool = volumes_.pool("pool").value();  // keeps the pool alive
  const std::weak_ptr<CountedPool> former = kind_->opened.at(0);
  put("two");
  volumes_.tick_pools();
  EXPECT_EQ(former.lock()->ticks, 1u);
  volumes_.remove_pool("pool");
  volumes_.tick_pools();
  EXPECT_EQ(former.lock()->ticks, 2u);
  pool.reset();
  volumes_.tick_pools();
  EXPECT_TRUE(former.expired());
}

}  // namespace
}  // namespace sluice::control
