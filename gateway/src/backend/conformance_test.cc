#include "backend/conformance.h"

#include <algorithm>
#include <cerrno>
#include <memory>
#include <thread>

#include "faulty/faulty.h"

namespace sluice::backend {

void Conformance::SetUp() {
  subject_ = GetParam().make();
  if (!subject_->skip_reason.empty()) GTEST_SKIP() << subject_->skip_reason;
  reopen([](Spec&) {});
}

void Conformance::reopen(const std::function<void(Spec&)>& change) {
  driver_.reset();
  backend_.reset();
  Spec spec = subject_->spec;
  change(spec);
  auto opened = open(spec);
  ASSERT_TRUE(opened.ok()) << opened.error();
  auto faulty = with_faults(std::move(*opened), subject_->faults, spec.block_size);
  ASSERT_TRUE(faulty.ok()) << faulty.error();
  backend_ = std::move(*faulty);
  driver_ = std::make_unique<Driver>(*backend_);
}

TEST_P(Conformance, WrittenDataIsReadBackAtEverySize) {
  uint64_t offset = 0;
  uint8_t salt = 0;
  for (uint64_t blocks : {1, 2, 3, 7, 8, 9, 64, 127, 128, 600}) {
    const Bytes data = pattern(offset, blocks * block(), ++salt);
    ASSERT_EQ(driver_->write(offset, data), 0) << blocks;
    ASSERT_EQ(driver_->read(offset, data.size()), expected(data)) << blocks;
    offset += blocks * block();
  }
  const Bytes last = pattern(kSubjectSize - block(), block(), 99);
  ASSERT_EQ(driver_->write(kSubjectSize - block(), last), 0);
  ASSERT_EQ(driver_->read(kSubjectSize - block(), block()), expected(last));
}

TEST_P(Conformance, EveryIovecLayoutTransfersTheSameData) {
  // Lengths of the vectors, in bytes; the sum is a multiple of 4096.
  const std::vector<std::vector<size_t>> shapes = {
      {4096}, {512, 3584}, {1, 4095}, {48, 4000, 48}, {2048, 2048, 4096}, {65536, 4096}, {4095, 1}};
  for (const auto& shape : shapes) {
    uint64_t length = 0;
    for (size_t n : shape) length += n;
    Bytes data = pattern(4096, length, static_cast<uint8_t>(shape.size()));
    Bytes back(length + 48, 0xee);
    std::vector<iovec> from, to;
    size_t at = 0;
    for (size_t n : shape) {
      from.push_back({data.data() + at, n});
      // Behind a header: not aligned.
      to.push_back({back.data() + 48 + at, n});
      at += n;
    }
    ASSERT_EQ(driver_->transfer(Op::kWrite, 4096, from), 0);
    ASSERT_EQ(driver_->transfer(Op::kRead, 4096, to), 0);
    ASSERT_EQ(Bytes(back.begin() + 48, back.end()), expected(data));
    ASSERT_EQ(Bytes(back.begin(), back.begin() + 48), Bytes(48, 0xee));
  }
}

TEST_P(Conformance, AMegabyteOfUnalignedMemoryTransfers) {
  const uint64_t length = uint64_t{1} << 20;
  Bytes memory(length + 1);
  const Bytes data = pattern(0, length, 5);
  std::copy(data.begin(), data.end(), memory.begin() + 1);
  ASSERT_EQ(driver_->transfer(Op::kWrite, 0, {{memory.data() + 1, length}}), 0);
  ASSERT_EQ(driver_->read(0, length), expected(data));
}

TEST_P(Conformance, AnOpenBackendPassesTheFenceCheck) {
  EXPECT_EQ(driver_->submit(Op::kCheckFence, 0, 0), 0);
  ASSERT_NO_FATAL_FAILURE(reopen([](Spec& spec) { spec.read_only = true; }));
  EXPECT_EQ(driver_->submit(Op::kCheckFence, 0, 0), 0);
  for (const auto& record : driver_->aio().records()) {
    EXPECT_EQ(record.kind, AioOp::Kind::kExternal) << "asks its kernel";
  }
}

TEST_P(Conformance, UnwrittenRangesReadZeros) {
  EXPECT_EQ(driver_->read(0, 65536), Bytes(65536));
  EXPECT_EQ(driver_->read(kSubjectSize - 4096, 4096), Bytes(4096));
}

TEST_P(Conformance, RequestsBeyondTheEndAreRefused) {
  Bytes data(2 * size_t{block()});
  const uint64_t end = backend().size_bytes();
  for (Op op : {Op::kRead, Op::kWrite, Op::kDiscard, Op::kWriteZeroes}) {
    std::vector<iovec> iov = {{data.data(), data.size()}};
    EXPECT_EQ(driver_->submit(op, end, data.size(), iov), -EINVAL);
    EXPECT_EQ(driver_->submit(op, end - block(), data.size(), iov), -EINVAL);
    EXPECT_EQ(driver_->submit(op, UINT64_MAX - block() + 1, data.size(), iov), -EINVAL);
    EXPECT_EQ(driver_->submit(op, 0, UINT64_MAX, iov), -EINVAL);
  }
  EXPECT_EQ(backend().size_bytes(), end);
}

TEST_P(Conformance, DiscardedRangesReadZerosIfAnnouncedAndTheRestIsUnchanged) {
  const Bytes data = pattern(0, 262144, 3);
  ASSERT_EQ(driver_->write(0, data), 0);
  const uint64_t from = 3 * uint64_t{block()};
  const uint64_t length = 131072 + block();
  if (backend().info().discard_granularity == 0) {
    EXPECT_EQ(driver_->discard(from, length), -EOPNOTSUPP);
    return;
  }
  ASSERT_EQ(driver_->discard(from, length), 0);
  Bytes after = driver_->read(0, data.size());
  if (backend().info().discard_zeroes) {
    EXPECT_EQ(Bytes(&after[from], &after[from + length]), Bytes(length));
  }
  Bytes want = expected(data);
  std::copy(&after[from], &after[from + length], &want[from]);
  EXPECT_EQ(after, want);
}

TEST_P(Conformance, WriteZeroesZeroesExactlyItsRange) {
  for (uint8_t flags : {0, int{kIoMayUnmap}, int{kIoFua}, kIoMayUnmap | kIoFua}) {
    for (auto [first, count] : {std::pair<uint64_t, uint64_t>{1, 1}, {7, 3}, {0, 64}, {5, 200}}) {
      const Bytes data = pattern(0, 262144 * uint64_t{block()} / 512, flags);
      ASSERT_EQ(driver_->write(0, data), 0);
      ASSERT_EQ(driver_->write_zeroes(first * block(), count * block(), flags), 0);
      Bytes want = expected(data);
      std::fill_n(want.begin() + static_cast<ptrdiff_t>(first * block()), count * block(), 0);
      ASSERT_EQ(driver_->read(0, data.size()), want) << first << "+" << count;
    }
  }
}

TEST_P(Conformance, ZeroingTheWholeLunCompletesInAnyNumberOfSteps) {
  for (uint8_t flags : {0, int{kIoMayUnmap}}) {
    const Bytes data = pattern(kSubjectSize - 8192, 8192, 4);
    ASSERT_EQ(driver_->write(kSubjectSize - 8192, data), 0);
    ASSERT_EQ(driver_->write_zeroes(0, kSubjectSize, flags), 0);
    EXPECT_EQ(driver_->read(kSubjectSize - 8192, 8192), Bytes(8192));
  }
}

TEST_P(Conformance, FlushAndForcedUnitAccessSucceed) {
  const Bytes data = pattern(0, 8192, 8);
  EXPECT_EQ(driver_->write(0, data, kIoFua), 0);
  EXPECT_EQ(driver_->flush(), 0);
  EXPECT_EQ(driver_->read(0, 8192), expected(data));
}

TEST_P(Conformance, BothCacheModesPreserveData) {
  for (bool on : {true, false}) {
    if (!backend().set_write_cache(on)) continue;
    EXPECT_EQ(backend().write_cache(), on);
    const Bytes data = pattern(0, 65536, on ? 1 : 2);
    ASSERT_EQ(driver_->write(0, data), 0);
    ASSERT_EQ(driver_->flush(), 0);
    EXPECT_EQ(driver_->read(0, 65536), expected(data));
  }
}

// A backend without atomic writes must refuse them: the host must not get an ordinary write
// instead.
TEST_P(Conformance, AnAtomicWriteIsPerformedCompletelyOrRefused) {
  const uint64_t unit = backend().info().atomic_write_bytes;
  Bytes data = pattern(0, unit == 0 ? 4096 : 2 * unit + 1, 3);
  const auto write = [&](uint64_t offset, std::vector<iovec> iov) {
    uint64_t length = 0;
    for (const iovec& v : iov) length += v.iov_len;
    return driver_->submit(Op::kWrite, offset, length, std::move(iov), kIoAtomic);
  };
  if (unit == 0) {
    EXPECT_EQ(write(0, {{data.data(), 4096}}), -EOPNOTSUPP);
    EXPECT_EQ(driver_->read(0, 4096), Bytes(4096));
    return;
  }
  EXPECT_TRUE((unit & (unit - 1)) == 0 && unit >= block()) << unit;
  const auto whole = static_cast<int64_t>(unit);
  for (uint64_t at = 0; at < 8 * unit; at += unit) {
    const size_t first = 1 + at % 4095;
    data = pattern(at, unit + 1, static_cast<uint8_t>(at / unit));
    ASSERT_EQ(write(at, {{data.data() + 1, first}, {data.data() + 1 + first, unit - first}}),
              whole);
    ASSERT_EQ(driver_->read(at, unit), expected(Bytes(data.begin() + 1, data.end())));
  }
  const Bytes before = driver_->read(0, 4 * unit);
  Bytes other(2 * unit, 0x77);
  EXPECT_EQ(write(0, {{other.data(), 2 * unit}}), -EINVAL);
  if (unit > block()) {
    EXPECT_EQ(write(0, {{other.data(), unit / 2}}), -EINVAL);
    EXPECT_EQ(write(block(), {{other.data(), unit}}), -EINVAL);
  }
  EXPECT_EQ(driver_->read(0, 4 * unit), before);
}

TEST_P(Conformance, TwoThreadsMaySubmitConcurrently) {
  auto work = [&](uint64_t base) {
    Driver driver(backend());
    for (uint8_t round = 0; round < 40; ++round) {
      const uint64_t offset = base + round % 5 * uint64_t{131072};
      // Next to each other, in turns: the threads share pages and bitmap words.
      const Bytes data = pattern(offset, 4096 + round * uint64_t{4096}, round);
      ASSERT_EQ(driver.write(offset, data), 0);
      ASSERT_EQ(driver.read(offset, data.size()), expected(data));
      ASSERT_EQ(driver.write_zeroes(offset, data.size(), kIoMayUnmap), 0);
      ASSERT_EQ(driver.read(offset, data.size()), Bytes(data.size()));
      ASSERT_EQ(driver.flush(), 0);
    }
  };
  std::thread other(work, uint64_t{4} << 20);
  work(0);
  other.join();
}

TEST_P(Conformance, NeighbouringBlocksMayBeWrittenByTwoThreads) {
  auto work = [&](uint64_t parity) {
    Driver driver(backend());
    for (uint64_t i = parity; i < 64; i += 2) {
      ASSERT_EQ(driver.write(i * block(), pattern(i * block(), block(), 6)), 0);
    }
  };
  std::thread other(work, 1);
  work(0);
  other.join();
  EXPECT_EQ(driver_->read(0, 64 * uint64_t{block()}),
            expected(pattern(0, 64 * uint64_t{block()}, 6)));
}

TEST_P(Conformance, GrowingPreservesDataAndShrinkingIsRefused) {
  if (!subject_->grows) {
    EXPECT_FALSE(backend().resize(2 * kSubjectSize).ok()) << "grew without its device";
    EXPECT_TRUE(backend().resize(kSubjectSize).ok());
    return;
  }
  const Bytes data = pattern(kSubjectSize - 65536, 65536, 12);
  ASSERT_EQ(driver_->write(kSubjectSize - 65536, data), 0);
  const uint8_t* before = backend().borrow(kSubjectSize - 65536, 65536);
  auto grown = backend().resize(2 * kSubjectSize);
  ASSERT_TRUE(grown.ok()) << grown.error();
  EXPECT_EQ(backend().size_bytes(), 2 * kSubjectSize);
  EXPECT_EQ(driver_->read(kSubjectSize - 65536, 65536), expected(data));
  EXPECT_EQ(driver_->read(kSubjectSize, 65536), Bytes(65536));
  EXPECT_EQ(backend().borrow(kSubjectSize - 65536, 65536), before) << "lent memory moved";
  EXPECT_EQ(driver_->write(2 * kSubjectSize - 65536, data), 0);
  EXPECT_FALSE(backend().resize(kSubjectSize).ok());
  EXPECT_EQ(backend().size_bytes(), 2 * kSubjectSize);
  EXPECT_TRUE(backend().check().ok());
}

TEST_P(Conformance, AReadOnlyBackendRefusesChanges) {
  ASSERT_NO_FATAL_FAILURE(reopen([](Spec& spec) { spec.read_only = true; }));
  EXPECT_TRUE(backend().info().read_only);
  EXPECT_EQ(driver_->write(0, pattern(0, 4096, 1)), -EROFS);
  EXPECT_EQ(driver_->write_zeroes(0, 4096), -EROFS);
  EXPECT_EQ(driver_->discard(0, 4096), -EROFS);
  EXPECT_EQ(driver_->flush(), 0);
  EXPECT_EQ(driver_->read(0, 4096), Bytes(4096));
}

TEST_P(Conformance, LentMemoryContainsTheWrittenData) {
  ASSERT_EQ(driver_->write(65536, pattern(65536, 65536, 9)), 0);
  const uint8_t* lent = backend().borrow(65536, 65536);
  EXPECT_EQ(lent != nullptr, subject_->lends);
  if (!lent) return;
  EXPECT_EQ(Bytes(lent, lent + 65536), expected(pattern(65536, 65536, 9)));
  EXPECT_EQ(backend().info().lends_constants, !subject_->stores_data);
  EXPECT_EQ(backend().borrow(kSubjectSize - 4096, 8192), nullptr);
  EXPECT_EQ(backend().borrow(UINT64_MAX - 4095, 4096), nullptr);
}

TEST_P(Conformance, AllocationFollowsWritesAndCoversTheWholeLun) {
  const uint64_t offset = uint64_t{2} << 20;
  ASSERT_EQ(driver_->write(offset, pattern(offset, 65536, 2)), 0);
  if (subject_->stores_data) {
    auto written = backend().allocation(offset, 65536);
    ASSERT_TRUE(written.ok()) << written.error();
    EXPECT_TRUE(written->allocated);
    EXPECT_EQ(written->length, 65536u);
  }
  uint64_t at = 0;
  uint64_t allocated = 0;
  while (at < kSubjectSize) {
    auto extent = backend().allocation(at, UINT64_MAX);
    ASSERT_TRUE(extent.ok()) << extent.error();
    ASSERT_GT(extent->length, 0u);
    allocated += extent->allocated ? extent->length : 0;
    at += extent->length;
  }
  EXPECT_EQ(at, kSubjectSize);
  EXPECT_LE(allocated, kSubjectSize);
  EXPECT_FALSE(backend().allocation(kSubjectSize, 4096).ok());
  EXPECT_FALSE(backend().allocation(0, 0).ok());
}

TEST_P(Conformance, AHealthyMediumPassesItsCheck) {
  auto checked = backend().check();
  EXPECT_TRUE(checked.ok()) << checked.error();
  EXPECT_GT(backend().free_bytes(), 0u);
}

}  // namespace sluice::backend
