#include "backend/read_ring.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <vector>

#include "backend/test_completions.h"
#include "backend/test_storage.h"
#include "base/file_descriptor.h"

namespace sluice::backend {
namespace {

// Without it, the process gets no further file descriptors, and so no ring.
class NoMoreDescriptors {
 public:
  NoMoreDescriptors() {
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &before_), 0);
    const rlimit none{0, before_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  }
  ~NoMoreDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

class ReadRingTest : public testing::Test {
 protected:
  ReadRingTest() {
    for (uint8_t i = 0; i < kReads; ++i) {
      EXPECT_EQ(pwrite(file_.get(), &i, 1, i), 1);
      vectors_[i] = {&bytes_[i], 1};
      AioOp& op = ops_[i];
      op.kind = AioOp::Kind::kReadv;
      op.fd = file_.get();
      op.iov = &vectors_[i];
      op.iovcnt = 1;
      op.offset = i;
      op.aio = &completions_;
      reads_[i] = &op;
    }
  }
  void expect_all_read() {
    EXPECT_EQ(completions_.all().size(), kReads);
    for (uint8_t i = 0; i < kReads; ++i) {
      EXPECT_EQ(ops_[i].result, 1);
      EXPECT_EQ(bytes_[i], i);
    }
    EXPECT_EQ(completed_, kReads);
    EXPECT_EQ(left_, 0u);
  }

  static constexpr size_t kReads = ReadRing::kMost;
  ScratchDirectory scratch_{"/var/tmp"};
  FileDescriptor file_{::open(scratch_.file("data").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)};
  std::array<uint8_t, kReads> bytes_{};
  std::array<iovec, kReads> vectors_{};
  std::array<AioOp, kReads> ops_;
  std::array<AioOp*, kReads> reads_{};
  Completions completions_;
  size_t completed_ = 0;
  size_t left_ = kReads;
  ReadRing ring_{[this](size_t completed, size_t left) {
    completed_ += completed;
    left_ = left;
  }};
};

TEST_F(ReadRingTest, EveryReadCompletesOnce) {
  ring_.run(reads_);
  expect_all_read();
}

TEST_F(ReadRingTest, WithoutARingReadsRunOneAfterTheOther) {
  ReadRing& ring = ring_;  // UBSan needs a descriptor to check an access to the fixture
  bool opened = true;
  {
    const NoMoreDescriptors none;
    opened = ring.open();
  }
  EXPECT_FALSE(opened);
  ring_.run(reads_);
  expect_all_read();
  EXPECT_EQ(completions_.all(), std::vector<AioOp*>(reads_.begin(), reads_.end()));
}

}  // namespace
}  // namespace sluice::backend
