// Volumes on whole block devices, on real ones.
#include "control/local/device_pool.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <thread>

#include "control/local/device_choice.h"
#include "control/local/device_pool_fixture.h"

namespace sluice::control {
namespace {

using testing::HasSubstr;

TEST_F(DevicePoolTest, TheSmallestSufficientDeviceIsAssignedToTheVolumeExactlyOnce) {
  auto a = pool("a");
  auto b = pool("b");
  for (DevicePool* one : {a.get(), b.get(), a.get()}) {
    EXPECT_EQ(create(*one, "volume-1", 7 * kMiB).problem, "");
  }
  ASSERT_TRUE(label(1));
  EXPECT_EQ(label(1)->location, "volume-1");
  EXPECT_EQ(create(*b, "volume-2", 7 * kMiB).problem, "");
  EXPECT_EQ(label(0)->location, "volume-2");
  EXPECT_EQ(create(*a, "volume-3", 31 * kMiB).problem, "");
  const std::string full = create(*a, "volume-4", kMiB).problem;
  EXPECT_THAT(full, HasSubstr(paths_[1] + " is volume-1"));
  EXPECT_THAT(full, HasSubstr("add a device"));
}

TEST_F(DevicePoolTest, ADeviceWithForeignDataOrInUseIsNotModified) {
  const std::string luks = std::string("LUKS\xba\xbe\0\1", 8) + std::string(584, '\0');
  put(1, 0, luks);
  const FileDescriptor user(::open(paths_[0].c_str(), O_RDWR | O_EXCL | O_CLOEXEC));
  auto a = pool("a");
  EXPECT_EQ(create(*a, "volume-1", 2 * kMiB).problem, "") << "the third is free";
  EXPECT_EQ(label(2)->location, "volume-1");
  const std::string none = create(*a, "volume-2", 2 * kMiB).problem;
  EXPECT_THAT(none, HasSubstr(paths_[1] + ": holds data that is not Sluice's: crypto_LUKS"));
  EXPECT_THAT(none, HasSubstr("wipefs"));
  EXPECT_THAT(none, HasSubstr(paths_[0] + ": is in use"));
  EXPECT_EQ(bytes_of(1, 0, luks.size()), luks);
  const wire::PoolObserved found = seen(*a);
  EXPECT_EQ(found.unusable_devices_size(), 2);
  EXPECT_EQ(found.capacity_bytes(), static_cast<int64_t>(31 * kMiB));
  EXPECT_EQ(found.problem(), "");
}

TEST_F(DevicePoolTest, CapacityIsTheSpaceUsableByVolumesAndAUsedDeviceCountsEntirely) {
  auto a = pool("a");
  EXPECT_EQ(seen(*a).capacity_bytes(), static_cast<int64_t>((15 + 7 + 31) * kMiB));
  EXPECT_EQ(seen(*a).used_bytes(), 0);
  EXPECT_EQ(seen(*a).max_image_bytes(), static_cast<int64_t>(31 * kMiB))
      << "that of the largest device";
  EXPECT_EQ(create(*a, "volume-1", 2 * kMiB).problem, "");
  EXPECT_EQ(seen(*a).used_bytes(), static_cast<int64_t>(7 * kMiB));
  EXPECT_FALSE(seen(*a).snapshots_supported());
  wire::Job job;
  job.mutable_list_images();
  EXPECT_EQ(run(*a, job).images, std::vector<std::string>{"volume-1"});
  job.mutable_snapshot()->set_location("volume-1");
  EXPECT_TRUE(run(*a, job).unsupported);
}

TEST_F(DevicePoolTest, ADeviceHasOneOwnerAndTheNextOwnerFindsItByItsLabelNotItsPath) {
  auto a = pool("a");
  EXPECT_EQ(create(*a, "volume-1", 4 * kMiB).problem, "");
  auto first = a->storage_of(volume("volume-1", 4 * kMiB), {}).value();
  VolumeStorage::Opened mine = first->open(volume("volume-1", 4 * kMiB));
  ASSERT_NE(mine.backend, nullptr) << mine.problem;
  EXPECT_EQ(mine.backend->size_bytes(), 4 * kMiB) << "what was asked for, not what there is";
  EXPECT_EQ(first->claim(record_of(*first, 3), Outlasts::kPowerCut).value(),
            VolumeStorage::Claim::kDone);

  std::swap(paths_[0], paths_[1]);
  auto b = pool("b");
  auto next = b->storage_of(volume("volume-1", 4 * kMiB), {}).value();
  VolumeStorage::Opened refused = next->open(volume("volume-1", 4 * kMiB));
  EXPECT_EQ(refused.backend, nullptr);
  EXPECT_TRUE(refused.held) << refused.problem;
  EXPECT_THAT(remove(*b, "volume-1").problem, HasSubstr("in use"));

  mine.backend.reset();
  VolumeStorage::Opened taken = next->open(volume("volume-1", 7 * kMiB));
  ASSERT_NE(taken.backend, nullptr) << taken.problem;
  EXPECT_EQ(taken.backend->size_bytes(), 7 * kMiB) << "it has grown";
  ASSERT_TRUE(next->record().value());
  EXPECT_EQ(next->record().value()->epoch, 3u);
  EXPECT_TRUE(next->record_suffices());
}

TEST_F(DevicePoolTest, ADeviceReleasedDuringAnOpenIsReportedAsHeldOrIsOpened) {
  using Clock = std::chrono::steady_clock;
  auto a = pool("a");
  EXPECT_EQ(create(*a, "volume-1", 4 * kMiB).problem, "");
  const wire::DesiredVolume wanted = volume("volume-1", 4 * kMiB);
  auto storage = a->storage_of(wanted, {}).value();
  std::minstd_rand random(1);
  Clock::duration poll{};  // how long one that finds it held takes
  for (int round = 0; round < 200; ++round) {
    FileDescriptor holder(::open(paths_[1].c_str(), O_RDONLY | O_EXCL | O_CLOEXEC));
    ASSERT_TRUE(holder.valid());
    if (round == 0) {
      const auto begun = Clock::now();
      ASSERT_TRUE(storage->open(wanted).held);
      poll = Clock::now() - begun;
    }
    const auto moment = Clock::now() + poll * (random() % 1000) / 500;
    const std::jthread letting_go([&holder, moment] {
      while (Clock::now() < moment) continue;
      holder = FileDescriptor();
    });
    for (bool is_taken = false; !is_taken;) {
      const VolumeStorage::Opened opened = storage->open(wanted);
      is_taken = opened.backend != nullptr;
      ASSERT_TRUE(is_taken || opened.held) << "round " << round << ": " << opened.problem;
    }
  }
}

TEST_F(DevicePoolTest, ARecordSufficesOnlyOnTheNodeThatServedTheDeviceLast) {
  auto a = pool("a");
  EXPECT_EQ(create(*a, "volume-1", 4 * kMiB).problem, "");
  auto elsewhere = pool("b", "other");
  const wire::DesiredVolume wanted = volume("volume-1", 4 * kMiB);
  auto there = elsewhere->storage_of(wanted, {}).value();
  VolumeStorage::Opened opened = there->open(wanted);
  ASSERT_NE(opened.backend, nullptr) << opened.problem;
  EXPECT_FALSE(there->record_suffices());
  ASSERT_TRUE(there->claim(record_of(*there, 2), Outlasts::kProcess).ok());
  EXPECT_FALSE(there->record_suffices()) << "nothing is known yet of reservations";
  ASSERT_TRUE(there->claim(record_of(*there, 2), Outlasts::kPowerCut).ok());
  EXPECT_TRUE(there->record_suffices());
  opened.backend.reset();
  auto back = a->storage_of(wanted, {}).value();
  ASSERT_NE(back->open(wanted).backend, nullptr);
  EXPECT_FALSE(back->record_suffices());
}

TEST_F(DevicePoolTest, AVolumeGrowsUpToTheSizeOfItsDevice) {
  auto a = pool("a");
  EXPECT_EQ(create(*a, "volume-1", 2 * kMiB).problem, "");
  wire::Job job;
  job.mutable_resize()->set_location("volume-1");
  job.mutable_resize()->set_size_bytes(7 * kMiB);
  EXPECT_EQ(run(*a, job).problem, "");
  job.mutable_resize()->set_size_bytes(8 * kMiB);
  EXPECT_THAT(run(*a, job).problem,
              HasSubstr(paths_[1] + " has 7MiB for a volume, less than 8MiB"));
  ASSERT_TRUE(loops_[1].set_size(16 * kMiB));
  EXPECT_EQ(run(*a, job).problem, "") << "the label is at its start, and so is found";
}

TEST_F(DevicePoolTest, AVolumeWhoseChosenDeviceHasNoLabelYetIsAssignedADeviceAgain) {
  auto a = pool("a");
  {
    const FileDescriptor user(::open(paths_[1].c_str(), O_RDWR | O_EXCL | O_CLOEXEC));
    const Result<FileDescriptor> records = open_directory(directory_.path() + "/r/.sluice");
    ASSERT_TRUE(records) << records.error();
    ASSERT_TRUE(choose_device(records.value().get(), "volume-1", {.path = paths_[1]}, "").ok());
    EXPECT_EQ(create(*a, "volume-1", 6 * kMiB).problem, "");
  }
  EXPECT_EQ(label(0)->location, "volume-1");
}

}  // namespace
}  // namespace sluice::control
