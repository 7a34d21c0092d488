#include "backend/device_threads.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <utility>

#include "backend/test_completions.h"
#include "backend/test_storage.h"
#include "base/file_descriptor.h"

namespace sluice::backend {
namespace {

// A read that hangs until release(): of a pipe, without an offset.
class HungRead {
 public:
  HungRead() {
    int ends[2] = {-1, -1};
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    read_ = FileDescriptor(ends[0]);
    write_ = FileDescriptor(ends[1]);
    op_.kind = AioOp::Kind::kReadv;
    op_.fd = read_.get();
    op_.iov = &iov_;
    op_.iovcnt = 1;
    op_.offset = UINT64_MAX;
  }
  AioOp& op() { return op_; }
  void release() { EXPECT_EQ(::write(write_.get(), "x", 1), 1); }

 private:
  FileDescriptor read_, write_;
  uint8_t byte_ = 0;
  iovec iov_{&byte_, 1};
  AioOp op_;
};

class DeviceThreadsTest : public testing::Test {
 protected:
  DeviceThreadsTest() : file_(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {}

  AioOp write_op(uint64_t offset, uint8_t value) {
    bytes_.push_back(value);
    vectors_.push_back({&bytes_.back(), 1});
    AioOp op;
    op.kind = AioOp::Kind::kWritev;
    op.fd = file_.get();
    op.iov = &vectors_.back();
    op.iovcnt = 1;
    op.offset = offset;
    return op;
  }
  AioOp sync_op() {
    AioOp op;
    op.kind = AioOp::Kind::kFdatasync;
    op.fd = file_.get();
    return op;
  }

  void submit(DeviceThreads& threads, AioOp& op, BlockingCalls::Strand* strand) {
    op.aio = &completions_;
    op.strand = strand;
    AioList one;
    one.push(op);
    threads.submit(one);
  }

  // In front of the threads that use them.
  ScratchDirectory scratch_{"/var/tmp"};
  const std::string path_ = scratch_.file("data");
  FileDescriptor file_;
  std::deque<uint8_t> bytes_;
  std::deque<iovec> vectors_;
  Completions completions_;
};

TEST_F(DeviceThreadsTest, ADeviceThatHangsDelaysNoOtherDevice) {
  std::array<HungRead, 40> hung;
  DeviceThreads sick(32), healthy(32);
  for (HungRead& read : hung) submit(sick, read.op(), nullptr);
  for (int i = 0; i < 100; ++i) {
    AioOp op = write_op(0, 1);
    submit(healthy, op, nullptr);
    ASSERT_EQ(&completions_.next(), &op);
    EXPECT_EQ(op.result, 1);
  }
  for (HungRead& read : hung) read.release();
  for (size_t i = 0; i < hung.size(); ++i) EXPECT_EQ(completions_.next().result, 1);
}

TEST_F(DeviceThreadsTest, NoMoreOperationsThanTheLimitAreInProgress) {
  HungRead first, second;
  DeviceThreads threads(2);
  AioOp waiting = sync_op();
  submit(threads, first.op(), nullptr);
  submit(threads, second.op(), nullptr);
  submit(threads, waiting, nullptr);
  second.release();
  EXPECT_EQ(&completions_.next(), &second.op()) << "the third one waits";
  EXPECT_EQ(&completions_.next(), &waiting);
  first.release();
  EXPECT_EQ(&completions_.next(), &first.op());
}

TEST_F(DeviceThreadsTest, AnOperationWaitsForNoOtherOneBelowTheLimit) {
  std::array<HungRead, 31> hung;
  DeviceThreads threads(32);
  for (HungRead& read : hung) submit(threads, read.op(), nullptr);
  AioOp op = sync_op();
  submit(threads, op, nullptr);
  EXPECT_EQ(&completions_.next(), &op);
  EXPECT_EQ(op.result, 0);
  for (HungRead& read : hung) read.release();
  for (size_t i = 0; i < hung.size(); ++i) completions_.next();
}

TEST_F(DeviceThreadsTest, OperationsOfAStrandRunInTheOrderOfSubmission) {
  DeviceThreads threads(8);
  const auto strand = DeviceThreads::make_strand();
  std::deque<AioOp> ops;
  for (int i = 0; i < 500; ++i) {
    ops.push_back(write_op(0, static_cast<uint8_t>(i)));
    submit(threads, ops.back(), strand.get());
  }
  for (AioOp& op : ops) ASSERT_EQ(&completions_.next(), &op);
  uint8_t last = 0;
  ASSERT_EQ(pread(file_.get(), &last, 1, 0), 1);
  EXPECT_EQ(last, static_cast<uint8_t>(499));
}

TEST_F(DeviceThreadsTest, TheCallerMayDestroyAStrandOnceItsLastOperationIsDone) {
  DeviceThreads threads(8);
  for (int i = 0; i < 500; ++i) {
    auto strand = DeviceThreads::make_strand();
    AioOp first = write_op(0, 1), second = write_op(1, 2);
    submit(threads, first, strand.get());
    submit(threads, second, strand.get());
    completions_.next();
    ASSERT_EQ(&completions_.next(), &second);
  }
}

TEST_F(DeviceThreadsTest, AReadWaitsForNoEarlierRead) {
  std::array<HungRead, 8> reads;
  DeviceThreads threads(8);
  for (HungRead& read : reads) submit(threads, read.op(), nullptr);
  for (size_t i = reads.size(); i-- > 0;) {
    reads[i].release();
    EXPECT_EQ(&completions_.next(), &reads[i].op());
  }
}

TEST_F(DeviceThreadsTest, WithoutAnyThreadOperationsEndWithENOMEM) {
  DeviceThreads threads(8, [](std::function<void()>) { return false; });
  const auto strand = DeviceThreads::make_strand();
  AioOp first = write_op(0, 1), second = write_op(1, 2), read = sync_op();
  submit(threads, first, strand.get());
  submit(threads, read, nullptr);
  submit(threads, second, strand.get());  // the strand is usable again
  for (AioOp* op : {&first, &read, &second}) {
    EXPECT_EQ(&completions_.next(), op);
    EXPECT_EQ(op->result, -ENOMEM);
  }
}

TEST_F(DeviceThreadsTest, OneThreadRunsTheOperationsThatNoOtherCanStartFor) {
  static std::atomic<bool> started;
  started = false;
  DeviceThreads threads(8, [](std::function<void()> work) {
    if (started.exchange(true)) return false;
    std::thread(std::move(work)).detach();
    return true;
  });
  std::deque<AioOp> ops;
  for (int i = 0; i < 20; ++i) {
    ops.push_back(sync_op());
    submit(threads, ops.back(), nullptr);
  }
  for (size_t i = 0; i < ops.size(); ++i) EXPECT_EQ(completions_.next().result, 0);
}

TEST_F(DeviceThreadsTest, AFailedCallReportsItsErrno) {
  DeviceThreads threads(1);
  AioOp op = write_op(0, 1);
  op.fd = -1;
  submit(threads, op, nullptr);
  EXPECT_EQ(completions_.next().result, -EBADF);
}

TEST_F(DeviceThreadsTest, AThreadThatHangsOutlivesItsObject) {
  HungRead hung;
  {
    DeviceThreads threads(1);
    submit(threads, hung.op(), nullptr);
  }
  hung.release();
  EXPECT_EQ(&completions_.next(), &hung.op());
}

TEST_F(DeviceThreadsTest, AllFilesOfADeviceShareItsThreads) {
  const auto threads = DeviceThreads::of(42);
  EXPECT_EQ(DeviceThreads::of(42), threads);
  EXPECT_NE(DeviceThreads::of(43), threads);
  EXPECT_GT(threads->most(), 0u);
}

}  // namespace
}  // namespace sluice::backend
