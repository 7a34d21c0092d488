#include "scsi/capacity.h"

#include <gtest/gtest.h>

#include "scsi/expected_bytes.h"
#include "scsi/lba_status.h"

namespace sluice::scsi {
namespace {

std::vector<uint8_t> ten(const Geometry& g) {
  return built([&](MutableBytes out) { return build_read_capacity_10(g, out); });
}
std::vector<uint8_t> sixteen(const Geometry& g, const Provisioning& p = {}) {
  return built([&](MutableBytes out) { return build_read_capacity_16(g, p, out); });
}

TEST(ReadCapacity, TenByteFormSaturates) {
  EXPECT_EQ(ten({.blocks = 0x1000}), hex("00000fff 00000200"));
  EXPECT_EQ(ten({.blocks = 0xffffffff}), hex("fffffffe 00000200"));
  EXPECT_EQ(ten({.blocks = 0x1'0000'0000}), hex("ffffffff 00000200"));
  EXPECT_EQ(ten({.blocks = 0x2'0000'0000, .block_size = 4096}), hex("ffffffff 00001000"));
}

TEST(ReadCapacity, SixteenByteFormReportsBlockSizesAndAlignment) {
  EXPECT_EQ(sixteen({.blocks = 0x1'0000'0001}), hex("0000000100000000 00000200 00 03 00 00 00*16"));
  EXPECT_EQ(sixteen({.blocks = 2, .block_size = 4096, .lowest_aligned_lba = 0x3fff}),
            hex("0000000000000001 00001000 00 00 3f ff 00*16"));
}

TEST(ReadCapacity, ProvisioningBitsAreSetOnlyForThinUnits) {
  EXPECT_EQ(sixteen({.blocks = 1}, {.thin = true})[14], 0x80);
  EXPECT_EQ(sixteen({.blocks = 1}, {.thin = true, .reads_zeros = true})[14], 0xc0);
  EXPECT_EQ(sixteen({.blocks = 1}, {.thin = false, .reads_zeros = true})[14], 0x00);
}

TEST(LbaStatus, ListsExtents) {
  const LbaStatus extents[] = {
      {.lba = 0x10, .blocks = 0x20, .mapping = Mapping::kMapped},
      {.lba = 0x30, .blocks = 0xffffffff, .mapping = Mapping::kDeallocated}};
  EXPECT_EQ(built([&](MutableBytes out) { return build_lba_status(extents, out); }),
            hex("00000024 00*4  0000000000000010 00000020 00 00*3"
                "                0000000000000030 ffffffff 01 00*3"));
}

TEST(LbaStatus, CapacityFollowsTheAllocationLength) {
  EXPECT_EQ(lba_status_capacity(0), 1u);
  EXPECT_EQ(lba_status_capacity(24), 1u);
  EXPECT_EQ(lba_status_capacity(39), 1u);
  EXPECT_EQ(lba_status_capacity(40), 2u);
}

}  // namespace
}  // namespace sluice::scsi
