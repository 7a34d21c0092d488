// Who hears of what the medium lost: the kernel tells one, and it may be another's
// (gateway/decisions/local-media.md).
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>

#include "backend/file_fixture.h"

namespace sluice::backend {
namespace {

// A write of one block that is submitted and not over.
struct OpenWrite {
  OpenWrite(Backend& backend, Aio& aio, uint64_t offset, uint8_t flags = 0) {
    io.op = Op::kWrite;
    io.flags = flags;
    io.offset = offset;
    io.length = data.size();
    io.iov = &iov;
    io.iovcnt = 1;
    io.done = [](Io&) {};
    EXPECT_FALSE(backend.submit(io, aio));
  }
  Bytes data = Bytes(512, 1);
  iovec iov{data.data(), data.size()};
  Io io;
};

TEST_F(FileTest, AWriteInFlightDuringALostWriteFails) {
  auto backend = open_text(text(""));
  Driver driver(*backend);
  OpenWrite told(*backend, driver.aio(), 0);
  OpenWrite beside(*backend, driver.aio(), 4096);
  driver.aio().answer_with([](const AioOp& op) { return op.offset == 0 ? -EIO : 512; });
  while (driver.aio().pump()) {
  }
  EXPECT_EQ(told.io.result, -EIO);
  EXPECT_EQ(beside.io.result, -EIO) << "it may be its page that was lost";
  OpenWrite later(*backend, driver.aio(), 8192);
  while (driver.aio().pump()) {
  }
  EXPECT_EQ(later.io.result, 512);
}

// What a device says of the error is what a sync answers: blk_status_to_errno() of the kernel.
TEST_F(FileTest, AMediumErrorOrALostDeviceFailsConcurrentWrites) {
  for (const int error : {ENODATA, EREMOTEIO, ENOLINK, ETIMEDOUT, ENODEV}) {
    auto backend = open_text(text(""));
    Driver driver(*backend);
    OpenWrite told(*backend, driver.aio(), 0);
    OpenWrite beside(*backend, driver.aio(), 4096);
    driver.aio().answer_with([error](const AioOp& op) { return op.offset == 0 ? -error : 512; });
    while (driver.aio().pump()) {
    }
    EXPECT_LT(told.io.result, 0);
    EXPECT_EQ(beside.io.result, -EIO) << error;
  }
}

// A file on a filesystem with as much space as is said.
class Roomy final : public Descriptor {
 public:
  static std::unique_ptr<Roomy> open(const std::string& path, uint64_t free) {
    Setup setup;
    setup.fd = FileDescriptor(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    setup.size = 1 << 20;
    EXPECT_EQ(ftruncate(setup.fd.get(), 1 << 20), 0);
    setup.buffered = true;
    Spec spec;
    spec.path = path;
    std::unique_ptr<Roomy> file(new Roomy(spec, std::move(setup)));
    file->free_ = free;
    return file;
  }
  Result<Extent> allocation(uint64_t, uint64_t limit) const override { return Extent{limit, true}; }
  Result<void> resize(uint64_t) override { return Error{"fixed"}; }
  Result<void> check() override { return {}; }
  uint64_t free_bytes() const override { return free_; }

 private:
  using Descriptor::Descriptor;
  uint64_t free_ = 0;
};

TEST_F(FileTest, NoSpaceFailsConcurrentWritesUnlessTheFilesystemIsFull) {
  for (const bool full : {true, false}) {
    const auto backend = Roomy::open(disk_.file("b.img"), full ? 65536 : uint64_t{1} << 30);
    TestAio aio;
    OpenWrite told(*backend, aio, 0);
    OpenWrite beside(*backend, aio, 4096);
    aio.answer_with([](const AioOp& op) { return op.offset == 0 ? -ENOSPC : 512; });
    while (aio.pump()) {
    }
    EXPECT_EQ(told.io.result, -ENOSPC);
    EXPECT_EQ(beside.io.result, full ? 512 : -EIO);
  }
}

TEST_F(FileTest, AFlushThatReceivesNoSpaceAlsoFailsAConcurrentDurableWrite) {
  auto backend = open_text(text(",write-cache=on"));
  Driver driver(*backend);
  OpenWrite durable(*backend, driver.aio(), 4096, kIoFua);
  driver.aio().answer_with(
      [](const AioOp& op) { return op.kind == AioOp::Kind::kFdatasync ? -ENOSPC : 512; });
  Io flush;
  flush.op = Op::kFlush;
  flush.done = [](Io&) {};
  // First, as the kernel may answer in any order.
  TestAio first;
  first.answer_with([](const AioOp&) { return -ENOSPC; });
  ASSERT_FALSE(backend->submit(flush, first));
  ASSERT_TRUE(first.pump());
  EXPECT_EQ(flush.result, -ENOSPC);
  ASSERT_TRUE(driver.aio().pump());
  EXPECT_EQ(durable.io.result, -EIO);
}

// Where a filesystem can't zero, zeros are written for as long as there are gigabytes of them.
TEST_F(FileTest, AWriteOfZerosInProgressFailsIfAConcurrentWriteIsLost) {
  auto backend = open_text(text(""));
  Driver driver(*backend);
  driver.aio().answer_with(
      [](const AioOp& op) { return op.kind == AioOp::Kind::kFallocate ? -EOPNOTSUPP : 0; });
  Io zeros;
  zeros.op = Op::kWriteZeroes;
  zeros.length = 3 << 20;
  bool over = false;
  zeros.context = &over;
  zeros.done = [](Io& io) { *static_cast<bool*>(io.context) = true; };
  ASSERT_FALSE(backend->submit(zeros, driver.aio()));
  while (driver.aio().count(AioOp::Kind::kWritev) < 2 && driver.aio().pump()) {
  }
  TestAio other;
  other.answer_with([](const AioOp&) { return -EIO; });
  OpenWrite told(*backend, other, 4096 * 1000);
  ASSERT_TRUE(other.pump());
  while (driver.aio().pump()) {
  }
  ASSERT_TRUE(over);
  EXPECT_EQ(zeros.result, -EIO) << "the page that was lost may be one of them";
}

TEST_F(FileTest, AFailedDirectWriteDoesNotFailConcurrentWrites) {
  auto backend = open_text(text(",io=direct"));
  Driver driver(*backend);
  OpenWrite failing(*backend, driver.aio(), 0);
  OpenWrite beside(*backend, driver.aio(), 4096);
  driver.aio().answer_with([](const AioOp& op) { return op.offset == 0 ? -EIO : 512; });
  while (driver.aio().pump()) {
  }
  EXPECT_EQ(failing.io.result, -EIO);
  EXPECT_EQ(beside.io.result, 512);
  driver.aio().answer_with([](const AioOp&) { return 0; });
  EXPECT_EQ(driver.flush(), 0);
}

TEST_F(FileTest, ALossReportedToAWriteIsReportedOnceToTheNextFlush) {
  auto backend = open_text(text(",write-cache=on"));
  Driver driver(*backend);
  driver.aio().answer_with(
      [](const AioOp& op) { return op.kind == AioOp::Kind::kWritev ? -EIO : 0; });
  EXPECT_EQ(driver.write(0, Bytes(512), kIoFua), -EIO);
  EXPECT_EQ(driver.flush(), -EIO) << "what is lost may be what was cached";
  EXPECT_EQ(driver.flush(), 0);
}

}  // namespace
}  // namespace sluice::backend
