#include "backend/block.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "backend/spec.h"
#include "backend/test_driver.h"
#include "backend/test_storage.h"

namespace sluice::backend {
namespace {

using testing::HasSubstr;

constexpr uint64_t kSize = 8 << 20;  // bytes

class BlockTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!loop_.skip_reason().empty()) GTEST_SKIP() << loop_.skip_reason();
  }
  static Result<std::unique_ptr<Backend>> try_open(const std::string& text) {
    return open(parse_spec(text).value());
  }
  std::unique_ptr<Backend> open_loop(const std::string& options) {
    auto opened = try_open("block:" + loop_.path() + options);
    EXPECT_TRUE(opened.ok()) << opened.error();
    return opened ? std::move(*opened) : nullptr;
  }

  ScratchDirectory scratch_{"/var/tmp"};
  LoopDevice loop_{scratch_.file("backing.img"), kSize};
};

TEST_F(BlockTest, WritesAreDurableWhileTheCacheIsOff) {
  auto backend = open_loop("");
  ASSERT_NE(backend, nullptr);
  Driver driver(*backend);
  ASSERT_EQ(driver.write(0, Bytes(4096)), 0);
  EXPECT_EQ(driver.aio().records().back().rw_flags, RWF_DSYNC);
  ASSERT_EQ(driver.discard(0, 1 << 20), 0);
  EXPECT_EQ(driver.aio().records().back().kind, AioOp::Kind::kFdatasync);
}

TEST_F(BlockTest, AdoptsTheNewSizeOfTheDevice) {
  auto backend = open_loop("");
  ASSERT_NE(backend, nullptr);
  EXPECT_EQ(backend->size_bytes(), kSize);
  ASSERT_TRUE(loop_.set_size(2 * kSize));
  EXPECT_FALSE(backend->resize(3 * kSize).ok());
  EXPECT_EQ(backend->size_bytes(), kSize);
  EXPECT_TRUE(backend->resize(0).ok());
  EXPECT_EQ(backend->size_bytes(), 2 * kSize);
  Driver driver(*backend);
  EXPECT_EQ(driver.write(2 * kSize - 4096, Bytes(4096)), 0);
}

TEST_F(BlockTest, TheReservedStartOfTheDeviceIsNotAccessible) {
  constexpr uint64_t kReserved = 1 << 20;
  const Bytes label(kReserved, 0xa5);
  std::fstream raw(loop_.path(), std::ios::in | std::ios::out | std::ios::binary);
  raw.write(reinterpret_cast<const char*>(label.data()), kReserved).flush();
  Spec spec;
  spec.kind = "block";
  spec.path = loop_.path();
  spec.size = kSize / 2;
  auto opened = Block::open(spec, kReserved);
  ASSERT_TRUE(opened.ok()) << opened.error();
  Driver driver(**opened);
  ASSERT_EQ(driver.write(0, Bytes(8192, 7)), 0);
  ASSERT_EQ(driver.discard(4096, kSize / 2 - 4096), 0);
  EXPECT_LT(driver.write(kSize / 2, Bytes(4096, 7)), 0) << "beyond what was asked for";
  EXPECT_FALSE((*opened)->resize(kSize).ok()) << "the device has less";
  EXPECT_FALSE((*opened)->resize(kSize / 4).ok());
  EXPECT_TRUE((*opened)->resize(kSize - kReserved).ok());
  EXPECT_EQ(driver.write(kSize - kReserved - 4096, Bytes(4096, 9)), 0);
  opened->reset();
  Bytes all(kSize);
  std::ifstream(loop_.path(), std::ios::binary).read(reinterpret_cast<char*>(all.data()), kSize);
  EXPECT_TRUE(std::equal(label.begin(), label.end(), all.begin()));
  EXPECT_EQ(all[kReserved], 7);
  EXPECT_EQ(all[kSize - 1], 9);
}

TEST_F(BlockTest, AShrunkDeviceFailsUntilItIsReopenedEvenIfItGrowsAgain) {
  auto backend = open_loop("");
  ASSERT_NE(backend, nullptr);
  ASSERT_TRUE(loop_.set_size(kSize / 2));
  EXPECT_THAT(backend->check().error(), HasSubstr("shrank"));
  EXPECT_FALSE(backend->resize(0).ok());
  Driver driver(*backend);
  Bytes data(4096);
  EXPECT_LT(driver.submit(Op::kRead, kSize - 4096, 4096, {{data.data(), 4096}}), 0);
  EXPECT_EQ(driver.write(kSize - 4096, data), -EIO) << "not a lack of space";
  ASSERT_TRUE(loop_.set_size(kSize));
  EXPECT_FALSE(backend->check().ok()) << "what returned may be other data";
  EXPECT_EQ(driver.write(0, data), -EIO);
  backend.reset();
  EXPECT_TRUE(open_loop("")->check().ok());
}

TEST_F(BlockTest, AReadThatFindsTheDeviceShrunkLatchesTheCondition) {
  auto backend = open_loop("");
  ASSERT_NE(backend, nullptr);
  ASSERT_TRUE(loop_.set_size(kSize / 2));
  Driver driver(*backend);
  Bytes data(4096);
  EXPECT_EQ(driver.submit(Op::kRead, kSize - 4096, 4096, {{data.data(), 4096}}), -EIO);
  ASSERT_TRUE(loop_.set_size(kSize));
  EXPECT_EQ(driver.submit(Op::kRead, kSize - 4096, 4096, {{data.data(), 4096}}), -EIO);
  EXPECT_THAT(backend->check().error(), HasSubstr("shrank"));
}

