// A file that is truncated while it is served never passes zeros for the data it lost.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "backend/file_fixture.h"
#include "backend/test_driver.h"
#include "backend/test_storage.h"

namespace sluice::backend {
namespace {

using testing::HasSubstr;

constexpr uint64_t kSize = uint64_t{8} << 20;  // bytes
constexpr uint64_t kBlock = 512;               // bytes

struct Kind {
  const char* name;
  const char* directory;
  const char* options;
};

class TruncatedFileTest : public testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    const bool on_tmpfs = std::string(GetParam().directory) == "/dev/shm";
    if (ScratchDirectory::on_tmpfs(GetParam().directory) != on_tmpfs)
      GTEST_SKIP() << "no such file system";
    open_file();
    ASSERT_EQ(Driver(*backend_).write(0, pattern(0, kSize, 1)), 0);
  }
  void open_file() {
    backend_.reset();
    auto opened = open(parse_spec("file:" + path() + ",size=8MiB" + GetParam().options).value());
    ASSERT_TRUE(opened.ok()) << opened.error();
    backend_ = std::move(*opened);
  }
  std::string path() const { return scratch_.file("a.img"); }
  void truncate(uint64_t bytes) const {
    ASSERT_EQ(::truncate(path().c_str(), static_cast<off_t>(bytes)), 0);
  }
  uint64_t length() const {
    struct stat status;
    return stat(path().c_str(), &status) == 0 ? static_cast<uint64_t>(status.st_size) : 0;
  }
  int64_t read_error(uint64_t offset) {
    alignas(4096) static uint8_t data[4096];
    return Driver(*backend_).submit(Op::kRead, offset, 4096, {{data, 4096}});
  }
  void expect_latched() {
    EXPECT_EQ(read_error(0), -EIO) << "what is left of the LUN is served";
    EXPECT_EQ(read_error(4 << 20), -EIO) << "zeros pass for the lost data";
    EXPECT_EQ(Driver(*backend_).write(0, Bytes(4096)), -EIO);
    EXPECT_EQ(Driver(*backend_).flush(), -EIO);
    EXPECT_FALSE(backend_->resize(2 * kSize).ok()) << "growing hides what was lost";
    EXPECT_THAT(backend_->check().error(), HasSubstr("cut short"));
  }

  ScratchDirectory scratch_{GetParam().directory};
  std::unique_ptr<Backend> backend_;
};

TEST_P(TruncatedFileTest, AWriteToTheLastBlockFailsAndExtendsNothing) {
  ASSERT_NO_FATAL_FAILURE(truncate(1 << 20));
  EXPECT_EQ(Driver(*backend_).write(kSize - 4096, pattern(0, 4096, 2)), -EIO);
  EXPECT_EQ(length(), 1u << 20);
  expect_latched();
}

TEST_P(TruncatedFileTest, AWriteInTheLostPartFailsAndExtendsNothing) {
  ASSERT_NO_FATAL_FAILURE(truncate(1 << 20));
  EXPECT_EQ(Driver(*backend_).write(4 << 20, pattern(0, 4096, 2)), -EIO);
  EXPECT_EQ(length(), 1u << 20);
  expect_latched();
}

TEST_P(TruncatedFileTest, ALongWriteFailsAndExtendsNothing) {
  ASSERT_NO_FATAL_FAILURE(truncate(1 << 20));
  EXPECT_EQ(Driver(*backend_).write(4 << 20, pattern(0, 4 << 20, 2)), -EIO);
  EXPECT_EQ(length(), 1u << 20);
  expect_latched();
}

TEST_P(TruncatedFileTest, WritingZerosFails) {
  ASSERT_NO_FATAL_FAILURE(truncate(1 << 20));
  EXPECT_EQ(Driver(*backend_).write_zeroes(kSize - 65536, 65536), -EIO);
  EXPECT_EQ(length(), 1u << 20);
  expect_latched();
}

TEST_P(TruncatedFileTest, DiscardFails) {
  ASSERT_NO_FATAL_FAILURE(truncate(1 << 20));
  EXPECT_EQ(Driver(*backend_).discard(4 << 20, 65536), -EIO);
  expect_latched();
}

