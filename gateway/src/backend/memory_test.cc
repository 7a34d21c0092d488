#include "backend/memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/spec.h"
#include "backend/system_page.h"
#include "backend/test_driver.h"
#include "backend/zeros.h"

namespace sluice::backend {
namespace {

std::unique_ptr<Backend> open_text(const std::string& text) {
  auto opened = open(parse_spec(text).value());
  EXPECT_TRUE(opened.ok()) << opened.error();
  return std::move(*opened);
}

std::string map_of_pages(Backend& backend) {
  std::string map;
  for (uint64_t at = 0; at < backend.size_bytes();) {
    auto extent = backend.allocation(at, UINT64_MAX);
    map += (extent->allocated ? "+" : "-") + std::to_string(extent->length / 4096) + " ";
    at += extent->length;
  }
  return map;
}

TEST(WholePages, StayWithinTheRangeWhereTheMachineHasLargePages) {
  constexpr uint64_t kPage = 65536;
  constexpr PageRange kThree = whole_pages(kPage - 4096, 4 * kPage + 4096, kPage);
  EXPECT_EQ(kThree.begin, kPage);
  EXPECT_EQ(kThree.end, 4 * kPage);
  constexpr PageRange kNone = whole_pages(kPage, kPage + 4096, kPage);
  EXPECT_EQ(kNone.begin, kNone.end);
  constexpr PageRange kWithin = whole_pages(kPage + 4096, kPage + 8192, kPage);
  EXPECT_EQ(kWithin.begin, kWithin.end);
}

TEST(MemoryAllocation, TracksPagesWrittenAndDiscarded) {
  auto backend = open_text("memory:4MiB");
  Driver driver(*backend);
  EXPECT_EQ(map_of_pages(*backend), "-1024 ");
  driver.write(4096 * 63, Bytes(4096 * 130));
  EXPECT_EQ(map_of_pages(*backend), "-63 +130 -831 ");
  driver.discard(4096 * 64 - 512, 4096 * 64 + 1024);
  EXPECT_EQ(map_of_pages(*backend), "-63 +1 -64 +65 -831 ");
  driver.write_zeroes(0, 512, kIoMayUnmap);
  EXPECT_EQ(map_of_pages(*backend), "-63 +1 -64 +65 -831 ") << "zeroing allocated a page";
  driver.write_zeroes(0, 512);
  EXPECT_EQ(map_of_pages(*backend), "+1 -62 +1 -64 +65 -831 ");
}

TEST(MemoryAllocation, ReportsNoMoreThanTheRequestedLength) {
  auto backend = open_text("memory:4MiB");
  EXPECT_EQ(backend->allocation(512, 1024)->length, 1024u);
  EXPECT_EQ(backend->allocation(512, UINT64_MAX)->length, (4u << 20) - 512);
}

TEST(MemoryZeroing, YieldsTheReactorBetweenSteps) {
  auto backend = open_text("memory:64MiB");
  Driver driver(*backend);
  EXPECT_EQ(driver.write_zeroes(0, 64 << 20, kIoMayUnmap), 0);
  EXPECT_EQ(driver.aio().count(AioOp::Kind::kTimeout), 3u);
}

TEST(MemoryGrowth, BeyondTheReservationIsRefusedWithTheFix) {
  auto backend = open_text("memory:1MiB");
  auto grown = backend->resize(uint64_t{1} << 40);
  ASSERT_FALSE(grown.ok());
  EXPECT_THAT(grown.error(), testing::HasSubstr("restart"));
  EXPECT_EQ(backend->size_bytes(), 1u << 20);
}

TEST(MemoryOpen, TerabyteSizesNeedNoMemoryUpFront) {
  auto backend = open_text("memory:4TiB");
  Driver driver(*backend);
  const uint64_t last = (uint64_t{4} << 40) - 512;
  EXPECT_EQ(driver.write(last, pattern(last, 512, 1)), 0);
  EXPECT_EQ(driver.read(last, 512), pattern(last, 512, 1));
}

TEST(NullLending, AlwaysLendsTheSameZeros) {
  auto backend = open_text("null:1GiB");
  const uint8_t* lent = backend->borrow(0, kZerosSize);
  ASSERT_NE(lent, nullptr);
  EXPECT_EQ(Bytes(lent, lent + kZerosSize), Bytes(kZerosSize));
  EXPECT_EQ(backend->borrow(1 << 20, 4096), lent);
  EXPECT_EQ(backend->borrow(0, kZerosSize + 512), nullptr);
}

}  // namespace
}  // namespace sluice::backend
