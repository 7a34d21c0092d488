#include "backend/open_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <future>
#include <latch>
#include <string>

#include "backend/test_storage.h"
#include "base/limits.h"
#include "base/reactor_thread.h"

namespace sluice::backend {
namespace {

class OpenFileTest : public testing::Test {
 protected:
  FileDescriptor open() const {
    return FileDescriptor(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  }
  std::unique_ptr<OpenFile> locked() const {
    auto file = std::make_unique<OpenFile>(open());
    EXPECT_EQ(flock(file->fd(), LOCK_EX | LOCK_NB), 0);
    return file;
  }
  bool can_lock() const { return flock(open().get(), LOCK_EX | LOCK_NB) == 0; }

  ScratchDirectory scratch_{"/var/tmp"};
  const std::string path_ = scratch_.file("data");
};

TEST_F(OpenFileTest, AReleasedFileIsUnlockedAndItsNumberStaysInUse) {
  const auto file = locked();
  EXPECT_FALSE(can_lock());
  std::promise<void> released;
  file->release([&] { released.set_value(); });
  released.get_future().wait();
  EXPECT_TRUE(can_lock());
  struct stat path{}, number{};
  ASSERT_EQ(stat(path_.c_str(), &path), 0);
  ASSERT_EQ(fstat(file->fd(), &number), 0) << "another file could have this number";
  EXPECT_FALSE(path.st_dev == number.st_dev && path.st_ino == number.st_ino);
}

TEST_F(OpenFileTest, EachReleaseCallsItsCallbackOnceAlsoAfterTheEndOfTheFile) {
  auto file = locked();
  const dev_t device = device_of(file->fd());
  std::latch called(3);
  file->release([&] { called.count_down(); });
  file->release([&] { called.count_down(); });
  file.reset();
  OpenFile::wait_for_closing(device, limits::kUnitLeaves);
  called.count_down();
  called.wait();
}

TEST_F(OpenFileTest, AFileThatWasNotReleasedIsUnlockedAndClosedAtItsEnd) {
  auto file = locked();
  const int number = file->fd();
  file->sync_at_end();
  file.reset();
  EXPECT_TRUE(can_lock());
  EXPECT_EQ(fcntl(number, F_GETFD), -1);
}

TEST_F(OpenFileTest, AReactorUnlocksAFileAtOnceAndAnotherThreadClosesItBeforeTheWaitEnds) {
  auto file = locked();
  const int number = file->fd();
  const dev_t device = device_of(number);
  file->sync_at_end();
  {
    const ReactorThread mark;
    file.reset();
  }
  EXPECT_TRUE(can_lock());
  OpenFile::wait_for_closing(device, limits::kUnitLeaves);
  EXPECT_EQ(fcntl(number, F_GETFD), -1);
}

}  // namespace
}  // namespace sluice::backend
