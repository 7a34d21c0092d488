// A process with a release process is killed, while another process keeps its descriptors, as a
// thread would that is blocked in the kernel.
#include "base/release_process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/file_descriptor.h"

namespace sluice {
namespace {

constexpr Nanos kLong = 10 * kSecond;
constexpr int kLongMilliseconds = static_cast<int>(kLong / kMillisecond);

class ReleaseProcessTest : public testing::Test {
 protected:
  ReleaseProcessTest() {
    const FileDescriptor created(::mkstemp(path_.data()));
    EXPECT_TRUE(created.valid());
    listener_ = FileDescriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* name = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(::bind(listener_.get(), name, sizeof address), 0);
    EXPECT_EQ(::listen(listener_.get(), 1), 0);
    EXPECT_EQ(::getsockname(listener_.get(), name, &size), 0);
    connection_ = FileDescriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::connect(connection_.get(), name, sizeof address), 0);
  }
  ~ReleaseProcessTest() override {
    for (const pid_t pid : {keeper_, process_}) {
      if (pid > 0) ::kill(pid, SIGKILL);
    }
    while (::waitpid(-1, nullptr, __WALL) > 0) {
    }
    ::unlink(path_.c_str());
  }

  // Starts the process, and returns when it has the lock, the connection and a keeper of both.
  void start(bool with_release) {
    int pipes[2];
    ASSERT_EQ(::pipe2(pipes, O_CLOEXEC), 0);
    report_ = FileDescriptor(pipes[0]);
    FileDescriptor write(pipes[1]);
    process_ = ::fork();
    ASSERT_GE(process_, 0);
    if (process_ == 0) run(write.get(), with_release);
    write = FileDescriptor();
    ASSERT_EQ(::read(report_.get(), &keeper_, sizeof keeper_), ssize_t{sizeof keeper_});
  }

  bool lock_is_free() const {
    const FileDescriptor file(::open(path_.c_str(), O_RDWR | O_CLOEXEC));
    return ::flock(file.get(), LOCK_EX | LOCK_NB) == 0;
  }

  // Kills the process, not its keeper.
  void kill_process() {
    ASSERT_EQ(::kill(process_, SIGKILL), 0);
    ASSERT_EQ(::waitpid(process_, nullptr, 0), process_);
    process_ = 0;
  }

  // Whether the pipe to the process is closed within this time, which it is at the end of a
  // release. Nothing else is written to it.
  bool pipe_closes(int milliseconds) const {
    pollfd waits{report_.get(), POLLIN, 0};
    return ::poll(&waits, 1, milliseconds) == 1;
  }

  FileDescriptor connection_;  // to the process

 private:
  [[noreturn]] void run(int report, bool with_release) {
    const FileDescriptor file(::open(path_.c_str(), O_RDWR | O_CLOEXEC));
    const FileDescriptor accepted(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    connection_ = FileDescriptor();
    report_ = FileDescriptor();
    if (!accepted.valid() || ::flock(file.get(), LOCK_EX | LOCK_NB) != 0) ::_exit(1);
    const auto keeper =
        static_cast<pid_t>(::syscall(SYS_clone, CLONE_FILES | SIGCHLD, nullptr, nullptr, 0, 0));
    if (keeper == 0) {
      for (;;) ::pause();
    }
    Result<std::unique_ptr<ReleaseProcess>> release = Error{"none"};
    if (with_release) {
      release = ReleaseProcess::start();
      if (!release || !(*release)->wait_until_ready(kLong)) ::_exit(1);
    }
    if (::write(report, &keeper, sizeof keeper) != ssize_t{sizeof keeper}) ::_exit(1);
    for (;;) ::pause();
  }

  std::string path_ = testing::TempDir() + "release-XXXXXX";
  FileDescriptor listener_;
  FileDescriptor report_;
  pid_t process_ = 0;
  pid_t keeper_ = 0;
};

TEST_F(ReleaseProcessTest, LocksAndConnectionsOfAKilledProcessAreReleased) {
  start(true);
  EXPECT_FALSE(lock_is_free());
  kill_process();
  char byte = 0;
  EXPECT_EQ(::recv(connection_.get(), &byte, 1, 0), -1);
  EXPECT_EQ(errno, ECONNRESET);
  EXPECT_TRUE(pipe_closes(kLongMilliseconds));
  while (!lock_is_free()) {
  }
}

TEST_F(ReleaseProcessTest, WithoutItTheKeeperOfTheDescriptorsKeepsLocksAndConnections) {
  start(false);
  kill_process();
  EXPECT_FALSE(pipe_closes(0));
  EXPECT_FALSE(lock_is_free());
}

TEST_F(ReleaseProcessTest, ItEndsWithoutAReleaseWhileItsCreatorLives) {
  int pipes[2];
  ASSERT_EQ(::pipe2(pipes, O_CLOEXEC), 0);
  const FileDescriptor read(pipes[0]), write(pipes[1]);
  Result<std::unique_ptr<ReleaseProcess>> release = ReleaseProcess::start();
  ASSERT_TRUE(release.ok()) << release.error();
  ASSERT_TRUE((*release)->wait_until_ready(kLong));
  EXPECT_TRUE((*release)->running());
  const pid_t pid = (*release)->pid();
  // The signal of a creator's death, without a death.
  EXPECT_EQ(::kill(pid, SIGUSR1), 0);
  release->reset();
  EXPECT_EQ(::kill(pid, 0), -1);
  const char byte = 1;
  EXPECT_EQ(::write(write.get(), &byte, 1), 1);
}

TEST_F(ReleaseProcessTest, ItsEndByAnotherProcessIsNoticed) {
  Result<std::unique_ptr<ReleaseProcess>> release = ReleaseProcess::start();
  ASSERT_TRUE(release.ok()) << release.error();
  ASSERT_TRUE((*release)->wait_until_ready(kLong));
  ASSERT_EQ(::kill((*release)->pid(), SIGKILL), 0);
  while ((*release)->running()) {
  }
}

}  // namespace
}  // namespace sluice
