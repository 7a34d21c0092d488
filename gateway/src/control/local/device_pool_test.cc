// Volumes on whole block devices, on real ones: loop devices, which go with the test.
#include "control/local/device_pool.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <filesystem>
#include <random>
#include <thread>
#include <vector>

#include "backend/test_places.h"
#include "control/local/device_choice.h"
#include "control/test_objects.h"

namespace sluice::control {
namespace {

using testing::HasSubstr;

constexpr uint64_t kMiB = 1 << 20;

class DevicePoolTest : public testing::Test {
 protected:
  void SetUp() override {
    for (const uint64_t mib : {16, 8, 32}) {
      loops_.emplace_back(place_.file(std::to_string(mib)), mib * kMiB);
      if (!loops_.back().skip_reason().empty()) GTEST_SKIP() << loops_.back().skip_reason();
      paths_.push_back(loops_.back().path());
    }
  }
  std::shared_ptr<DevicePool> pool(const std::string& incarnation,
                                   const std::string& records = "r") {
    auto opened = DevicePool::open(devices_.become(paths_), directory_.path() + '/' + records,
                                   incarnation, [](auto&&...) { return HolderAnswer(); });
    EXPECT_TRUE(opened.ok()) << opened.error();
    return std::move(opened).value();
  }
  static JobOutcome run(DevicePool& pool, const wire::Job& job, int* turns = nullptr) {
    JobOutcome outcome{.problem = "not done"};
    std::deque<std::function<void()>> again;
    const JobServices services{
        .between = {},
        .progress = [](uint32_t permille) { EXPECT_LT(permille, 1000u); },
        .again = [&again](std::function<void()> task) { again.push_back(std::move(task)); }};
    pool.run_job(job, services, [&outcome](JobOutcome done) { outcome = std::move(done); });
    for (; !again.empty(); again.pop_front()) {
      again.front()();
      if (turns) ++*turns;
    }
    return outcome;
  }
  static JobOutcome create(DevicePool& pool, const std::string& location, uint64_t size) {
    wire::Job job;
    job.mutable_create()->set_location(location);
    job.mutable_create()->set_size_bytes(static_cast<int64_t>(size));
    return run(pool, job);
  }
  static JobOutcome remove(DevicePool& pool, const std::string& location) {
    wire::Job job;
    job.mutable_delete_()->set_location(location);
    job.mutable_delete_()->set_volume_uid(kVolumeUid);
    return run(pool, job);
  }
  static wire::PoolObserved seen(DevicePool& pool) {
    wire::PoolObserved observed;
    pool.look_at("p", [&observed](wire::PoolObserved found) { observed = std::move(found); });
    return observed;
  }
  static wire::DesiredVolume volume(const std::string& location, uint64_t size) {
    wire::DesiredVolume wanted;
    wanted.set_uid(kVolumeUid);
    wanted.set_location(location);
    wanted.set_size_bytes(static_cast<int64_t>(size));
    wanted.set_block_size(512);
    return wanted;
  }
  static Record record_of(Place& place, uint64_t epoch) {
    Record record;
    record.volume = kVolumeUid;
    record.epoch = epoch;
    record.holder = place.self();
    return record;
  }
  // The pool has the device by a name that can come to mean something else.
  std::string alias_of(size_t device) {
    const std::string alias = directory_.path() + "/alias";
    point(alias, paths_[device]);
    return alias;
  }
  static void point(const std::string& alias, const std::string& to) {
    std::filesystem::remove(alias);
    std::filesystem::create_symlink(to, alias);
  }
  void put(size_t device, off_t at, const std::string& bytes) {
    const FileDescriptor file(::open(paths_[device].c_str(), O_WRONLY | O_CLOEXEC));
    ASSERT_EQ(::pwrite(file.get(), bytes.data(), bytes.size(), at),
              static_cast<ssize_t>(bytes.size()));
    ASSERT_EQ(::fsync(file.get()), 0);
  }
  std::string bytes_of(size_t device, off_t at, size_t size) {
    std::string bytes(size, 'x');
    const FileDescriptor file(::open(paths_[device].c_str(), O_RDONLY | O_CLOEXEC));
    EXPECT_EQ(::pread(file.get(), bytes.data(), size, at), static_cast<ssize_t>(size));
    return bytes;
  }
  std::optional<DeviceLabel> label(size_t device) {
    const FileDescriptor file(::open(paths_[device].c_str(), O_RDONLY | O_CLOEXEC));
    const auto found = read_label(file.get(), paths_[device]);
    EXPECT_TRUE(found.ok());
    return found.ok() ? found.value() : std::nullopt;
  }

