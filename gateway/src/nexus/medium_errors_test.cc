// A unit whose medium has errors: they are part of its health for a time (DESIGN R15: what hosts
// meet is reported).
#include <gtest/gtest.h>

#include <cerrno>

#include "base/limits.h"
#include "nexus/lun_fixture.h"

namespace sluice::lun {
namespace {

class MediumErrors : public LunTest {
 protected:
  void SetUp() override {
    LunTest::SetUp();
    nexus = open("a", 0);
  }
  bool known_after(Nanos span) {
    now += span;
    unit->poll_progress(now);
    return unit->medium_health().errors;
  }
  void read(int error) {
    backend->fail_with = error;
    start(*nexus, read16(0, 1));
    backend->fail_with = 0;
  }

  std::shared_ptr<Nexus> nexus;
};

TEST_F(MediumErrors, AreKnownUntilTheLastOneIsLongAgo) {
  read(0);
  EXPECT_FALSE(known_after(0));
  read(-EIO);
  EXPECT_TRUE(known_after(0));
  EXPECT_TRUE(unit->medium_health().ready) << "other blocks can be used";
  EXPECT_TRUE(known_after(limits::kMediumErrorsKnown - 1));
  read(-EIO);
  EXPECT_TRUE(known_after(0));
  EXPECT_TRUE(known_after(limits::kMediumErrorsKnown - 1));
  EXPECT_FALSE(known_after(1));
}

TEST_F(MediumErrors, AreNotErrorsOfTheHost) {
  start(*nexus, read16(UINT64_MAX - 8, 1));  // 05/21/00
  EXPECT_FALSE(known_after(0));
}

}  // namespace
}  // namespace sluice::lun
