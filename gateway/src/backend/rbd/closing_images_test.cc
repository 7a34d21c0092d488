#include "rbd/closing_images.h"

#include <gtest/gtest.h>

#include <thread>

namespace sluice::rbd {
namespace {

constexpr Nanos kLong = 20 * kSecond;

TEST(ClosingImages, WaitsUntilEveryCloseOfTheImageHasCompleted) {
  ClosingImages closing;
  const ClosingImages::Name name{"fsid-1", "rbd/disk"};
  EXPECT_TRUE(closing.wait_for(name, 0));
  closing.add(name);
  closing.add(name);
  closing.remove(name);
  EXPECT_FALSE(closing.wait_for(name, kMillisecond));
  std::thread other([&] { closing.remove(name); });
  EXPECT_TRUE(closing.wait_for(name, kLong));
  other.join();
}

TEST(ClosingImages, IgnoresAnImageOfTheSameNameInAnotherCluster) {
  ClosingImages closing;
  closing.add({"fsid-1", "rbd/disk"});
  EXPECT_TRUE(closing.wait_for({"fsid-2", "rbd/disk"}, 0));
  closing.remove({"fsid-2", "rbd/disk"});
  EXPECT_FALSE(closing.wait_for({"fsid-1", "rbd/disk"}, 0)) << "and its end is not that one's";
}

}  // namespace
}  // namespace sluice::rbd
