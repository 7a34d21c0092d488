// Files on tmpfs through the whole backend: what must stay true although they are mapped.
#include "backend/mapped_window.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <atomic>
#include <cerrno>
#include <thread>

#include "backend/spec.h"
#include "backend/test_driver.h"
#include "backend/test_storage.h"

namespace sluice::backend {
namespace {

constexpr uint64_t kSize = uint64_t{4} << 20;
constexpr uint64_t kPage = 4096;

class MappedWindowTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!ScratchDirectory::on_tmpfs("/dev/shm")) GTEST_SKIP() << "/dev/shm is no tmpfs";
    reopen("");
  }
  void reopen(const std::string& options) {
    backend_.reset();
    auto opened = open(parse_spec("file:" + path() + ",size=4MiB" + options).value());
    ASSERT_TRUE(opened.ok()) << opened.error();
    backend_ = std::move(*opened);
  }
  std::string path() const { return scratch_.file("a.img"); }
  // What someone else does to the file.
  void truncate(uint64_t size) const {
    ASSERT_EQ(::truncate(path().c_str(), static_cast<off_t>(size)), 0);
  }
  void punch(uint64_t offset, uint64_t length) const {
    const int fd = ::open(path().c_str(), O_RDWR | O_CLOEXEC);
    ASSERT_EQ(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                        static_cast<off_t>(length)),
              0);
    close(fd);
  }
  uint64_t allocated_pages() const {
    struct stat status = {};
    EXPECT_EQ(stat(path().c_str(), &status), 0);
    return static_cast<uint64_t>(status.st_blocks) * 512 / kPage;
  }
  int64_t read_error(Driver& driver, uint64_t offset) const {
    Bytes data(kPage);
    return driver.submit(Op::kRead, offset, kPage, {{data.data(), data.size()}});
  }

  ScratchDirectory scratch_{"/dev/shm"};
  std::unique_ptr<Backend> backend_;
};

TEST_F(MappedWindowTest, HolesStayHolesHoweverTheyAreRead) {
  Driver driver(*backend_);
  ASSERT_EQ(driver.write(kPage, pattern(kPage, kPage, 1)), 0);
  EXPECT_EQ(allocated_pages(), 1u);
  for (const char* options : {"", ",read-only=on"}) {
    ASSERT_NO_FATAL_FAILURE(reopen(options));
    Driver again(*backend_);
    for (uint64_t offset : {uint64_t{0}, 2 * kPage, kSize - kPage}) {
      EXPECT_EQ(backend_->borrow(offset, kPage), nullptr);
      EXPECT_EQ(again.read(offset, kPage), Bytes(kPage));
    }
    EXPECT_EQ(backend_->borrow(0, kSize), nullptr);
    EXPECT_EQ(backend_->borrow(0, 2 * kPage), nullptr) << "a page of it is a hole";
    EXPECT_EQ(again.read(0, kSize).size(), kSize);
    EXPECT_NE(backend_->borrow(kPage, kPage), nullptr);
    EXPECT_EQ(allocated_pages(), 1u);
  }
}

TEST_F(MappedWindowTest, WhatWasThereBeforeIsLent) {
  const Bytes data = pattern(65536, 1 << 20, 1);
  ASSERT_EQ(Driver(*backend_).write(65536, data), 0);
  for (const char* options : {"", ",read-only=on", ",io=direct"}) {
    ASSERT_NO_FATAL_FAILURE(reopen(options));
    const uint8_t* lent = backend_->borrow(65536, data.size());
    ASSERT_NE(lent, nullptr);
    EXPECT_EQ(Bytes(lent, lent + data.size()), data);
    EXPECT_EQ(Driver(*backend_).read(65536, data.size()), data);
  }
}

TEST_F(MappedWindowTest, AHoleOnceWrittenIsLentHoweverItWasWritten) {
  Driver driver(*backend_);
  EXPECT_EQ(backend_->borrow(0, kPage), nullptr);
  ASSERT_EQ(driver.write(0, pattern(0, 512, 1)), 0);
  EXPECT_NE(backend_->borrow(0, kPage), nullptr) << "pages are allocated whole";
  ASSERT_EQ(driver.write_zeroes(kPage, kPage), 0);
  EXPECT_NE(backend_->borrow(0, 2 * kPage), nullptr);
  // Too long to be copied inline.
  ASSERT_EQ(driver.write(kPage, pattern(kPage, 2 << 20, 2)), 0);
  EXPECT_GT(driver.aio().count(AioOp::Kind::kWritev), 0u);
  const uint8_t* lent = backend_->borrow(kPage, 2 << 20);
  ASSERT_NE(lent, nullptr);
  EXPECT_EQ(Bytes(lent, lent + (2 << 20)), pattern(kPage, 2 << 20, 2));
}

