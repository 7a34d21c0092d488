#include "desired/lun_map.h"

#include <gtest/gtest.h>

#include "desired/units_fixture.h"

namespace sluice::desired {
namespace {

class LunMapTest : public testing::Test {
 protected:
  lun::Target::LunEntry lun(uint64_t number, const std::string& volume, bool read_only = false) {
    return {number, units_.unit(volume), read_only};
  }
  TestUnits units_;
};

TEST_F(LunMapTest, EqualMapsDifferInNothing) {
  const LunEntries map{lun(0, "a"), lun(3, "b")};
  EXPECT_TRUE(difference(map, map).added.empty());
  EXPECT_TRUE(difference(map, map).removed.empty());
}

TEST_F(LunMapTest, ANumberWithAnotherUnitIsRemovedAndAdded) {
  const LunEntries now{lun(0, "a"), lun(1, "b"), lun(2, "c")};
  const LunEntries next{lun(0, "a"), lun(1, "c"), lun(4, "d")};
  EXPECT_EQ(difference(now, next).removed, (LunEntries{lun(1, "b"), lun(2, "c")}));
  EXPECT_EQ(difference(now, next).added, (LunEntries{lun(1, "c"), lun(4, "d")}));
}

TEST_F(LunMapTest, WriteProtectionIsNoDifferenceOfUnits) {
  EXPECT_TRUE(difference({lun(0, "a")}, {lun(0, "a", true)}).added.empty());
}

TEST_F(LunMapTest, OnlyUnitsThatOthersGainAreTakenEarly) {
  const LunEntries now{lun(0, "a"), lun(1, "b"), lun(2, "c"), lun(3, "d", true)};
  const LunEntries next{lun(1, "a"), lun(2, "c", true), lun(3, "d")};
  const auto gained = [](const lun::Unit& unit) { return unit.identity().serial != "b"; };
  EXPECT_EQ(without_lost(now, next, gained),
            (LunEntries{lun(1, "b"), lun(2, "c", true), lun(3, "d", true)}));
  EXPECT_EQ(without_lost(now, next, [](const lun::Unit&) { return false; }), now);
}

}  // namespace
}  // namespace sluice::desired
