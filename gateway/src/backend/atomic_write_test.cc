#include "backend/atomic_write.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "backend/descriptor.h"
#include "backend/test_driver.h"
#include "backend/test_storage.h"

namespace sluice::backend {
namespace {

constexpr int kRwfAtomic = 0x40;
constexpr uint32_t kUnit = 16384;

TEST(AtomicWrites, TheLargestUnitOfTheKernelIsOffered) {
  EXPECT_EQ(choose_atomic_writes(512, 16384, 1, 512).bytes, 16384u);
  EXPECT_EQ(choose_atomic_writes(4096, 4096, 1, 4096).bytes, 4096u);
  EXPECT_EQ(choose_atomic_writes(4096, 65536, 8, 4096).segments, 8u);
}

TEST(AtomicWrites, AUnitThatCannotBeGuaranteedIsNotOffered) {
  EXPECT_EQ(choose_atomic_writes(0, 0, 0, 512).bytes, 0u);
  EXPECT_EQ(choose_atomic_writes(4096, 16384, 0, 512).bytes, 0u) << "no vector may be given";
  EXPECT_EQ(choose_atomic_writes(512, 2048, 1, 4096).bytes, 0u) << "smaller than a block";
  EXPECT_EQ(choose_atomic_writes(1u << 20, 1u << 20, 1, 512).bytes, 0u) << "no bounce so large";
  EXPECT_EQ(choose_atomic_writes(4096, 1u << 20, 1, 512).bytes, 262144u);
}

// As if the kernel supported atomic writes of 16 KiB in one vector.
class AtomicDescriptor final : public Descriptor {
 public:
  static std::unique_ptr<AtomicDescriptor> open(const std::string& path,
                                                uint32_t memory_alignment = 512) {
    Setup setup;
    setup.fd = FileDescriptor(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    setup.size = 1 << 20;
    setup.info.memory_alignment = memory_alignment;
    setup.info.atomic_write_bytes = kUnit;
    setup.atomic_segments = 1;
    EXPECT_EQ(ftruncate(setup.fd.get(), 1 << 20), 0);
    Spec spec;
    spec.path = path;
    return std::unique_ptr<AtomicDescriptor>(new AtomicDescriptor(spec, std::move(setup)));
  }
  Result<Extent> allocation(uint64_t, uint64_t limit) const override { return Extent{limit, true}; }
  Result<void> resize(uint64_t) override { return Error{"fixed"}; }
  Result<void> check() override { return {}; }

 private:
  using Descriptor::Descriptor;
};

class AtomicDescriptorTest : public testing::Test {
 protected:
  // What the kernel would answer: this machine's may know no RWF_ATOMIC for this file.
  void answer(int32_t result) {
    driver_.aio().answer_with([result](const AioOp&) { return result; });
  }
  int64_t write(uint64_t offset, std::vector<iovec> iov, uint8_t flags = kIoAtomic) {
    uint64_t length = 0;
    for (const iovec& v : iov) length += v.iov_len;
    return driver_.submit(Op::kWrite, offset, length, std::move(iov), flags);
  }

  ScratchDirectory scratch_{"/var/tmp"};
  std::unique_ptr<AtomicDescriptor> backend_ = AtomicDescriptor::open(scratch_.file("a.img"));
  Driver driver_{*backend_};
  alignas(4096) uint8_t memory_[2 * kUnit + 512] = {};
};

// As NVMe drives do. Up to Linux 6.17 pieces are refused that are no whole blocks.
TEST_F(AtomicDescriptorTest, SegmentsOfPartialBlocksAreBouncedDespiteRelaxedAlignment) {
  backend_ = AtomicDescriptor::open(scratch_.file("b.img"), 4);
  Driver driver(*backend_);
  driver.aio().answer_with([](const AioOp& op) { return static_cast<int32_t>(op.length); });
  // As it came over TCP: cut where a receive ended.
  const std::vector<iovec> cut = {{memory_ + 48, 4096 - 48}, {memory_ + 4096, 4096 + 48}};
  EXPECT_EQ(driver.submit(Op::kWrite, 0, 8192, cut), 8192);
  EXPECT_TRUE(driver.aio().records().back().aligned_512);
  EXPECT_EQ(driver.submit(Op::kWrite, 0, 8192, {{memory_ + 48, 8192}}), 8192);
  EXPECT_FALSE(driver.aio().records().back().aligned_512) << "whole blocks need no copy";
}

TEST_F(AtomicDescriptorTest, AnAtomicWriteIsSubmittedAsOneDurableWrite) {
  answer(kUnit);
  EXPECT_EQ(write(kUnit, {{memory_, kUnit}}), kUnit);
  ASSERT_EQ(driver_.aio().records().size(), 1u);
  EXPECT_EQ(driver_.aio().records()[0].rw_flags, RWF_DSYNC | kRwfAtomic);
  EXPECT_EQ(driver_.aio().records()[0].length, kUnit);
}

TEST_F(AtomicDescriptorTest, OtherWritesAreSubmittedWithoutTheAtomicFlag) {
  answer(kUnit);
  EXPECT_EQ(write(kUnit, {{memory_, kUnit}}, 0), kUnit);
  EXPECT_EQ(driver_.aio().records()[0].rw_flags, RWF_DSYNC);
}

TEST_F(AtomicDescriptorTest, MoreSegmentsThanTheKernelAcceptsAreGatheredIntoOne) {
  uint32_t pieces = 0;
  driver_.aio().answer_with([&](const AioOp& op) {
    pieces = op.iovcnt;
    return int32_t{kUnit};
  });
  EXPECT_EQ(write(0, {{memory_, 8192}, {memory_ + 16384, 8192}}), kUnit);
  EXPECT_EQ(pieces, 1u);
  EXPECT_EQ(write(0, {{memory_ + 1, kUnit}}), kUnit);
  EXPECT_TRUE(driver_.aio().records()[1].aligned_512);
}

TEST_F(AtomicDescriptorTest, OnlyTheSupportedSizeAndOffsetAreAccepted) {
  EXPECT_EQ(write(0, {{memory_, kUnit / 2}}), -EINVAL);
  EXPECT_EQ(write(0, {{memory_, 2 * kUnit}}), -EINVAL);
  EXPECT_EQ(write(512, {{memory_, kUnit}}), -EINVAL);
  EXPECT_TRUE(driver_.aio().records().empty());
}

TEST_F(AtomicDescriptorTest, AShortOrRefusedAtomicWriteFailsAndIsNotRetriedAsAnOrdinaryWrite) {
  answer(kUnit / 2);
  EXPECT_EQ(write(0, {{memory_, kUnit}}), -EIO);
  answer(-EOPNOTSUPP);
  EXPECT_EQ(write(0, {{memory_, kUnit}}), -EOPNOTSUPP);
  EXPECT_EQ(driver_.aio().records().size(), 2u);
  answer(kUnit);
  EXPECT_EQ(write(0, {{memory_, kUnit}}, 0), kUnit);
  EXPECT_EQ(driver_.aio().records()[2].rw_flags, RWF_DSYNC) << "refused was the other flag";
}

}  // namespace
}  // namespace sluice::backend