TEST_P(TruncatedFileTest, AReadThatFailsLatchesTheCondition) {
  ASSERT_NO_FATAL_FAILURE(truncate(1 << 20));
  EXPECT_EQ(read_error(4 << 20), -EIO);
  ASSERT_NO_FATAL_FAILURE(truncate(kSize));
  expect_latched();
}

TEST_P(TruncatedFileTest, ALengthThatWasRestoredBeforeAnyCommandIsDetected) {
  ASSERT_NO_FATAL_FAILURE(truncate(1 << 20));
  ASSERT_NO_FATAL_FAILURE(truncate(kSize));
  expect_latched();
}

TEST_P(TruncatedFileTest, ATruncationWithinTheLastPageIsDetectedByAWriteToTheLastBlock) {
  ASSERT_NO_FATAL_FAILURE(truncate(kSize - 3 * kBlock));
  EXPECT_EQ(Driver(*backend_).write(kSize - kBlock, pattern(0, kBlock, 2)), -EIO);
  EXPECT_EQ(length(), kSize - 3 * kBlock);
  expect_latched();
}

TEST_P(TruncatedFileTest, AWriteThatRacesWithTheTruncationFailsOnceItExtendedTheFile) {
  TestAio aio;
  Bytes data = pattern(0, 2 << 20, 2);  // too long to be tried on the submitting thread
  iovec memory = {data.data(), data.size()};
  Io io;
  io.op = Op::kWrite;
  io.offset = kSize - data.size();
  io.length = data.size();
  io.iov = &memory;
  io.iovcnt = 1;
  io.done = [](Io&) {};
  ASSERT_FALSE(backend_->submit(io, aio));
  ASSERT_NO_FATAL_FAILURE(truncate(1 << 20));
  while (aio.pump()) {
  }
  EXPECT_GT(length(), 1u << 20) << "the kernel extends the file";
  EXPECT_EQ(io.result, -EIO);
  expect_latched();
}

TEST_P(TruncatedFileTest, ATruncationOfAGrownFileIsDetectedAtItsNewEnd) {
  ASSERT_TRUE(backend_->resize(2 * kSize).ok());
  EXPECT_EQ(Driver(*backend_).write(2 * kSize - 4096, pattern(0, 4096, 1)), 0);
  ASSERT_NO_FATAL_FAILURE(truncate(2 * kSize - 65536));
  ASSERT_NO_FATAL_FAILURE(truncate(2 * kSize));
  EXPECT_EQ(read_error(0), -EIO);
  EXPECT_FALSE(backend_->check().ok());
}

TEST_P(TruncatedFileTest, UnmapAndWritesAtTheEndAreNotReportedAsTruncation) {
  Driver driver(*backend_);
  ASSERT_EQ(driver.discard(0, kSize), 0);
  EXPECT_EQ(driver.write(kSize - kBlock, pattern(0, kBlock, 1)), 0);
  ASSERT_EQ(driver.write_zeroes(kSize - 65536, 65536), 0);
  ASSERT_EQ(driver.write_zeroes(kSize - 65536, 65536, kIoMayUnmap), 0);
  ASSERT_EQ(driver.flush(), 0);
  EXPECT_EQ(driver.read(0, kSize), Bytes(kSize));
  EXPECT_TRUE(backend_->check().ok());
  ASSERT_NO_FATAL_FAILURE(open_file());
  EXPECT_EQ(Driver(*backend_).write(0, pattern(0, kSize, 3)), 0);
  EXPECT_EQ(Driver(*backend_).read(0, kSize), pattern(0, kSize, 3));
}

INSTANTIATE_TEST_SUITE_P(Kinds, TruncatedFileTest,
                         testing::Values(Kind{"Buffered", "/var/tmp", ""},
                                         Kind{"BufferedWriteBack", "/var/tmp", ",write-cache=on"},
                                         Kind{"Direct", "/var/tmp", ",io=direct"},
                                         Kind{"Tmpfs", "/dev/shm", ""}),
                         [](const auto& kind) { return std::string(kind.param.name); });

}  // namespace
}  // namespace sluice::backend
