#include "commands/medium_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>
#include <string>
#include <vector>

#include "base/log.h"
#include "nexus/lun_fixture.h"

namespace sluice::lun {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class MediumLogTest : public LunTest {
 protected:
  void SetUp() override {
    LunTest::SetUp();
    host = open("host");
    // The table of last lines belongs to the thread, and every test starts its clock at 0.
    static Nanos begun = 0;
    begun += 10 * kMediumLogInterval;
    now += begun;
    log::start({.sink = [this](std::string_view line) {
      const std::lock_guard lock(mutex);
      lines.emplace_back(line);
    }});
  }
  void TearDown() override {
    log::start({.sink = [](std::string_view) {}});
    LunTest::TearDown();
  }
  // What was logged by now.
  std::vector<std::string> logged() {
    log::stop();
    const std::lock_guard lock(mutex);
    return lines;
  }

  std::shared_ptr<Nexus> host;
  std::mutex mutex;
  std::vector<std::string> lines;
};

TEST_F(MediumLogTest, EveryCauseHasALineWithLunBlocksAndSense) {
  const struct {
    int64_t error;
    const char* cause;
    const char* sense;
  } cases[] = {{-EIO, "Input/output error", "03/0C/00"},
               {-ENOSPC, "No space left on device", "07/27/07"},
               {-EROFS, "Read-only file system", "07/27/00"},
               {-ENODEV, "No such device", "02/04/00"}};
  for (const auto& c : cases) {
    backend->fail_with = c.error;
    start(*host, write16(16, 8), Bytes(8 * 512));
    backend->fail_with = 0;
    unit->poll_health();
  }
  const std::vector<std::string> all = logged();
  ASSERT_EQ(all.size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_THAT(all[i], AllOf(HasSubstr("lun=0"), HasSubstr("blocks=16-23"),
                              HasSubstr("target=iqn.2026-11.dev.sluice:test"),
                              HasSubstr(cases[i].cause), HasSubstr(cases[i].sense)));
  }
}

TEST_F(MediumLogTest, RepetitionsAreCountedNotLogged) {
  backend->fail_with = -EIO;
  for (int i = 0; i < 100; ++i) start(*host, read16(0, 1));
  now += kMediumLogInterval;
  start(*host, read16(0, 1));
  const std::vector<std::string> all = logged();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_THAT(all[0], AllOf(HasSubstr("request=read"), HasSubstr("03/11/00")));
  EXPECT_THAT(all[1], HasSubstr("not_logged_before=99"));
}

}  // namespace
}  // namespace sluice::lun
