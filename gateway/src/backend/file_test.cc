#include "backend/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <csignal>
#include <fstream>

#include "backend/file_fixture.h"
#include "backend/spec.h"
#include "backend/test_driver.h"
#include "backend/test_storage.h"

namespace sluice::backend {
namespace {

using testing::HasSubstr;

TEST_F(FileTest, WritesAreDurableWhileTheCacheIsOff) {
  for (const char* io : {",io=buffered", ",io=direct"}) {
    auto backend = open_text(text(io));
    Driver driver(*backend);
    ASSERT_EQ(driver.write(0, Bytes(4096)), 0);
    EXPECT_EQ(only_rw_flags(driver.aio()), RWF_DSYNC);
    for (bool unmap : {true, false}) {
      driver.aio().forget_records();
      ASSERT_EQ(driver.write_zeroes(0, 4096, unmap ? kIoMayUnmap : 0), 0);
      EXPECT_EQ(driver.aio().records().back().kind, AioOp::Kind::kFdatasync);
    }
    ASSERT_EQ(driver.discard(0, 4096), 0);
    EXPECT_EQ(driver.aio().records().back().kind, AioOp::Kind::kFdatasync);
  }
}

// A file system may wait for its device in each of these calls, so none of them runs in the ring of
// a reactor.
TEST_F(FileTest, NoOperationOnAFileWaitsInTheRing) {
  for (const char* io : {",io=buffered", ",io=buffered,write-cache=on", ",io=direct"}) {
    auto backend = open_text(text(io));
    Driver driver(*backend);
    ASSERT_EQ(driver.write(0, pattern(0, 65536, 1)), 0);
    EXPECT_EQ(driver.read(0, 65536), pattern(0, 65536, 1));
    ASSERT_EQ(driver.flush(), 0);
    ASSERT_EQ(driver.write_zeroes(0, 4096), 0);
    ASSERT_EQ(driver.write_zeroes(0, 4096, kIoMayUnmap), 0);
    ASSERT_EQ(driver.discard(0, 4096), 0);
    ASSERT_FALSE(driver.aio().records().empty());
    for (const TestAio::Record& record : driver.aio().records()) {
      EXPECT_NE(record.may_block, record.nowait) << io << ' ' << static_cast<int>(record.kind);
    }
  }
}

// lseek and statvfs may wait for the device, too.
TEST_F(FileTest, AQueryOfAFileRunsOnTheThreadsOfItsDevice) {
  auto backend = open_text(text(""));
  Driver driver(*backend);
  struct Seen {
    const Backend* backend;
    uint64_t free = 0;
    int done = 0;
  } seen{backend.get()};
  AioOp op;
  op.context = &seen;
  op.call = [](AioOp& self) {
    auto& mine = *static_cast<Seen*>(self.context);
    mine.free = mine.backend->free_bytes();
  };
  op.done = [](AioOp& self, int32_t) { ++static_cast<Seen*>(self.context)->done; };
  ASSERT_FALSE(backend->run_query(op, driver.aio()));
  EXPECT_EQ(seen.free, 0u) << "not on this thread";
  ASSERT_EQ(driver.aio().records().size(), 1u);
  EXPECT_TRUE(driver.aio().records()[0].may_block);
  EXPECT_TRUE(driver.aio().pump());
  EXPECT_EQ(seen.done, 1);
  EXPECT_NE(seen.free, 0u);
}

TEST_F(FileTest, OnlyForcedUnitAccessIsDurableWhileTheCacheIsOn) {
  auto backend = open_text(text(",write-cache=on"));
  Driver driver(*backend);
  ASSERT_EQ(driver.write(0, Bytes(4096)), 0);
  for (const auto& record : driver.aio().records()) EXPECT_EQ(record.rw_flags, 0);
  ASSERT_EQ(driver.write_zeroes(0, 4096), 0);
  ASSERT_EQ(driver.discard(0, 4096), 0);
  EXPECT_EQ(driver.aio().count(AioOp::Kind::kFdatasync), 0u);
  driver.aio().forget_records();
  ASSERT_EQ(driver.write(0, Bytes(4096), kIoFua), 0);
  EXPECT_EQ(only_rw_flags(driver.aio()), RWF_DSYNC);
  ASSERT_EQ(driver.write_zeroes(0, 4096, kIoFua), 0);
  EXPECT_EQ(driver.aio().records().back().kind, AioOp::Kind::kFdatasync);
  driver.aio().forget_records();
  ASSERT_EQ(driver.flush(), 0);
  EXPECT_EQ(driver.aio().count(AioOp::Kind::kFdatasync), 1u);
}

// The caller flushes the cached data afterwards, so this does not block (unit/write_cache.h).
TEST_F(FileTest, DisablingTheCacheLeavesTheFlushToTheCaller) {
  auto backend = open_text(text(",write-cache=on"));
  Driver driver(*backend);
  ASSERT_EQ(driver.write(0, pattern(0, 65536, 1)), 0);
  // Data that was never flushed has no place on the disk yet, on filesystems that delay that.
  if (!is_delayed(disk_.file("a.img"))) GTEST_SKIP() << "this filesystem places data at once";
  ASSERT_TRUE(backend->set_write_cache(true).ok());
  EXPECT_TRUE(is_delayed(disk_.file("a.img")));
  ASSERT_TRUE(backend->set_write_cache(false).ok());
  EXPECT_TRUE(is_delayed(disk_.file("a.img")));
  ASSERT_EQ(driver.flush(), 0);
  EXPECT_FALSE(is_delayed(disk_.file("a.img")));
}

TEST_F(FileTest, TheLastCloseFlushesTheCachedData) {
  auto backend = open_text(text(",write-cache=on"));
  ASSERT_EQ(Driver(*backend).write(0, pattern(0, 65536, 1)), 0);
  if (!is_delayed(disk_.file("a.img"))) GTEST_SKIP() << "this filesystem places data at once";
  backend.reset();
  EXPECT_FALSE(is_delayed(disk_.file("a.img")));
}

TEST_F(FileTest, ASyncFollowsTheWriteIfDsyncIsRefused) {
  auto backend = open_text(text(""));
  Driver driver(*backend);
  driver.aio().answer_with([](const AioOp& op) { return op.rw_flags != 0 ? -EOPNOTSUPP : 0; });
  for (int i = 0; i < 2; ++i) {
    driver.aio().forget_records();
    ASSERT_EQ(driver.write(0, pattern(0, 4096, 1)), 0);
    EXPECT_EQ(driver.aio().records().back().kind, AioOp::Kind::kFdatasync);
    EXPECT_EQ(driver.aio().count(AioOp::Kind::kWritev), i == 0 ? 2u : 1u);
  }
}

TEST_F(FileTest, AFailedSyncFailsTheIo) {
  auto backend = open_text(text(",write-cache=on"));
  Driver driver(*backend);
  driver.aio().answer_with(
      [](const AioOp& op) { return op.kind == AioOp::Kind::kFdatasync ? -EIO : 0; });
  EXPECT_EQ(driver.flush(), -EIO);
  EXPECT_EQ(driver.discard(0, 4096, kIoFua), -EIO);
}

TEST_F(FileTest, ZerosAreWrittenIfTheFilesystemCannotZero) {
  auto backend = open_text(text(""));
  Driver driver(*backend);
  driver.aio().answer_with(
      [](const AioOp& op) { return op.kind == AioOp::Kind::kFallocate ? -EOPNOTSUPP : 0; });
  ASSERT_EQ(driver.write(0, pattern(0, 4 << 20, 1)), 0);
  driver.aio().forget_records();
  ASSERT_EQ(driver.write_zeroes(512, (3 << 20) + 512, kIoMayUnmap), 0);
  EXPECT_EQ(driver.aio().count(AioOp::Kind::kFallocate), 2u);
  EXPECT_EQ(driver.aio().count(AioOp::Kind::kWritev), 4u);
  EXPECT_EQ(driver.read(512, (3 << 20) + 512), Bytes((3 << 20) + 512));
  EXPECT_EQ(driver.read(0, 512), pattern(0, 512, 1));
  EXPECT_EQ(driver.read((3 << 20) + 1024, 512), pattern((3 << 20) + 1024, 512, 1));
  driver.aio().forget_records();
  ASSERT_EQ(driver.write_zeroes(0, 512), 0);
  EXPECT_EQ(driver.aio().count(AioOp::Kind::kFallocate), 0u) << "asked again after a refusal";
}

TEST_F(FileTest, ErrorsOfTheKernelAreReportedAsNoSpaceOrMediumError) {
  auto backend = open_text(text(",io=direct"));
  Driver driver(*backend);
  int32_t error = -ENOSPC;
  driver.aio().answer_with([&](const AioOp&) { return error; });
  EXPECT_EQ(driver.write(0, Bytes(4096)), -ENOSPC);
  EXPECT_EQ(driver.write_zeroes(0, 4096), -ENOSPC);
  error = -EDQUOT;
  EXPECT_EQ(driver.write(0, Bytes(4096)), -ENOSPC);
  error = -EIO;
  Bytes data(4096);
  EXPECT_EQ(driver.submit(Op::kRead, 0, 4096, {{data.data(), 4096}}), -EIO);
  error = -ENODATA;
  EXPECT_EQ(driver.submit(Op::kRead, 0, 4096, {{data.data(), 4096}}), -EIO)
      << "a block that its device can't read is a medium error";
}

TEST_F(FileTest, TransfersThatEndWithinABlockAreTruncatedToWholeBlocks) {
  auto backend = open_text(text(",io=direct"));
  Driver driver(*backend);
  driver.aio().answer_with([](const AioOp&) { return 1000; });
  alignas(4096) static uint8_t data[4096];
  EXPECT_EQ(driver.submit(Op::kRead, 0, 4096, {{data, 4096}}), 512);
  driver.aio().answer_with([](const AioOp&) { return 100; });
  EXPECT_EQ(driver.submit(Op::kRead, 0, 4096, {{data, 4096}}), -EIO);
}

TEST_F(FileTest, DirectIoUsesOnlyAlignedMemory) {
  auto backend = open_text(text(",io=direct"));
  if (backend->info().memory_alignment < 512) GTEST_SKIP() << "the disk takes any memory";
  Driver driver(*backend);
  Bytes memory((1 << 20) + 48);
  iovec behind_a_header = {memory.data() + 48 - reinterpret_cast<uintptr_t>(memory.data()) % 16,
                           1 << 20};
  ASSERT_EQ(driver.transfer(Op::kWrite, 0, {behind_a_header}), 0);
  ASSERT_EQ(driver.transfer(Op::kRead, 0, {behind_a_header}), 0);
  for (const auto& record : driver.aio().records()) EXPECT_TRUE(record.aligned_512);
  alignas(4096) static uint8_t aligned[4096];
  driver.aio().forget_records();
  ASSERT_EQ(driver.submit(Op::kRead, 0, 4096, {{aligned, 4096}}), 4096);
  EXPECT_EQ(driver.aio().count(AioOp::Kind::kReadv), 1u);
}

TEST_F(FileTest, CachedReadsCompleteImmediately) {
  auto backend = open_text(text(""));
  Driver driver(*backend);
  ASSERT_EQ(driver.write(0, pattern(0, 65536, 1)), 0);
  driver.aio().forget_records();
  EXPECT_EQ(driver.read(0, 65536), pattern(0, 65536, 1));
  EXPECT_TRUE(driver.aio().records().empty());
}

TEST_F(FileTest, AFullFilesystemReportsNoSpace) {
  ScratchDirectory tmpfs("/dev/shm");
  TinyFilesystem tiny(tmpfs.directory(), "256k");
  if (!tiny.skip_reason().empty()) GTEST_SKIP() << tiny.skip_reason();
  auto backend = open_text("file:" + tmpfs.file("a.img") + ",size=4MiB");
  ASSERT_NE(backend, nullptr);
  tiny.detach();
  Driver driver(*backend);
  EXPECT_LE(backend->free_bytes(), 256u << 10);
  EXPECT_EQ(driver.write(0, pattern(0, 1 << 20, 1)), -ENOSPC);
  EXPECT_EQ(driver.write_zeroes(1 << 20, 1 << 20), -ENOSPC);
  EXPECT_EQ(driver.read(0, 4096), pattern(0, 4096, 1)) << "what fitted is lost";
  ASSERT_EQ(driver.discard(0, 4 << 20), 0);
  EXPECT_EQ(driver.write(0, Bytes(65536)), 0) << "discard gave nothing back";
}

TEST_F(FileTest, ADeletedFileFailsItsCheckAndIoContinues) {
  auto backend = open_text(text(""));
  Driver driver(*backend);
  ASSERT_EQ(unlink(disk_.file("a.img").c_str()), 0);
  EXPECT_THAT(backend->check().error(), HasSubstr("deleted"));
  EXPECT_EQ(driver.write(0, pattern(0, 4096, 1)), 0);
  EXPECT_EQ(driver.read(0, 4096), pattern(0, 4096, 1));
}

TEST_F(FileTest, ARenamedOrReplacedFileIsReportedAsMisplacedAndIoContinues) {
  auto backend = open_text(text(""));
  const std::string name = disk_.file("a.img"), other = disk_.file("b.img");
  EXPECT_EQ(backend->location_problem(), "");
  ASSERT_EQ(rename(name.c_str(), other.c_str()), 0);
  EXPECT_TRUE(backend->check().ok());
  EXPECT_THAT(backend->location_problem(), HasSubstr("has another name now"));
  std::ofstream(name) << "another file";
  EXPECT_THAT(backend->location_problem(), HasSubstr("replaced by another file"));
  Driver driver(*backend);
  EXPECT_EQ(driver.write(0, pattern(0, 4096, 1)), 0);
  ASSERT_EQ(rename(other.c_str(), name.c_str()), 0);
  EXPECT_EQ(backend->location_problem(), "");
}

TEST_F(FileTest, ATruncatedFileFailsItsCheckPermanentlyAndItsReadsFail) {
  for (const char* io : {",io=buffered", ",io=direct"}) {
    auto backend = open_text(text(io));
    Driver driver(*backend);
    ASSERT_EQ(truncate(disk_.file("a.img").c_str(), 4096), 0);
    EXPECT_THAT(backend->check().error(), HasSubstr("cut short"));
    Bytes data(8192);
    EXPECT_EQ(driver.submit(Op::kRead, 8192, 8192, {{data.data(), 8192}}), -EIO);
    EXPECT_EQ(driver.transfer(Op::kRead, 0, {{data.data(), 8192}}), -EIO);
    ASSERT_EQ(truncate(disk_.file("a.img").c_str(), 4 << 20), 0);
    EXPECT_FALSE(backend->check().ok()) << "zeros passed for the lost data";
  }
}

TEST_F(FileTest, CreatesSparseFilesAndGrowsThemToTheConfiguredSize) {
  open_text(text("")).reset();
  struct stat status;
  ASSERT_EQ(stat(disk_.file("a.img").c_str(), &status), 0);
  EXPECT_EQ(status.st_size, 4 << 20);
  EXPECT_EQ(status.st_blocks, 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  auto bigger = open_text("file:" + disk_.file("a.img") + ",size=8MiB");
  EXPECT_EQ(bigger->size_bytes(), 8u << 20);
  bigger.reset();
  auto smaller = try_open(text(""));
  ASSERT_FALSE(smaller.ok());
  EXPECT_THAT(smaller.error(), HasSubstr("8MiB"));
  EXPECT_EQ(open_text("file:" + disk_.file("a.img"))->size_bytes(), 8u << 20);
}

TEST_F(FileTest, RefusalsIncludeTheFix) {
  const std::string path = disk_.file("a.img");
  EXPECT_THAT(try_open("file:" + path).error(), HasSubstr("give size="));
  EXPECT_THAT(try_open(text(",create=off")).error(), HasSubstr("create it"));
  EXPECT_THAT(try_open("file:" + disk_.file("no/a.img") + ",size=1MiB").error(),
              HasSubstr("directory"));
  EXPECT_THAT(try_open("file:" + disk_.directory() + ",size=1MiB").error(),
              HasSubstr("no regular file"));
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_THAT(try_open("file:" + path + ",read-only=on").error(), HasSubstr("no regular file"));
  unlink(path.c_str());
  open_text("file:" + path + ",size=1024").reset();
  EXPECT_THAT(try_open("file:" + path + ",block-size=4096").error(), HasSubstr("truncate -s 4096"));
}

TEST_F(FileTest, ReadersShareAFileAndExcludeWriters) {
  open_text(text("")).reset();
  auto first = open_text(text(",read-only=on"));
  auto second = open_text(text(",read-only=on"));
  EXPECT_FALSE(try_open(text("")).ok());
}

// DESIGN R2: the lock is released only by the end of the process, or of the I/O it left in the
// kernel.
TEST_F(FileTest, TheLockOfAnotherProcessIsReportedWithItsPid) {
  open_text(text("")).reset();
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    // Not to outlive a test that failed on the way.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int fd = ::open(disk_.file("a.img").c_str(), O_RDWR);
    const char answer = flock(fd, LOCK_EX) == 0 ? 'y' : 'n';
    _exit(write(ready[1], &answer, 1) == 1 ? pause() : 1);
  }
  char answer = 0;
  EXPECT_EQ(read(ready[0], &answer, 1), 1);
  auto refused = try_open(text(""));
  const std::string refusal = refused.ok() ? "opened" : refused.error();
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  close(ready[0]);
  close(ready[1]);
  EXPECT_EQ(answer, 'y');
  EXPECT_THAT(refusal, HasSubstr("process " + std::to_string(child)));
  EXPECT_TRUE(try_open(text("")).ok());
}

}  // namespace
}  // namespace sluice::backend
