#include "backend/guarded_copy.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
#include <thread>
#include <vector>

#include "backend/test_driver.h"

namespace sluice::backend {
namespace {

constexpr uint64_t kSize = 65536;

// A mapped file that can lose its pages.
class GuardedCopyTest : public testing::Test {
 protected:
  void SetUp() override {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    file_ = memfd_create("guarded", MFD_CLOEXEC);
    ASSERT_EQ(ftruncate(file_, kSize), 0);
    void* mapping = mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
    ASSERT_NE(mapping, MAP_FAILED);
    mapped_ = static_cast<uint8_t*>(mapping);
  }
  void TearDown() override {
    munmap(mapped_, kSize);
    close(file_);
  }
  void truncate(uint64_t size) const { ASSERT_EQ(ftruncate(file_, static_cast<off_t>(size)), 0); }
  // Not optimised away, and no copy of ours.
  void touch() const { *static_cast<volatile uint8_t*>(mapped_) = 1; }

  int file_ = -1;
  uint8_t* mapped_ = nullptr;
};

TEST_F(GuardedCopyTest, CopiesEveryShapeOfIovecBothWays) {
  install_copy_guard();
  Bytes from = pattern(0, 8192, 1);
  Bytes to(8192);
  iovec in[] = {{from.data(), 1}, {from.data() + 1, 8000}, {from.data() + 8001, 191}};
  iovec out[] = {{to.data(), 48}, {to.data() + 48, 8144}};
  ASSERT_TRUE(copy_into_mapping(mapped_ + 512, 8192, in, 3));
  ASSERT_TRUE(copy_from_mapping(mapped_ + 512, 8192, out, 2));
  EXPECT_EQ(to, from);
}

TEST_F(GuardedCopyTest, ALostPageFailsTheCopyAgainAndAgainAndOthersGoOn) {
  install_copy_guard();
  Bytes data(16384, 7);
  iovec all = {data.data(), data.size()};
  truncate(8192);
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(copy_into_mapping(mapped_, data.size(), &all, 1));
    EXPECT_FALSE(copy_from_mapping(mapped_, data.size(), &all, 1));
    iovec kept = {data.data(), 8192};
    EXPECT_TRUE(copy_into_mapping(mapped_, 8192, &kept, 1));
  }
}

TEST_F(GuardedCopyTest, EveryThreadHasAGuardOfItsOwn) {
  install_copy_guard();
  truncate(8192);
  auto work = [&](uint64_t offset, bool succeeds) {
    Bytes data(4096, 7);
    iovec all = {data.data(), data.size()};
    // As a thread does that leaves signals to a signalfd.
    sigset_t everything;
    sigfillset(&everything);
    pthread_sigmask(SIG_SETMASK, &everything, nullptr);
    for (int i = 0; i < 200; ++i) {
      ASSERT_EQ(copy_into_mapping(mapped_ + offset, data.size(), &all, 1), succeeds);
    }
  };
  std::thread one(work, 0, true);
  std::thread two(work, 16384, false);
  std::thread three(work, 32768, false);
  one.join();
  two.join();
  three.join();
}

TEST_F(GuardedCopyTest, AFaultThatIsNoneOfOursStillEndsTheProcess) {
  install_copy_guard();
  truncate(0);
  EXPECT_DEATH(touch(), "");
  EXPECT_DEATH(raise(SIGBUS), "");
}

TEST_F(GuardedCopyTest, AFaultThatIsNoneOfOursReachesTheEarlierHandler) {
  auto fault = [&] {
    std::signal(SIGBUS, [](int) { _exit(42); });
    install_copy_guard();
    truncate(0);
    touch();
  };
  EXPECT_EXIT(fault(), testing::ExitedWithCode(42), "");
}

}  // namespace
}  // namespace sluice::backend
