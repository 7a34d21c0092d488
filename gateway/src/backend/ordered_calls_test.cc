#include "backend/ordered_calls.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/fs.h>
#include <unistd.h>

#include <cerrno>
#include <deque>
#include <string>
#include <vector>

#include "backend/test_completions.h"
#include "backend/test_storage.h"
#include "base/file_descriptor.h"

namespace sluice::backend {
namespace {

class OrderedCallsTest : public testing::Test {
 protected:
  AioOp& add(AioOp::Kind kind, const std::string& data, uint64_t offset, bool shares_sync) {
    data_.push_back(data);
    vectors_.push_back({data_.back().data(), data_.back().size()});
    AioOp& op = ops_.emplace_back();
    op.kind = kind;
    op.fd = file_.get();
    op.iov = &vectors_.back();
    op.iovcnt = 1;
    op.offset = offset;
    op.length = data.size();
    op.rw_flags = shares_sync ? RWF_DSYNC : 0;
    op.shares_sync = shares_sync;
    op.aio = &completions_;
    return op;
  }
  AioOp& write(const std::string& data, uint64_t offset) {
    return add(AioOp::Kind::kWritev, data, offset, true);
  }
  AioOp& sync() { return add(AioOp::Kind::kFdatasync, "", 0, false); }
  void run() {
    AioList batch;
    for (AioOp& op : ops_) batch.push(op);
    run_in_order(batch);
    EXPECT_TRUE(batch.empty());
  }
  std::vector<AioOp*> submitted() {
    std::vector<AioOp*> all;
    for (AioOp& op : ops_) all.push_back(&op);
    return all;
  }
  std::string content() const {
    std::string text(64, '\0');
    const ssize_t n = pread(file_.get(), text.data(), text.size(), 0);
    text.resize(n > 0 ? static_cast<size_t>(n) : 0);
    return text;
  }

  ScratchDirectory scratch_{"/var/tmp"};
  FileDescriptor file_{::open(scratch_.file("data").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)};
  std::deque<std::string> data_;
  std::deque<iovec> vectors_;
  std::deque<AioOp> ops_;
  Completions completions_;
};

TEST_F(OrderedCallsTest, EveryOperationCompletesInTheOrderOfTheBatch) {
  write("one", 0);
  add(AioOp::Kind::kWritev, "two", 3, false);
  write("three", 6);
  write("four", 11);
  sync();
  write("five", 15);
  run();
  EXPECT_EQ(completions_.all(), submitted());
  for (const AioOp& op : ops_) EXPECT_EQ(op.result, static_cast<int32_t>(op.length));
  EXPECT_EQ(content(), "onetwothreefourfive");
}

TEST_F(OrderedCallsTest, AWriteThatFailsLeavesTheOthersOfItsGroup) {
  write("one", 0);
  AioOp& bad = write("two", 3);
  bad.iovcnt = UINT32_MAX;  // EINVAL
  write("three", 3);
  run();
  EXPECT_EQ(ops_[0].result, 3);
  EXPECT_EQ(bad.result, -EINVAL);
  EXPECT_EQ(bad.kind, AioOp::Kind::kWritev);
  EXPECT_EQ(ops_[2].result, 5);
  EXPECT_EQ(content(), "onethree");
}

// A pipe can be written, but not synced.
TEST_F(OrderedCallsTest, IfTheSharedSyncFailsAllItsOperationsFail) {
  int ends[2] = {-1, -1};
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const FileDescriptor read_end(ends[0]), write_end(ends[1]);
  for (AioOp* op : {&write("one", 0), &write("two", 0), &sync()}) {
    op->fd = write_end.get();
    op->offset = UINT64_MAX;  // as a pipe needs it
  }
  run();
  for (const AioOp& op : ops_) {
    EXPECT_EQ(op.result, -EINVAL);
    EXPECT_EQ(op.kind, AioOp::Kind::kFdatasync) << "the sync is what failed";
  }
  char text[8] = {};
  EXPECT_EQ(::read(read_end.get(), text, sizeof text), 6) << "both were written";
}

TEST_F(OrderedCallsTest, AWriteKeepsItsFlags) {
  write("one", 0);
  write("two", 3);
  run();
  for (const AioOp& op : ops_) EXPECT_EQ(op.rw_flags, RWF_DSYNC);
}

}  // namespace
}  // namespace sluice::backend
