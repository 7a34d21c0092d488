#include "net/ring.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <string>

#include "base/limits.h"
#include "net/reactor.h"

namespace sluice::net {
namespace {

TEST(Submission, IsRetriedOnlyAfterTransientErrors) {
  EXPECT_EQ(submission_of(0), Submission::kDone);
  EXPECT_EQ(submission_of(3), Submission::kDone);
  for (const int error : {EINTR, EAGAIN, EBUSY, ENOMEM}) {
    EXPECT_EQ(submission_of(-error), Submission::kRetry) << error;
  }
  for (const int error : {EBADF, EBADFD, EFAULT, EINVAL, ENXIO, EOPNOTSUPP, EEXIST}) {
    EXPECT_EQ(submission_of(-error), Submission::kFailed) << error;
  }
}

// Closes every io_uring of this process, as a fault of the program might.
void close_rings() {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    if (std::filesystem::read_symlink(entry.path(), gone) == "anon_inode:[io_uring]") {
      ::close(std::stoi(entry.path().filename()));
    }
  }
}

TEST(ReactorDeathTest, AReactorWhoseRingAcceptsNoEntriesEndsTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  io_uring probe{};
  if (auto features = open_ring(&probe, 8); !features) GTEST_SKIP() << features.error();
  io_uring_queue_exit(&probe);
  const auto lose_the_ring = [] {
    Reactor::Setup setup;
    setup.memory = limits::kMinReactorMemory;
    iscsi::Gateway gateway;
    setup.gateway = &gateway;
    Reactor reactor(setup);
    if (!reactor.start()) ::_exit(1);
    close_rings();
    reactor.post([] {});
    reactor.join();
  };
  EXPECT_EXIT(lose_the_ring(), testing::KilledBySignal(SIGKILL), "io_uring takes no more entries");
}

}  // namespace
}  // namespace sluice::net
