#include "control/volume/pool_table.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "control/client_commits.h"

namespace sluice::control {
namespace {

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

class PoolTableTest : public testing::Test {
 protected:
  void put(const std::string& user) {
    wire::DesiredPool pool;
    pool.set_uid("pool");
    pool.mutable_rbd()->set_user(user);
    ASSERT_TRUE(pools_.put(pool).ok());
  }

  ClientCommits commits_{[](const wire::ConnectRequest&) { return false; }};
  const std::shared_ptr<CountedPools> kind_ = std::make_shared<CountedPools>();
  PoolTable pools_{{.services = {.commits = commits_, .incarnation = "i"}, .rbd = kind_}};
};

// Only the pool's ticks wake a volume that waits for the pool or for a client.
TEST_F(PoolTableTest, AChangedOrRemovedPoolIsTickedWhileItIsReferenced) {
  put("one");
  std::shared_ptr<StoragePool> pool = pools_.open("pool").value();  // keeps the pool alive
  const std::weak_ptr<CountedPool> former = kind_->opened.at(0);
  put("two");
  pools_.tick();
  EXPECT_EQ(former.lock()->ticks, 1u);
  pools_.remove("pool");
  pools_.tick();
  EXPECT_EQ(former.lock()->ticks, 2u);
  pool.reset();
  pools_.tick();
  EXPECT_TRUE(former.expired());
}

TEST_F(PoolTableTest, APoolIsReportedWhenItBecomesNearlyFullAndNotWhileItIs) {
  wire::DesiredPool pool;
  pool.set_uid("pool");
  pool.mutable_rbd();
  EXPECT_FALSE(pools_.put(pool).value());
  pool.set_nearly_full(true);
  EXPECT_TRUE(pools_.put(pool).value());
  EXPECT_FALSE(pools_.put(pool).value());
}

}  // namespace
}  // namespace sluice::control
