#include "control/lun_numbers.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "base/limits.h"
#include "base/record_text.h"
#include "control/test_objects.h"

namespace sluice::control {
namespace {

constexpr const char* kIqn = "iqn.2026-11.dev.sluice:t";
constexpr int64_t kNow = 1'790'000'000;

// Saves `before` and loads its file into `after`.
void restart(LunNumbers& before, LunNumbers& after, const Objects& last, int64_t now) {
  ASSERT_TRUE(before.save(now));
  ASSERT_TRUE(after.load(last, now));
}

TEST(LunNumbers, ANumberStaysBoundToItsVolumeWhileItIsExportedAndForAPeriodAfterwards) {
  const TestDirectory directory;
  LunNumbers numbers(directory.path());
  numbers.shown(kIqn, {{5, "a"}}, kNow);
  EXPECT_EQ(numbers.held(kIqn, 5, "a", kNow), "");
  EXPECT_EQ(numbers.held(kIqn, 6, "b", kNow), "");
  EXPECT_EQ(numbers.held("iqn.2026-11.dev.sluice:u", 5, "b", kNow), "");
  EXPECT_NE(numbers.held(kIqn, 5, "b", kNow), "") << "it is shown";
  numbers.shown(kIqn, {}, kNow + 10);
  const int64_t over = kNow + 10 + limits::kLunNumberHeld;
  EXPECT_NE(numbers.held(kIqn, 5, "b", over - 1), "");
  EXPECT_EQ(numbers.held(kIqn, 5, "a", over - 1), "");
  EXPECT_EQ(numbers.held(kIqn, 5, "b", over), "");
}

TEST(LunNumbers, ARestartRetainsTheNumbersOfRemovedAndOfExportedLuns) {
  const TestDirectory directory;
  LunNumbers first(directory.path());
  first.shown(kIqn, {{5, "a"}, {6, "b"}}, kNow);
  first.shown(kIqn, {{6, "b"}}, kNow + 1);
  LunNumbers second(directory.path());
  std::vector<wire::DesiredObject> shown{target_object(kIqn, "b", "h", "t")};
  shown[0].mutable_target()->mutable_luns(0)->set_id(6);
  restart(first, second, objects_of(shown), kNow + 2);
  EXPECT_NE(second.held(kIqn, 5, "c", kNow + 2), "");
  EXPECT_NE(second.held(kIqn, 6, "c", kNow + 2), "") << "the process restarted, the host did not";
  LunNumbers third(directory.path());
  restart(second, third, Objects(), kNow + 3);
  EXPECT_NE(third.held(kIqn, 6, "c", kNow + 3), "");
  EXPECT_EQ(third.held(kIqn, 6, "c", kNow + 2 + limits::kLunNumberHeld), "");
}

TEST(LunNumbers, ARefusedLunOfTheSavedStateDoesNotObtainItsNumberByARestart) {
  const TestDirectory directory;
  LunNumbers first(directory.path());
  first.shown(kIqn, {{5, "a"}}, kNow);
  first.shown(kIqn, {}, kNow);
  std::vector<wire::DesiredObject> desired{target_object(kIqn, "b", "h", "t")};
  desired[0].mutable_target()->mutable_luns(0)->set_id(5);
  LunNumbers second(directory.path());
  restart(first, second, objects_of(desired), kNow + 1);
  EXPECT_NE(second.held(kIqn, 5, "b", kNow + 1), "");
}

TEST(LunNumbers, AFileOfVersion1IsReadAndADamagedOneIsAnError) {
  const TestDirectory directory;
  const auto load = [&](const std::string& text, LunNumbers& numbers) {
    std::ofstream(directory.path() + "/lun-numbers", std::ios::binary) << text;
    return numbers.load(Objects(), kNow).ok();
  };
  const std::string line = std::to_string(kNow) + " 5 a " + kIqn + '\n';
  const std::string former = "sluice-lun-numbers 1\ncrc32c " + checksum_text(line) + '\n' + line;
  LunNumbers read(directory.path());
  EXPECT_TRUE(load(former, read));
  EXPECT_NE(read.held(kIqn, 5, "b", kNow), "");
  LunNumbers damaged(directory.path());
  EXPECT_FALSE(load(former.substr(0, former.size() - 1), damaged));
  const std::string present = "sluice-lun-numbers 2\n" + line;
  LunNumbers again(directory.path());
  EXPECT_TRUE(load(seal(present), again));
  EXPECT_NE(again.held(kIqn, 5, "b", kNow), "");
  LunNumbers unsealed(directory.path());
  EXPECT_FALSE(load(present, unsealed));
  LunNumbers overlong(directory.path());
  EXPECT_FALSE(load(seal("sluice-lun-numbers 2\n" + line + "1 2 3\n"), overlong));
}

TEST(LunNumbers, AClockThatIsSetBackDoesNotExtendTheRetentionOfNumbers) {
  const TestDirectory directory;
  LunNumbers numbers(directory.path());
  numbers.shown(kIqn, {{5, "a"}}, kNow);
  numbers.shown(kIqn, {}, kNow + 1'000'000);
  LunNumbers after(directory.path());
  restart(numbers, after, Objects(), kNow);
  EXPECT_NE(after.held(kIqn, 5, "b", kNow), "");
  EXPECT_EQ(after.held(kIqn, 5, "b", kNow + limits::kLunNumberHeld), "");
}

}  // namespace
}  // namespace sluice::control