TEST_F(MappedWindowTest, DiscardedPagesAreNotLentAndTheirNeighboursAre) {
  Driver driver(*backend_);
  for (bool discard : {true, false}) {
    ASSERT_EQ(driver.write(0, pattern(0, 1 << 20, 1)), 0);
    ASSERT_NE(backend_->borrow(0, 1 << 20), nullptr);
    // Begins and ends within pages and within words of the bitmap.
    const uint64_t from = 5 * kPage + 512;
    const uint64_t length = 99 * kPage;
    ASSERT_EQ(
        discard ? driver.discard(from, length) : driver.write_zeroes(from, length, kIoMayUnmap), 0);
    EXPECT_EQ(allocated_pages(), 256u - 98u);
    EXPECT_NE(backend_->borrow(0, 6 * kPage), nullptr) << "zeroed in part, not deallocated";
    for (uint64_t page = 6; page < 104; ++page) {
      EXPECT_EQ(backend_->borrow(page * kPage, 512), nullptr) << page;
    }
    EXPECT_NE(backend_->borrow(104 * kPage, (256 - 104) * kPage), nullptr);
    EXPECT_EQ(driver.read(from, length), Bytes(length));
    EXPECT_EQ(allocated_pages(), 256u - 98u);
  }
}

TEST_F(MappedWindowTest, ALentPageOfADiscardedRangeReadsZerosAndHarmsNothing) {
  Driver driver(*backend_);
  ASSERT_EQ(driver.write(0, pattern(0, kPage, 1)), 0);
  const uint8_t* lent = backend_->borrow(0, kPage);
  ASSERT_NE(lent, nullptr);
  ASSERT_EQ(driver.discard(0, kPage), 0);
  EXPECT_EQ(Bytes(lent, lent + kPage), Bytes(kPage));
  EXPECT_EQ(driver.read(0, kPage), Bytes(kPage));
  ASSERT_EQ(driver.write(0, pattern(0, kPage, 2)), 0);
  EXPECT_EQ(Bytes(lent, lent + kPage), pattern(0, kPage, 2));
}

TEST_F(MappedWindowTest, ATruncatedFileFailsWritesAndReadsForGood) {
  for (bool write_first : {true, false}) {
    Driver driver(*backend_);
    ASSERT_EQ(driver.write(0, pattern(0, 1 << 20, 1)), 0);
    ASSERT_NE(backend_->borrow(0, 1 << 20), nullptr);
    truncate(65536);
    EXPECT_EQ(write_first
                  ? driver.submit(Op::kWrite, 65536, kPage, {{pattern(0, kPage, 2).data(), kPage}})
                  : read_error(driver, 65536),
              -EIO);
    EXPECT_EQ(driver.write(0, Bytes(kPage)), -EIO) << "no longer a LUN, only its beginning";
    EXPECT_EQ(driver.write(kSize - kPage, Bytes(kPage)), -EIO) << "gives the length back";
    EXPECT_EQ(read_error(driver, 0), -EIO);
    EXPECT_EQ(backend_->borrow(0, kPage), nullptr);
    truncate(kSize);
    EXPECT_FALSE(backend_->check().ok()) << "zeros passed for the lost data";
    ASSERT_NO_FATAL_FAILURE(reopen(""));
  }
}

TEST_F(MappedWindowTest, ACheckThatFindsAFileTruncatedStopsItBeingTouched) {
  ASSERT_EQ(Driver(*backend_).write(0, pattern(0, 1 << 20, 1)), 0);
  truncate(65536);
  EXPECT_FALSE(backend_->check().ok());
  EXPECT_EQ(backend_->borrow(0, kPage), nullptr);
  EXPECT_EQ(Driver(*backend_).write(1 << 20, Bytes(kPage)), -EIO);
}

TEST_F(MappedWindowTest, SendingLentMemoryOfATruncatedFileIsAnError) {
  ASSERT_EQ(Driver(*backend_).write(0, pattern(0, 1 << 20, 1)), 0);
  const uint8_t* lent = backend_->borrow(65536, kPage);
  ASSERT_NE(lent, nullptr);
  truncate(0);
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  EXPECT_EQ(send(ends[0], lent, kPage, 0), -1);
  EXPECT_EQ(errno, EFAULT);
  close(ends[0]);
  close(ends[1]);
}

TEST_F(MappedWindowTest, GrowingKeepsLentMemoryInPlaceAndLendsWhatIsNew) {
  Driver driver(*backend_);
  ASSERT_EQ(driver.write(kSize - kPage, pattern(0, kPage, 1)), 0);
  const uint8_t* lent = backend_->borrow(kSize - kPage, kPage);
  ASSERT_NE(lent, nullptr);
  EXPECT_EQ(backend_->borrow(kSize - kPage, 2 * kPage), nullptr);
  ASSERT_TRUE(backend_->resize(2 * kSize).ok());
  ASSERT_EQ(driver.write(kSize, pattern(kSize, kPage, 2)), 0);
  EXPECT_EQ(backend_->borrow(kSize - kPage, 2 * kPage), lent);
  EXPECT_EQ(Bytes(lent, lent + kPage), pattern(0, kPage, 1));
  EXPECT_EQ(Bytes(lent + kPage, lent + 2 * kPage), pattern(kSize, kPage, 2));
}

