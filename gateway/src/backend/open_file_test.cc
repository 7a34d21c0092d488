#include "backend/open_file.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <future>
#include <latch>
#include <memory>
#include <string>
#include <utility>
#include <vector>

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

// The close of a socket waits until the peer has received all data (SO_LINGER), as that of a file
// may wait for its medium.
TEST_F(OpenFileTest, AReactorDoesNotWaitForACloseThatTakesLong) {
  const FileDescriptor listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(bind(listener.get(), any, size), 0);
  ASSERT_EQ(listen(listener.get(), 1), 0);
  ASSERT_EQ(getsockname(listener.get(), any, &size), 0);
  FileDescriptor sender(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(connect(sender.get(), any, size), 0);
  FileDescriptor receiver(accept(listener.get(), nullptr, nullptr));
  const linger waits{1, 60};
  ASSERT_EQ(setsockopt(sender.get(), SOL_SOCKET, SO_LINGER, &waits, sizeof(waits)), 0);
  const std::vector<char> data(1 << 20);
  while (send(sender.get(), data.data(), data.size(), MSG_DONTWAIT) > 0) continue;

  auto file = std::make_unique<OpenFile>(std::move(sender));
  const dev_t device = device_of(file->fd());
  {
    const ReactorThread mark;
    file.reset();
  }
  EXPECT_FALSE(OpenFile::wait_for_closing(device, 0)) << "the reactor has closed it";
  receiver = FileDescriptor();  // unread data: the connection is reset
  EXPECT_TRUE(OpenFile::wait_for_closing(device, 30 * kSecond));
}

}  // namespace
}  // namespace sluice::backend
