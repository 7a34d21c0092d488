// Records on a file system that is full to the last block.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "control/local/image_identity.h"
#include "control/local/record_file.h"
#include "control/local/record_files.h"
#include "control/local/space_reserve.h"
#include "control/local/test_record.h"

namespace sluice::control {
namespace {

class FullPoolTest : public testing::Test {
 protected:
  void SetUp() override {
    // The mount is in a namespace of this process, which needs a privilege.
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("tmpfs", mount_.path().c_str(), "tmpfs", 0, "size=4m,mode=700") != 0) {
      GTEST_SKIP() << "no file system of its own: " << std::strerror(errno);
    }
    mounted_ = true;
    directory_ = std::move(open_directory(mount_.path())).value();
  }
  ~FullPoolTest() override {
    directory_ = FileDescriptor();
    if (mounted_) ::umount2(mount_.path().c_str(), MNT_DETACH);
  }

  void fill() {
    const FileDescriptor file(
        ::openat(directory_.get(), "fill", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    ASSERT_TRUE(file.valid());
    const std::string block(4096, 'x');
    ssize_t n = 0;
    while ((n = ::write(file.get(), block.data(), block.size())) > 0) {
    }
    ASSERT_EQ(errno, ENOSPC);
    ASSERT_FALSE(replace_file(directory_.get(), "probe", "x", "probe"));
  }
  void free_space() { ASSERT_EQ(::unlinkat(directory_.get(), "fill", 0), 0); }

  RecordFile file() const { return {directory_.get(), kVolumeUid, "r"}; }
  static Record with_keys(unsigned registrations) {
    Record record = some_record();
    ++record.generation;
    record.reservations.registrations.clear();
    for (unsigned i = 0; i < registrations; ++i) {
      lun::Registration registration;
      registration.key = i + 1;
      registration.nexus.initiator_name = "iqn.2026-11.test:host-" + std::to_string(i);
      record.reservations.registrations.push_back(registration);
    }
    return record;
  }
  static Record of_successor(Record record) {
    record.epoch += 1;
    record.order += 1;
    record.holder.incarnation = "a-much-longer-incarnation-of-the-successor";
    record.holder.pid += 100000;
    return record;
  }
  Result<Record> in_files(const char* end) const {
    return parse_record(
        read_small_file(directory_.get(), std::string(kVolumeUid) + end, 1 << 20, "r")
            .value()
            .value_or(""),
        kVolumeUid, "r");
  }

  TestDirectory mount_;
  bool mounted_ = false;
  FileDescriptor directory_;
};

TEST_F(FullPoolTest, ReservationsChangeAndTheNextOwnerReadsThem) {
  ASSERT_TRUE(file().claim(some_record(), Outlasts::kPowerCut));
  fill();
  for (unsigned keys = 1; keys < 20; ++keys) {
    const Record record = with_keys(keys);
    const Result<bool> reserved = file().reserve(record);
    ASSERT_TRUE(reserved) << reserved.error();
    ASSERT_TRUE(reserved.value()) << keys;
    const Result<void> updated = file().update(record);
    ASSERT_TRUE(updated) << keys << ": " << updated.error();
    ASSERT_TRUE(file().read());
    EXPECT_EQ(file().read().value(), record);
  }
  EXPECT_EQ(in_files(".volume").value(), some_record()) << "there was room for a new file";
}

// The owner died after the control plane had stored a change, and before it wrote the record.
TEST_F(FullPoolTest, TheNextOwnerWritesWhatTheLastOneCouldNot) {
  ASSERT_TRUE(file().claim(some_record(), Outlasts::kPowerCut));
  const Record stored = with_keys(30);
  ASSERT_TRUE(file().reserve(stored).value());
  fill();
  const Record claimed = of_successor(stored);
  Record locked = some_record();
  locked.holder = claimed.holder;
  locked.order = claimed.order;
  ASSERT_TRUE(file().claim(locked, Outlasts::kProcess));
  EXPECT_EQ(file().read().value()->holder, claimed.holder);
  const Result<void> done = file().claim(claimed, Outlasts::kPowerCut);
  ASSERT_TRUE(done) << done.error();
  EXPECT_EQ(file().read().value(), claimed);
  EXPECT_FALSE(file().claim(some_record(), Outlasts::kPowerCut)) << "an older epoch";
  EXPECT_FALSE(file().update(stored)) << "the former owner";
  EXPECT_TRUE(file().update(claimed));
}

TEST_F(FullPoolTest, AStateWithoutRoomIsRefusedBeforeItIsStoredAndNothingChanges) {
  ASSERT_TRUE(file().claim(some_record(), Outlasts::kPowerCut));
  fill();
  const Result<bool> reserved = file().reserve(with_keys(2000));
  ASSERT_TRUE(reserved) << reserved.error();
  EXPECT_FALSE(reserved.value());
  EXPECT_EQ(file().read().value(), some_record());
  EXPECT_TRUE(file().update(with_keys(5)));
  free_space();
  EXPECT_TRUE(file().reserve(with_keys(2000)).value());
  EXPECT_EQ(file().read().value(), with_keys(5)) << "the newest record moves into larger slots";
  fill();
  EXPECT_TRUE(file().update(with_keys(2000)));
  EXPECT_EQ(file().read().value(), with_keys(2000));
}

TEST_F(FullPoolTest, TheFirstRecordOfAVolumeUsesTheReserveWhichIsKeptAgainWithSpace) {
  keep_reserve(directory_.get());
  fill();
  ASSERT_TRUE(file().claim(some_record(), Outlasts::kPowerCut));
  EXPECT_EQ(file().read().value(), some_record());
  fill();
  const RecordFile another{directory_.get(), "another", "r"};
  EXPECT_FALSE(another.claim(some_record(), Outlasts::kPowerCut));
  free_space();
  keep_reserve(directory_.get());
  fill();
  EXPECT_TRUE(release_reserve(directory_.get()));
  EXPECT_FALSE(release_reserve(directory_.get())) << "it is gone";
}

TEST_F(FullPoolTest, WithSpaceAgainAllFilesHaveTheRecord) {
  ASSERT_TRUE(file().claim(some_record(), Outlasts::kPowerCut));
  fill();
  const Record changed = with_keys(3);
  ASSERT_TRUE(file().update(changed));
  free_space();
  const Record claimed = of_successor(changed);
  ASSERT_TRUE(file().claim(claimed, Outlasts::kPowerCut));
  EXPECT_EQ(in_files(".volume").value(), claimed);
  EXPECT_EQ(in_files(".copy").value(), claimed);
  EXPECT_EQ(file().read().value(), claimed);
}

// A store that was restored from a backup counts orders from an older one. Slots of the same epoch
// would contradict the record, and are emptied.
TEST_F(FullPoolTest, AClaimWithALowerOrderIsWritten) {
  ASSERT_TRUE(file().claim(some_record(), Outlasts::kPowerCut));
  ASSERT_TRUE(file().claim(of_successor(some_record()), Outlasts::kPowerCut));
  fill();
  Record next = of_successor(some_record());
  next.order = 1;
  next.holder.incarnation = "incarnation-3";
  const Result<void> claimed = file().claim(next, Outlasts::kPowerCut);
  ASSERT_TRUE(claimed) << claimed.error();
  EXPECT_EQ(file().read().value(), next);
}

TEST_F(FullPoolTest, AnImageOfAFormerReleaseIsUsedAndRecordedOnceThereIsRoom) {
  const std::string image = std::string("volume-") + kVolumeUid;
  const FileDescriptor file(
      ::openat(directory_.get(), image.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_TRUE(file.valid());
  fill();
  const std::string path = mount_.path();
  const ImageRecords where{directory_.get(), path, 0};
  const auto is_recorded = [&] {
    return ::faccessat(directory_.get(), (image + ".image").c_str(), F_OK, 0) == 0;
  };
  const Result<void> used = verify_image(where, image, file.get());
  EXPECT_TRUE(used) << used.error();
  EXPECT_FALSE(is_recorded());
  free_space();
  EXPECT_TRUE(verify_image(where, image, file.get()));
  EXPECT_TRUE(is_recorded());
}

TEST_F(FullPoolTest, RecordsAreDeleted) {
  ASSERT_TRUE(file().claim(some_record(), Outlasts::kPowerCut));
  fill();
  ASSERT_TRUE(file().update(with_keys(3)));
  ASSERT_TRUE(remove_records(directory_.get(), kVolumeUid, "r"));
  EXPECT_FALSE(file().read().value());
  EXPECT_NE(::faccessat(directory_.get(), (std::string(kVolumeUid) + ".slots").c_str(), F_OK, 0),
            0);
}

}  // namespace
}  // namespace sluice::control