  TestDirectory directory_;
  backend::Place place_{"/var/tmp"};
  std::deque<backend::LoopDevice> loops_;
  DevicePool::Devices devices_;  // as the pool was before paths_
  std::vector<std::string> paths_;
};

TEST_F(DevicePoolTest, TheSmallestThatIsLargeEnoughBecomesTheVolumesAndOnlyOnce) {
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

TEST_F(DevicePoolTest, ADeviceThatHoldsSomethingElseIsNeverTouched) {
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

TEST_F(DevicePoolTest, CapacityIsWhatVolumesCanHaveAndADeviceIsUsedWhole) {
  auto a = pool("a");
  EXPECT_EQ(seen(*a).capacity_bytes(), static_cast<int64_t>((15 + 7 + 31) * kMiB));
  EXPECT_EQ(seen(*a).used_bytes(), 0);
  EXPECT_EQ(create(*a, "volume-1", 2 * kMiB).problem, "");
  EXPECT_EQ(seen(*a).used_bytes(), static_cast<int64_t>(7 * kMiB));
  EXPECT_FALSE(seen(*a).snapshots_supported());
  wire::Job job;
  job.mutable_list_images();
  EXPECT_EQ(run(*a, job).images, std::vector<std::string>{"volume-1"});
  job.mutable_snapshot()->set_location("volume-1");
  EXPECT_TRUE(run(*a, job).unsupported);
}

TEST_F(DevicePoolTest, ADeviceHasOneOwnerAndTheNextFindsItWhateverItIsCalled) {
  auto a = pool("a");
  EXPECT_EQ(create(*a, "volume-1", 4 * kMiB).problem, "");
  auto first = a->place(volume("volume-1", 4 * kMiB), {}).value();
  Place::Opened mine = first->open(volume("volume-1", 4 * kMiB));
  ASSERT_NE(mine.backend, nullptr) << mine.problem;
  EXPECT_EQ(mine.backend->size_bytes(), 4 * kMiB) << "what was asked for, not what there is";
  EXPECT_EQ(first->claim(record_of(*first, 3), Outlasts::kPowerCut).value(), Place::Claim::kDone);

  std::swap(paths_[0], paths_[1]);
  auto b = pool("b");
  auto next = b->place(volume("volume-1", 4 * kMiB), {}).value();
  Place::Opened refused = next->open(volume("volume-1", 4 * kMiB));
  EXPECT_EQ(refused.backend, nullptr);
  EXPECT_TRUE(refused.held) << refused.problem;
  EXPECT_THAT(remove(*b, "volume-1").problem, HasSubstr("in use"));

  mine.backend.reset();
  Place::Opened taken = next->open(volume("volume-1", 7 * kMiB));
  ASSERT_NE(taken.backend, nullptr) << taken.problem;
  EXPECT_EQ(taken.backend->size_bytes(), 7 * kMiB) << "it has grown";
  ASSERT_TRUE(next->record().value());
  EXPECT_EQ(next->record().value()->epoch, 3u);
  EXPECT_TRUE(next->record_suffices());
}

TEST_F(DevicePoolTest, ADeviceThatIsLetGoOfWhileItIsPolledForIsHeldOrTakenAtEveryMoment) {
  using Clock = std::chrono::steady_clock;
  auto a = pool("a");
  EXPECT_EQ(create(*a, "volume-1", 4 * kMiB).problem, "");
  const wire::DesiredVolume wanted = volume("volume-1", 4 * kMiB);
  auto place = a->place(wanted, {}).value();
  std::minstd_rand random(1);
  Clock::duration poll{};  // how long one that finds it held takes
  for (int round = 0; round < 200; ++round) {
    FileDescriptor holder(::open(paths_[1].c_str(), O_RDONLY | O_EXCL | O_CLOEXEC));
    ASSERT_TRUE(holder.valid());
    if (round == 0) {
      const auto begun = Clock::now();
      ASSERT_TRUE(place->open(wanted).held);
      poll = Clock::now() - begun;
    }
    const auto moment = Clock::now() + poll * (random() % 1000) / 500;
    const std::jthread letting_go([&holder, moment] {
      while (Clock::now() < moment) continue;
      holder = FileDescriptor();
    });
    for (bool is_taken = false; !is_taken;) {
      const Place::Opened opened = place->open(wanted);
      is_taken = opened.backend != nullptr;
      ASSERT_TRUE(is_taken || opened.held) << "round " << round << ": " << opened.problem;
    }
  }
}

TEST_F(DevicePoolTest, ARecordIsTrustedOnlyWhereTheDeviceWasServedLast) {
  auto a = pool("a");
  EXPECT_EQ(create(*a, "volume-1", 4 * kMiB).problem, "");
  auto elsewhere = pool("b", "other");
  const wire::DesiredVolume wanted = volume("volume-1", 4 * kMiB);
  auto there = elsewhere->place(wanted, {}).value();
  Place::Opened opened = there->open(wanted);
  ASSERT_NE(opened.backend, nullptr) << opened.problem;
  EXPECT_FALSE(there->record_suffices());
  ASSERT_TRUE(there->claim(record_of(*there, 2), Outlasts::kProcess).ok());
  EXPECT_FALSE(there->record_suffices()) << "nothing is known yet of reservations";
  ASSERT_TRUE(there->claim(record_of(*there, 2), Outlasts::kPowerCut).ok());
  EXPECT_TRUE(there->record_suffices());
  opened.backend.reset();
  auto back = a->place(wanted, {}).value();
  ASSERT_NE(back->open(wanted).backend, nullptr);
  EXPECT_FALSE(back->record_suffices());
}

TEST_F(DevicePoolTest, AVolumeGrowsUpToItsDevice) {
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

TEST_F(DevicePoolTest, AVolumeThatMayBeOnADeviceThatCantBeReadIsNotDeletedUntilItIsBack) {
  const std::string device = paths_[1];
  backend::LoopDevice no_medium(place_.file("0"), 0);
  if (!no_medium.skip_reason().empty()) GTEST_SKIP() << no_medium.skip_reason();
  const std::string alias = paths_[1] = alias_of(1);
  auto a = pool("a");
  EXPECT_EQ(create(*a, "volume-1", 6 * kMiB).problem, "");
  put(1, 1 * kMiB, std::string(kMiB, 's'));
  const wire::DesiredVolume wanted = volume("volume-1", 6 * kMiB);
  auto place = a->place(wanted, {}).value();
  ASSERT_NE(place->open(wanted).backend, nullptr);
  ASSERT_TRUE(place->claim(record_of(*place, 3), Outlasts::kPowerCut).ok());

  for (const std::string& instead : {directory_.path() + "/gone", no_medium.path()}) {
    point(alias, instead);
    const std::string why = remove(*a, "volume-1").problem;
    EXPECT_THAT(why, HasSubstr(alias + ": "));
    EXPECT_THAT(why, HasSubstr("connect that again, or take it out of the pool's list"));
    ASSERT_TRUE(place->record().value()) << instead;
    EXPECT_EQ(place->record().value()->epoch, 3u);
  }

  point(alias, device);
  EXPECT_EQ(remove(*a, "volume-1").problem, "");
  EXPECT_EQ(bytes_of(1, 0, 8 * kMiB), std::string(8 * kMiB, '\0'));
  EXPECT_FALSE(place->record().value());
  EXPECT_EQ(create(*a, "volume-2", 6 * kMiB).problem, "");
  EXPECT_EQ(label(1)->location, "volume-2") << "it is free again";
}

// The job has come again: what it did the first time nobody has heard.
TEST_F(DevicePoolTest, AVolumeThatMayBeOnADeviceThatCantBeReadIsPutOnNoOther) {
  const std::string device = paths_[1];
  backend::LoopDevice no_medium(place_.file("0"), 0);
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

TEST_F(DevicePoolTest, AVolumeWhoseDeviceWasChosenAndNotLabelledYetGetsOneAgain) {
  auto a = pool("a");
  {
    const FileDescriptor user(::open(paths_[1].c_str(), O_RDWR | O_EXCL | O_CLOEXEC));
    const Result<FileDescriptor> records = open_directory(directory_.path() + "/r/.sluice");
    ASSERT_TRUE(records) << records.error();
    ASSERT_TRUE(choose_device(records.value().get(), "volume-1", paths_[1], "").ok());
    EXPECT_EQ(create(*a, "volume-1", 6 * kMiB).problem, "");
  }
  EXPECT_EQ(label(0)->location, "volume-1");
}

TEST_F(DevicePoolTest, ADeletionIsHeldUpByNoOtherVolumesDeviceAndByNoForeignOne) {
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

TEST_F(DevicePoolTest, OneCopyOfALabelIsEnoughAndOneThatIsDamagedTwiceIsRefused) {
  auto a = pool("a");
  EXPECT_EQ(create(*a, "volume-1", 6 * kMiB).problem, "");
  put(1, 30, "#");
  EXPECT_EQ(label(1)->location, "volume-1");
  put(1, (64 << 10) + 30, "#");
  const std::string none = create(*a, "volume-2", 6 * kMiB).problem;
  EXPECT_EQ(none, "") << "on another device";
  EXPECT_THAT(seen(*a).unusable_devices(0), HasSubstr(paths_[1] + ": its label is damaged"));
  const wire::DesiredVolume wanted = volume("volume-1", 6 * kMiB);
  const Place::Opened lost = a->place(wanted, {}).value()->open(wanted);
  EXPECT_EQ(lost.backend, nullptr);
  EXPECT_FALSE(lost.held);
  EXPECT_THAT(lost.problem, HasSubstr("label is damaged"));
}

TEST_F(DevicePoolTest, TwoNamesOfOneDeviceAreOneAndACopyOfAVolumeIsNeverServed) {
  auto a = pool("a");
  EXPECT_EQ(create(*a, "volume-1", 6 * kMiB).problem, "");
  put(2, 0, bytes_of(1, 0, kMiB));
  const wire::DesiredVolume wanted = volume("volume-1", 6 * kMiB);
  EXPECT_THAT(a->place(wanted, {}).value()->open(wanted).problem, HasSubstr("both say"));
  const std::string other = directory_.path() + "/alias";
  ASSERT_EQ(::symlink(paths_[1].c_str(), other.c_str()), 0);
  paths_ = {paths_[1], other};
  auto b = pool("b");
  EXPECT_THAT(seen(*b).unusable_devices(0), HasSubstr("is the same device as " + paths_[0]));
  EXPECT_NE(b->place(wanted, {}).value()->open(wanted).backend, nullptr);
}

TEST_F(DevicePoolTest, ADeviceThatWasTakenOutIsToldWithWhatItHoldsUntilItIsBack) {
  auto a = pool("a");
  EXPECT_EQ(create(*a, "volume-1", 6 * kMiB).problem, "");
  const Place::Opened mine =
      a->place(volume("volume-1", 6 * kMiB), {}).value()->open(volume("volume-1", 6 * kMiB));
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