TEST_F(MappedWindowTest, GrowingBeyondTheMappingWorksThroughTheDescriptor) {
  const uint64_t large = uint64_t{1} << 40;
  ASSERT_TRUE(backend_->resize(large).ok());
  Driver driver(*backend_);
  const Bytes data = pattern(large - 65536, 65536, 3);
  ASSERT_EQ(driver.write(large - 65536, data), 0);
  EXPECT_EQ(backend_->borrow(large - 65536, 65536), nullptr);
  EXPECT_EQ(driver.read(large - 65536, 65536), data);
  ASSERT_EQ(driver.discard(large - 65536, 65536), 0);
  ASSERT_EQ(driver.discard(0, large), 0);
  EXPECT_EQ(allocated_pages(), 0u);
}

TEST_F(MappedWindowTest, AHolePunchedBySomeoneElseInAFullFilesystemIsNoSpaceNotACrash) {
  backend_.reset();
  TinyFilesystem tiny(scratch_.directory(), "256k");
  if (!tiny.skip_reason().empty()) GTEST_SKIP() << tiny.skip_reason();
  ASSERT_NO_FATAL_FAILURE(reopen(""));
  Driver driver(*backend_);
  ASSERT_EQ(driver.write(0, pattern(0, 65536, 1)), 0);
  punch(0, 65536);
  tiny.detach();
  // Fills it from the end.
  for (uint64_t at = kSize - kPage; driver.write(at, Bytes(kPage)) == 0; at -= kPage) {
  }
  EXPECT_EQ(driver.write(0, pattern(0, 65536, 2)), -ENOSPC);
  EXPECT_EQ(driver.read(0, kPage), Bytes(kPage));
}

TEST_F(MappedWindowTest, WithoutAddressSpaceAFileWorksUnmapped) {
  backend_.reset();
  auto limited = [&] {
    const rlimit none = {uint64_t{64} << 20, uint64_t{64} << 20};
    if (setrlimit(RLIMIT_AS, &none) != 0) _exit(1);
    const int fd = ::open(path().c_str(), O_RDWR | O_CLOEXEC);
    _exit(MappedWindow::open(fd, uint64_t{1} << 36, false) == nullptr ? 42 : 2);
  };
  EXPECT_EXIT(limited(), testing::ExitedWithCode(42), "");
}

// Two threads at pages of the same words (of 32 pages), never at the same page.
TEST_F(MappedWindowTest, NeighboursMayDiscardAndWriteAtOnce) {
  constexpr uint64_t kPages = 256;
  for (uint8_t round = 0; round < 20; ++round) {
    Driver driver(*backend_);
    ASSERT_EQ(driver.write(0, pattern(0, kPages * kPage, round)), 0);
    std::thread discards([&] {
      Driver other(*backend_);
      for (uint64_t page = 0; page < kPages; page += 2) {
        ASSERT_EQ(other.discard(page * kPage, kPage), 0);
        ASSERT_EQ(backend_->borrow(page * kPage, kPage), nullptr) << page;
      }
    });
    for (uint64_t page = 1; page < kPages; page += 2) {
      const uint64_t offset = page * kPage;
      ASSERT_NE(backend_->borrow(offset, kPage), nullptr) << page;
      ASSERT_EQ(driver.read(offset, kPage), pattern(offset, kPage, round));
      ASSERT_EQ(driver.write(offset, pattern(offset, kPage, 99)), 0);
    }
    discards.join();
    ASSERT_EQ(allocated_pages(), kPages / 2);
  }
}

// The lookup sees a page that is gone by the time its result is taken down.
TEST_F(MappedWindowTest, ALookupDoesNotBringBackWhatANeighbourDiscards) {
  constexpr uint64_t kWord = 32 * kPage;
  for (uint8_t round = 0; round < 40; ++round) {
    ASSERT_EQ(Driver(*backend_).write(0, pattern(0, kSize, round)), 0);
    // Forgets what it knew.
    ASSERT_NO_FATAL_FAILURE(reopen(""));
    std::atomic<uint64_t> arrived = 0;
    auto meet = [&arrived](uint64_t word) {
      arrived.fetch_add(1);
      while (arrived.load() < 2 * (word + 1)) std::this_thread::yield();
    };
    std::thread discards([&] {
      Driver other(*backend_);
      for (uint64_t word = 0; word < kSize / kWord; ++word) {
        meet(word);
        EXPECT_EQ(other.discard(word * kWord, kPage), 0);
      }
    });
    for (uint64_t word = 0; word < kSize / kWord; ++word) {
      meet(word);
      EXPECT_NE(backend_->borrow(word * kWord + kPage, kPage), nullptr);
    }
    discards.join();
    for (uint64_t word = 0; word < kSize / kWord; ++word) {
      ASSERT_EQ(backend_->borrow(word * kWord, kPage), nullptr) << word;
    }
  }
}

}  // namespace
}  // namespace sluice::backend
