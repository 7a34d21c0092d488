// How full pools of a real Ceph are (ceph_fixture.h). Its manager counts once a second.
#include "rbd/pool_facts.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>

#include "rbd/ceph_fixture.h"

namespace sluice::rbd {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

class PoolFactsTest : public testing::Test {
 protected:
  static void make(const std::string& pool) {
    ASSERT_EQ(admin("ceph osd pool create " + pool + " 8"), 0);
    ASSERT_EQ(admin("ceph osd pool application enable " + pool + " rbd"), 0);
  }
  // As `pool` is found with its data in `data_pool`, once that `holds`; a minute at most.
  template <class Condition>
  static bool becomes(const std::string& pool, const std::string& data_pool, Condition holds) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (std::chrono::steady_clock::now() < end) {
      const auto found = probe(gateway_access(), pool, "", data_pool);
      if (!found) {
        ADD_FAILURE() << found.error();
        return false;
      }
      if (holds(found.value())) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    return false;
  }
};

TEST_F(PoolFactsTest, UsageIsThatOfTheDataPoolIfConfigured) {
  make("data");
  ASSERT_TRUE(
      becomes("rbd", "data", [](const PoolFacts& found) { return found.capacity_bytes != 0; }));
  ASSERT_EQ(admin("sh -c 'head -c 32M /dev/urandom | rados -p data put filler -'"), 0);
  EXPECT_TRUE(
      becomes("rbd", "data", [](const PoolFacts& found) { return found.used_bytes >= 32 * kMiB; }));
  ASSERT_EQ(admin("ceph osd pool rm data data --yes-i-really-really-mean-it"), 0);
}

// Whatever is kept of each byte: else a pool that keeps three copies would be full at a third.
TEST_F(PoolFactsTest, FreeCapacityIsDividedByTheNumberOfCopies) {
  make("twice");
  ASSERT_EQ(admin("ceph osd pool set twice size 2"), 0);
  ASSERT_EQ(admin("ceph osd pool set twice min_size 1"), 0);
  uint64_t once = 0;
  ASSERT_TRUE(becomes("rbd", "", [&](const PoolFacts& found) {
    once = found.capacity_bytes - found.used_bytes;
    return once != 0;
  }));
  EXPECT_TRUE(becomes("twice", "", [&](const PoolFacts& found) {
    const uint64_t twice = found.capacity_bytes - found.used_bytes;
    return twice > once / 4 && twice < once * 3 / 4;
  }));
  ASSERT_EQ(admin("ceph osd pool rm twice twice --yes-i-really-really-mean-it"), 0);
}

TEST_F(PoolFactsTest, DataInOtherPoolsReducesTheFreeCapacity) {
  make("others");
  uint64_t before = 0;
  ASSERT_TRUE(becomes("rbd", "", [&](const PoolFacts& found) {
    before = found.capacity_bytes - found.used_bytes;
    return before != 0;
  }));
  ASSERT_EQ(admin("sh -c 'head -c 64M /dev/urandom | rados -p others put filler -'"), 0);
  EXPECT_TRUE(becomes("rbd", "", [&](const PoolFacts& found) {
    return found.capacity_bytes - found.used_bytes <= before - 32 * kMiB;
  }));
  ASSERT_EQ(admin("ceph osd pool rm others others --yes-i-really-really-mean-it"), 0);
}

TEST_F(PoolFactsTest, TheQuotaOfAPoolLimitsItsCapacity) {
  make("little");
  ASSERT_EQ(admin("ceph osd pool set-quota little max_bytes 104857600"), 0);
  EXPECT_TRUE(becomes("little", "",
                      [](const PoolFacts& found) { return found.capacity_bytes == 100 * kMiB; }));
  ASSERT_EQ(admin("ceph osd pool rm little little --yes-i-really-really-mean-it"), 0);
}

}  // namespace
}  // namespace sluice::rbd