TEST_F(BlockTest, DiscardReachesTheDevice) {
  auto backend = open_loop("");
  ASSERT_NE(backend, nullptr);
  if (backend->info().discard_granularity == 0) GTEST_SKIP() << "no discard on this loop device";
  Driver driver(*backend);
  ASSERT_EQ(driver.write(0, pattern(0, 1 << 20, 1)), 0);
  struct stat status;
  ASSERT_EQ(stat(scratch_.file("backing.img").c_str(), &status), 0);
  ASSERT_EQ(driver.flush(), 0);
  ASSERT_EQ(stat(scratch_.file("backing.img").c_str(), &status), 0);
  EXPECT_GE(status.st_blocks, (1 << 20) / 512);
  ASSERT_EQ(driver.discard(0, 1 << 20), 0);
  ASSERT_EQ(stat(scratch_.file("backing.img").c_str(), &status), 0);
  EXPECT_LT(status.st_blocks, (1 << 20) / 512);
}

// Discarding, flushing and zeroing wait for the device.
TEST_F(BlockTest, OnlyTransfersThatDoNotWaitUseTheRing) {
  auto backend = open_loop("");
  ASSERT_NE(backend, nullptr);
  Driver driver(*backend);
  ASSERT_EQ(driver.write(0, pattern(0, 1 << 20, 1)), 0);
  EXPECT_EQ(driver.read(0, 1 << 20), pattern(0, 1 << 20, 1));
  ASSERT_EQ(driver.flush(), 0);
  ASSERT_EQ(driver.write_zeroes(0, 1 << 20), 0);
  if (backend->info().discard_granularity != 0) {
    ASSERT_EQ(driver.discard(0, 1 << 20), 0);
  }
  for (const TestAio::Record& record : driver.aio().records()) {
    EXPECT_NE(record.may_block, record.nowait) << static_cast<int>(record.kind);
  }
}

TEST_F(BlockTest, ATransferThatTheRingRefusesIsRepeatedByTheThreadsOfTheDevice) {
  auto backend = open_loop("");
  ASSERT_NE(backend, nullptr);
  Driver driver(*backend);
  driver.aio().answer_with(
      [](const AioOp& op) { return (op.rw_flags & RWF_NOWAIT) != 0 ? -EAGAIN : 0; });
  ASSERT_EQ(driver.write(0, pattern(0, 4096, 1)), 0);
  EXPECT_EQ(driver.read(0, 4096), pattern(0, 4096, 1));
  ASSERT_EQ(driver.aio().records().size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(driver.aio().records()[i].nowait, i % 2 == 0);
    EXPECT_EQ(driver.aio().records()[i].may_block, i % 2 == 1);
  }
  EXPECT_EQ(driver.aio().records()[1].rw_flags, RWF_DSYNC) << "durable, as before";
}

// The kernel answers EOPNOTSUPP for a file that has no RWF_NOWAIT; that is not the refusal of
// RWF_DSYNC.
TEST_F(BlockTest, ADeviceWithoutNowaitTransfersOnItsThreadsFromThenOn) {
  auto backend = open_loop("");
  ASSERT_NE(backend, nullptr);
  Driver driver(*backend);
  driver.aio().answer_with(
      [](const AioOp& op) { return (op.rw_flags & RWF_NOWAIT) != 0 ? -EOPNOTSUPP : 0; });
  ASSERT_EQ(driver.write(0, pattern(0, 4096, 1)), 0);
  ASSERT_EQ(driver.write(0, pattern(0, 4096, 2)), 0);
  ASSERT_EQ(driver.aio().records().size(), 3u);
  EXPECT_TRUE(driver.aio().records()[0].nowait);
  for (size_t i : {1, 2}) {
    EXPECT_TRUE(driver.aio().records()[i].may_block);
    EXPECT_EQ(driver.aio().records()[i].rw_flags, RWF_DSYNC);
  }
}

TEST_F(BlockTest, RefusalsIncludeTheFix) {
  EXPECT_THAT(try_open("block:" + scratch_.file("backing.img")).error(), HasSubstr("use file:"));
  EXPECT_THAT(try_open("file:" + loop_.path()).error(), HasSubstr("use block:"));
  EXPECT_THAT(try_open("block:/dev/there-is-no-such").error(), HasSubstr("existing"));
  EXPECT_THAT(try_open("block:" + loop_.path() + ",size=1GiB").error(), HasSubstr("8MiB"));
  EXPECT_EQ(open_loop(",size=1MiB")->size_bytes(), 1u << 20);
}

TEST_F(BlockTest, ABlockSizeSmallerThanThatOfTheDeviceIsRefused) {
  LoopDevice large(scratch_.file("large.img"), kSize, 4096);
  if (!large.skip_reason().empty()) GTEST_SKIP() << large.skip_reason();
  EXPECT_THAT(try_open("block:" + large.path()).error(), HasSubstr("block-size=4096"));
  EXPECT_TRUE(try_open("block:" + large.path() + ",block-size=4096").ok());
}

TEST_F(BlockTest, AWriteCacheCannotBeEnabledOnADriveWithoutOne) {
  struct stat status;
  ASSERT_EQ(stat(loop_.path().c_str(), &status), 0);
  const bool cached = read_block_queue(status.st_rdev).value().write_back;
  auto backend = open_loop(",write-cache=on");
  ASSERT_NE(backend, nullptr);
  EXPECT_EQ(backend->write_cache(), cached);
  EXPECT_EQ(backend->set_write_cache(true).ok(), cached);
  EXPECT_TRUE(backend->set_write_cache(false).ok());
  EXPECT_FALSE(backend->write_cache());
}

}  // namespace
}  // namespace sluice::backend
