#include "backend/guarded_word.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
#include <thread>

namespace sluice::backend {
namespace {

constexpr uint64_t kSize = 65536;

// A mapped file that can lose its pages.
class GuardedWordTest : public testing::Test {
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
  uint64_t* word(uint64_t offset) const {
    return reinterpret_cast<uint64_t*>(mapped_ + offset);  // NOLINT: the mapping is aligned
  }
  // Not optimised away, and no access of ours.
  void touch() const { *static_cast<volatile uint8_t*>(mapped_) = 1; }

  int file_ = -1;
  uint8_t* mapped_ = nullptr;
};

TEST_F(GuardedWordTest, AStoredWordIsLoaded) {
  install_word_guard();
  ASSERT_TRUE(store_guarded(word(512), 0x0123456789abcdef));
  EXPECT_EQ(load_guarded(word(512)), 0x0123456789abcdef);
  EXPECT_EQ(*word(512), 0x0123456789abcdef);
  EXPECT_EQ(load_guarded(word(520)), 0u);
}

TEST_F(GuardedWordTest, ALostPageFailsTheAccessAgainAndAgainAndOthersGoOn) {
  install_word_guard();
  truncate(8192);
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(store_guarded(word(8192), 7));
    EXPECT_FALSE(load_guarded(word(8192)).has_value());
    EXPECT_TRUE(store_guarded(word(8184), 7));
    EXPECT_EQ(load_guarded(word(8184)), 7u);
  }
}

TEST_F(GuardedWordTest, EveryThreadHasItsOwnGuard) {
  install_word_guard();
  truncate(8192);
  auto work = [&](uint64_t offset, bool succeeds) {
    // As a thread does that leaves signals to a signalfd.
    sigset_t everything;
    sigfillset(&everything);
    pthread_sigmask(SIG_SETMASK, &everything, nullptr);
    for (int i = 0; i < 200; ++i) ASSERT_EQ(store_guarded(word(offset), 7), succeeds);
  };
  std::thread one(work, 0, true);
  std::thread two(work, 16384, false);
  std::thread three(work, 32768, false);
  one.join();
  two.join();
  three.join();
}

TEST_F(GuardedWordTest, AFaultOutsideAGuardedCopyStillEndsTheProcess) {
  install_word_guard();
  truncate(0);
  EXPECT_DEATH(touch(), "");
  EXPECT_DEATH(raise(SIGBUS), "");
}

TEST_F(GuardedWordTest, AFaultOutsideAGuardedCopyReachesTheEarlierHandler) {
  auto fault = [&] {
    std::signal(SIGBUS, [](int) { _exit(42); });
    install_word_guard();
    truncate(0);
    touch();
  };
  EXPECT_EXIT(fault(), testing::ExitedWithCode(42), "");
}

}  // namespace
}  // namespace sluice::backend
