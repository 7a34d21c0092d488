// A pool of three loop devices of 16, 8 and 32 MiB. The test removes them at its end.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backend/test_storage.h"
#include "control/local/device_pool.h"
#include "control/test_objects.h"

namespace sluice::control {

inline constexpr uint64_t kMiB = 1 << 20;

class DevicePoolTest : public testing::Test {
 protected:
  void SetUp() override {
    for (const uint64_t mib : {16, 8, 32}) {
      loops_.emplace_back(scratch_.file(std::to_string(mib)), mib * kMiB);
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
  static JobOutcome run(DevicePool& pool, const wire::Job& job, int* rounds = nullptr) {
    JobOutcome outcome{.problem = "not done"};
    std::deque<std::function<void()>> again;
    const JobServices services{
        .between = {},
        .progress = [](uint32_t permille) { EXPECT_LT(permille, 1000u); },
        .again = [&again](std::function<void()> task) { again.push_back(std::move(task)); }};
    pool.run_job(job, services, [&outcome](JobOutcome done) { outcome = std::move(done); });
    for (; !again.empty(); again.pop_front()) {
      again.front()();
      if (rounds) ++*rounds;
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
    pool.observe("p", [&observed](wire::PoolObserved found) { observed = std::move(found); });
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
  static Record record_of(VolumeStorage& storage, uint64_t epoch) {
    Record record;
    record.volume = kVolumeUid;
    record.epoch = epoch;
    record.holder = storage.self();
    return record;
  }
  // Returns a second name of the device, which the test can point at another device.
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
  backend::ScratchDirectory scratch_{"/var/tmp"};
  std::deque<backend::LoopDevice> loops_;
  DevicePool::Devices devices_;  // value before paths_ changed
  std::vector<std::string> paths_;
};

}  // namespace sluice::control
