// Missing, damaged or duplicate devices of a pool, and which of their volumes may be deleted or
// created again.
#include <gmock/gmock.h>

#include <fstream>

#include "control/local/device_pool_fixture.h"
#include "control/local/device_wipe.h"

namespace sluice::control {
namespace {

using testing::HasSubstr;

TEST_F(DevicePoolTest, ADeletedVolumesDeviceReadsAsZerosAndIsFreeAgain) {
  auto a = pool("a");
  EXPECT_EQ(create(*a, "volume-1", 6 * kMiB).problem, "");
  put(1, 1 * kMiB, std::string(kMiB, 's'));
  put(1, 8 * kMiB - 4096, std::string(4096, 's'));
  for (int i = 0; i < 2; ++i) EXPECT_EQ(remove(*a, "volume-1").problem, "");
  EXPECT_EQ(bytes_of(1, 0, 8 * kMiB), std::string(8 * kMiB, '\0'));
  EXPECT_EQ(create(*a, "volume-2", 6 * kMiB).problem, "");
  EXPECT_EQ(label(1)->location, "volume-2");
}

// Between a look at the devices and the lock another gateway may have done the same job.
TEST_F(DevicePoolTest, ADeviceThatNowBelongsToAnotherVolumeIsNotWiped) {
  auto a = pool("a");
  EXPECT_EQ(create(*a, "volume-1", 6 * kMiB).problem, "");
  auto b = pool("b");
  EXPECT_EQ(remove(*b, "volume-1").problem, "");
  EXPECT_EQ(create(*b, "volume-2", 6 * kMiB).problem, "");
  put(1, 1 * kMiB, std::string(kMiB, 's'));

  auto late = DeviceWipe::begin(paths_[1], "volume-1");
  EXPECT_FALSE(late.ok());
  if (late.ok()) (void)late.value()->go_on();
  ASSERT_TRUE(label(1));
  EXPECT_EQ(label(1)->location, "volume-2");
  EXPECT_EQ(bytes_of(1, 1 * kMiB, kMiB), std::string(kMiB, 's'));
}

TEST_F(DevicePoolTest, AVolumeThatMayBeOnAnUnreadableDeviceIsNotDeletedUntilItIsReadable) {
  const std::string device = paths_[1];
  backend::LoopDevice no_medium(scratch_.file("0"), 0);
  if (!no_medium.skip_reason().empty()) GTEST_SKIP() << no_medium.skip_reason();
  const std::string alias = paths_[1] = alias_of(1);
  auto a = pool("a");
  EXPECT_EQ(create(*a, "volume-1", 6 * kMiB).problem, "");
  put(1, 1 * kMiB, std::string(kMiB, 's'));
  const wire::DesiredVolume wanted = volume("volume-1", 6 * kMiB);
  auto storage = a->storage_of(wanted, {}).value();
  ASSERT_NE(storage->open(wanted).backend, nullptr);
  ASSERT_TRUE(storage->claim(record_of(*storage, 3), Outlasts::kPowerCut).ok());

  for (const std::string& instead : {directory_.path() + "/gone", no_medium.path()}) {
    point(alias, instead);
    const std::string why = remove(*a, "volume-1").problem;
    EXPECT_THAT(why, HasSubstr(alias + ": "));
    EXPECT_THAT(why, HasSubstr("connect that again, or take it out of the pool's list"));
    ASSERT_TRUE(storage->record().value()) << instead;
    EXPECT_EQ(storage->record().value()->epoch, 3u);
  }

  point(alias, device);
  EXPECT_EQ(remove(*a, "volume-1").problem, "");
  EXPECT_EQ(bytes_of(1, 0, 8 * kMiB), std::string(8 * kMiB, '\0'));
  EXPECT_FALSE(storage->record().value());
  EXPECT_EQ(create(*a, "volume-2", 6 * kMiB).problem, "");
  EXPECT_EQ(label(1)->location, "volume-2") << "it is free again";
}

// The job is repeated, because its first result was lost.
TEST_F(DevicePoolTest, AVolumeThatMayBeOnAnUnreadableDeviceIsNotCreatedOnAnother) {
  const std::string device = paths_[1];
  backend::LoopDevice no_medium(scratch_.file("0"), 0);
  if (!no_medium.skip_reason().empty()) GTEST_SKIP() << no_medium.skip_reason();
  const std::string alias = paths_[1] = alias_of(1);
  auto a = pool("a");
  EXPECT_EQ(create(*a, "volume-1", 6 * kMiB).problem, "");
  auto b = pool("b");
  for (const std::string& instead : {directory_.path() + "/gone", no_medium.path()}) {
    point(alias, instead);
    for (DevicePool* one : {a.get(), b.get()}) {
      const std::string why = create(*one, "volume-1", 6 * kMiB).problem;
      EXPECT_THAT(why, HasSubstr("volume-1 may be on a device that can't be read"));
      EXPECT_THAT(why, HasSubstr("connect that again, or take it out of the pool's list"));
      EXPECT_THAT(why, HasSubstr("it was put on " + alias));
      EXPECT_FALSE(label(0) || label(2)) << "it has two";
    }
  }
  EXPECT_EQ(create(*b, "volume-2", 6 * kMiB).problem, "") << "it never was on any";
  EXPECT_EQ(label(0)->location, "volume-2");

  point(alias, device);
  EXPECT_EQ(create(*b, "volume-1", 6 * kMiB).problem, "");
  EXPECT_FALSE(label(2)) << "it has two";
  EXPECT_EQ(remove(*b, "volume-1").problem, "");
  point(alias, directory_.path() + "/gone");
  EXPECT_EQ(create(*a, "volume-1", 6 * kMiB).problem, "") << "it is on none any more";
  EXPECT_EQ(label(2)->location, "volume-1");
}

TEST_F(DevicePoolTest, ADeletionIsNotBlockedByDevicesOfOtherVolumesOrForeignDevices) {
  const std::string alias = paths_[1] = alias_of(1);
  auto a = pool("a");
  EXPECT_EQ(create(*a, "volume-1", 6 * kMiB).problem, "");
  EXPECT_EQ(create(*a, "volume-2", 6 * kMiB).problem, "");
  point(alias, directory_.path() + "/gone");
  EXPECT_EQ(remove(*a, "volume-2").problem, "") << "it is on a device that can be read";
  paths_.erase(paths_.begin() + 1);
  put(0, 0, std::string("LUKS\xba\xbe\0\1", 8) + std::string(584, '\0'));
  const FileDescriptor user(::open(paths_[1].c_str(), O_RDWR | O_EXCL | O_CLOEXEC));
  EXPECT_EQ(remove(*pool("b"), "volume-1").problem, "") << "its device was taken out of the list";
}

TEST_F(DevicePoolTest, WithAllItsDevicesMissingThePoolServesAndChangesNothing) {
  const std::vector<std::string> devices = paths_;
  for (size_t i = 0; i < paths_.size(); ++i) {
    paths_[i] = directory_.path() + "/device-" + std::to_string(i);
    point(paths_[i], devices[i]);
  }
  auto a = pool("a");
  EXPECT_EQ(create(*a, "volume-1", 6 * kMiB).problem, "");
  put(1, 1 * kMiB, std::string(kMiB, 's'));
  for (const std::string& alias : paths_) point(alias, directory_.path() + "/gone");
  const wire::PoolObserved without = seen(*a);
  EXPECT_EQ(without.max_image_bytes(), 0) << "the missing device may be the largest";
  EXPECT_EQ(without.problem(), "none of the pool's devices can be used");
  EXPECT_EQ(without.unusable_devices_size(), 3);
  EXPECT_EQ(without.capacity_bytes(), 0);
  const wire::DesiredVolume wanted = volume("volume-1", 6 * kMiB);
  EXPECT_THAT(a->storage_of(wanted, {}).value()->open(wanted).problem,
              HasSubstr("no device of the pool is volume-1"));
  EXPECT_THAT(create(*a, "volume-2", 6 * kMiB).problem, HasSubstr("no device of the pool is free"));
  EXPECT_THAT(remove(*a, "volume-1").problem, HasSubstr("may be on a device that can't be read"));
  for (size_t i = 0; i < paths_.size(); ++i) point(paths_[i], devices[i]);
  EXPECT_EQ(seen(*a).problem(), "");
  EXPECT_NE(a->storage_of(wanted, {}).value()->open(wanted).backend, nullptr);
  EXPECT_EQ(bytes_of(1, 1 * kMiB, kMiB), std::string(kMiB, 's'));
}

// The other device is empty, or another volume's.
TEST_F(DevicePoolTest, AReplacementDeviceIsNotServedAndTheVolumeIsNotReportedAsDeleted) {
  const std::string device = paths_[1];
  const std::string empty = paths_[2], others = paths_[0];
  const std::string alias = alias_of(1);
  paths_ = {alias};
  auto a = pool("a");
  EXPECT_EQ(create(*a, "volume-1", 6 * kMiB).problem, "");
  const FileDescriptor file(::open(device.c_str(), O_WRONLY | O_CLOEXEC));
  ASSERT_EQ(::pwrite(file.get(), "precious", 8, kMiB), 8);
  {
    paths_ = {others};
    EXPECT_EQ(create(*pool("b"), "volume-2", 6 * kMiB).problem, "");
    paths_ = {alias};
  }
  const wire::DesiredVolume wanted = volume("volume-1", 6 * kMiB);
  for (const std::string& instead : {empty, others}) {
    point(alias, instead);
    EXPECT_THAT(a->storage_of(wanted, {}).value()->open(wanted).problem,
                HasSubstr("no device of the pool is volume-1"));
    EXPECT_THAT(remove(*a, "volume-1").problem,
                HasSubstr("volume-1 was put on " + alias + ", and another device is there now"));
  }
  paths_ = {others};
  EXPECT_EQ(label(0)->location, "volume-2");
  paths_ = {empty};
  EXPECT_FALSE(label(0)) << "it was written to";
  point(alias, device);
  paths_ = {alias};
  EXPECT_EQ(bytes_of(0, kMiB, 8), "precious");
  EXPECT_NE(a->storage_of(wanted, {}).value()->open(wanted).backend, nullptr);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(remove(*a, "volume-1").problem, "");
}

// The device was wiped, and the gateway ended before it noted that.
TEST_F(DevicePoolTest, ARepeatedDeletionAfterTheDeviceWasWipedSucceeds) {
  auto a = pool("a");
  EXPECT_EQ(create(*a, "volume-1", 6 * kMiB).problem, "");
  const std::string choice = directory_.path() + "/r/.sluice/volume-1.device";
  ASSERT_TRUE(std::filesystem::exists(choice));
  EXPECT_EQ(remove(*a, "volume-1").problem, "");
  std::ofstream(choice) << paths_[1];
  EXPECT_EQ(remove(*a, "volume-1").problem, "");
  EXPECT_FALSE(std::filesystem::exists(choice));
  std::ofstream(choice) << paths_[1];
  EXPECT_EQ(remove(*a, "volume-1").problem, "") << "it was chosen, and never labelled";
}

TEST_F(DevicePoolTest, OneIntactCopyOfALabelSufficesAndALabelWithTwoDamagedCopiesIsRefused) {
  auto a = pool("a");
  EXPECT_EQ(create(*a, "volume-1", 6 * kMiB).problem, "");
  put(1, 30, "#");
  EXPECT_EQ(label(1)->location, "volume-1");
  put(1, (64 << 10) + 30, "#");
  const std::string none = create(*a, "volume-2", 6 * kMiB).problem;
  EXPECT_EQ(none, "") << "on another device";
  EXPECT_THAT(seen(*a).unusable_devices(0), HasSubstr(paths_[1] + ": its label is damaged"));
  const wire::DesiredVolume wanted = volume("volume-1", 6 * kMiB);
  const VolumeStorage::Opened lost = a->storage_of(wanted, {}).value()->open(wanted);
  EXPECT_EQ(lost.backend, nullptr);
  EXPECT_FALSE(lost.held);
  EXPECT_THAT(lost.problem, HasSubstr("label is damaged"));
}

TEST_F(DevicePoolTest, TwoPathsOfOneDeviceCountOnceAndACopiedVolumeIsNotServed) {
  auto a = pool("a");
  EXPECT_EQ(create(*a, "volume-1", 6 * kMiB).problem, "");
  put(2, 0, bytes_of(1, 0, kMiB));
  const wire::DesiredVolume wanted = volume("volume-1", 6 * kMiB);
  EXPECT_THAT(a->storage_of(wanted, {}).value()->open(wanted).problem, HasSubstr("both say"));
  const std::string other = directory_.path() + "/alias";
  ASSERT_EQ(::symlink(paths_[1].c_str(), other.c_str()), 0);
  paths_ = {paths_[1], other};
  auto b = pool("b");
  EXPECT_THAT(seen(*b).unusable_devices(0), HasSubstr("is the same device as " + paths_[0]));
  EXPECT_NE(b->storage_of(wanted, {}).value()->open(wanted).backend, nullptr);
}

TEST_F(DevicePoolTest, ARemovedDeviceIsReportedWithItsVolumeUntilItIsAddedAgain) {
  auto a = pool("a");
  EXPECT_EQ(create(*a, "volume-1", 6 * kMiB).problem, "");
  const VolumeStorage::Opened mine =
      a->storage_of(volume("volume-1", 6 * kMiB), {}).value()->open(volume("volume-1", 6 * kMiB));
  ASSERT_NE(mine.backend, nullptr) << mine.problem;
  devices_ = devices_.become(paths_);
  const std::string holds = paths_[1];
  paths_ = {paths_[0]};  // the third is free
  const wire::PoolObserved without = seen(*pool("b"));
  ASSERT_EQ(without.taken_out_devices_size(), 1);
  EXPECT_EQ(without.taken_out_devices(0).path(), holds);
  EXPECT_EQ(without.taken_out_devices(0).location(), "volume-1");
  EXPECT_EQ(without.unusable_devices_size(), 0);
  EXPECT_EQ(without.capacity_bytes(), int64_t{15 * kMiB});

  devices_ = devices_.become(paths_);
  const std::string alias = directory_.path() + "/alias";
  ASSERT_EQ(::symlink(holds.c_str(), alias.c_str()), 0);
  paths_.push_back(alias);
  EXPECT_EQ(seen(*pool("c")).taken_out_devices_size(), 0) << "it is back by another name";
}

}  // namespace
}  // namespace sluice::control
