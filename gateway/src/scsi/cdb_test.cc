#include "scsi/cdb.h"

#include <gtest/gtest.h>

#include "scsi/expected_bytes.h"

namespace sluice::scsi {
namespace {

BlockRange range(std::string_view text) {
  const auto bytes = hex(text);
  Sense s;
  const CommandInfo* info = find_command(bytes, &s);
  EXPECT_NE(info, nullptr) << text;
  return info == nullptr ? BlockRange{} : decode_block_range(*info, bytes);
}

uint32_t allocation(std::string_view text) {
  auto bytes = hex(text);
  bytes.resize(16);
  Sense s;
  const CommandInfo* info = find_command(bytes, &s);
  EXPECT_NE(info, nullptr) << text;
  return info == nullptr ? 0 : allocation_length(*info, bytes);
}

TEST(BlockRange, SixByteCdbsHave21LbaBitsAndALengthOfZeroMeans256) {
  const BlockRange r = range("08 1f ff ff 00 00");
  EXPECT_EQ(r.lba, 0x1fffff);
  EXPECT_EQ(r.blocks, 256);
  EXPECT_EQ(r.lba_at, 1);
  EXPECT_EQ(r.blocks_at, 4);
  EXPECT_EQ(range("0a 00 00 00 05 00").blocks, 5);
}

TEST(BlockRange, TenTwelveAndSixteenByteCdbsDifferOnlyInLayout) {
  const BlockRange ten = range("28 18 01 02 03 04 05 06 07 00");
  EXPECT_EQ(ten.lba, 0x01020304);
  EXPECT_EQ(ten.blocks, 0x0607);
  EXPECT_EQ(ten.group, 5);
  EXPECT_TRUE(ten.dpo && ten.fua);
  EXPECT_EQ(ten.blocks_at, 7);
  const BlockRange twelve = range("aa 08 01 02 03 04 00 01 00 02 03 00");
  EXPECT_EQ(twelve.lba, 0x01020304);
  EXPECT_EQ(twelve.blocks, 0x00010002);
  EXPECT_EQ(twelve.group, 3);
  EXPECT_TRUE(twelve.fua);
  EXPECT_FALSE(twelve.dpo);
  const BlockRange sixteen = range("88 00 01 02 03 04 05 06 07 08 00 00 10 00 1f 00");
  EXPECT_EQ(sixteen.lba, 0x0102030405060708);
  EXPECT_EQ(sixteen.blocks, 0x1000);
  EXPECT_EQ(sixteen.group, 0x1f);
  EXPECT_EQ(sixteen.blocks_at, 10);
}

TEST(BlockRange, ALengthOfZeroMeansZeroBlocksInTenByteCdbs) {
  EXPECT_EQ(range("28 00 00 00 00 00 00 00 00 00").blocks, 0);
}

TEST(BlockRange, CompareAndWriteHasAOneByteBlockCount) {
  const BlockRange r = range("89 08 00 00 00 00 00 00 00 09 00 00 00 ff 00 00");
  EXPECT_EQ(r.lba, 9);
  EXPECT_EQ(r.blocks, 255);
  EXPECT_EQ(r.blocks_at, 13);
  EXPECT_TRUE(r.fua);
}

TEST(BlockRange, WriteAtomicHasATwoByteBlockCount) {
  const BlockRange r = range("9c 00 00 00 00 00 00 00 00 09 00 00 01 02 00 00");
  EXPECT_EQ(r.blocks, 0x0102);
  EXPECT_EQ(r.blocks_at, 12);
}

TEST(BlockRange, GetLbaStatusHasAStartingLbaOnly) {
  const BlockRange r = range("9e 12 00 00 00 00 00 00 00 09 00 00 02 00 00 00");
  EXPECT_EQ(r.lba, 9);
  EXPECT_EQ(r.blocks, 0);
}

TEST(BlockRange, ByteOneIsDecodedPerCommand) {
  EXPECT_EQ(range("2f 16 00 00 00 00 00 00 01 00").bytchk, 3);
  EXPECT_TRUE(range("2f 10 00 00 00 00 00 00 01 00").dpo);
  EXPECT_EQ(range("ae 02 00 00 00 00 00 00 00 01 00 00").bytchk, 1);
  const BlockRange same = range("93 19 00 00 00 00 00 00 00 00 00 00 00 01 00 00");
  EXPECT_TRUE(same.unmap && same.anchor && same.ndob);
  EXPECT_FALSE(same.fua || same.dpo);
  EXPECT_FALSE(range("41 08 00 00 00 00 00 00 01 00").ndob);
  EXPECT_TRUE(range("35 02 00 00 00 00 00 00 00 00").immed);
  EXPECT_TRUE(range("90 02 00 00 00 00 00 00 00 00 00 00 00 00 00 00").immed);
}

TEST(AllocationLength, IsDecodedFromTheFieldOfEachCommand) {
  EXPECT_EQ(allocation("12 00 00 12 34"), 0x1234);
  EXPECT_EQ(allocation("03 00 00 00 fc"), 0xfc);
  EXPECT_EQ(allocation("1a 00 3f 00 ff"), 0xff);
  EXPECT_EQ(allocation("5a 00 3f 00 00 00 00 12 34"), 0x1234);
  EXPECT_EQ(allocation("55 10 00 00 00 00 00 01 02"), 0x0102);
  EXPECT_EQ(allocation("4d 00 00 00 00 00 00 12 34"), 0x1234);
  EXPECT_EQ(allocation("42 00 00 00 00 00 00 00 18"), 0x18);
  EXPECT_EQ(allocation("5e 00 00 00 00 00 00 12 34"), 0x1234);
  EXPECT_EQ(allocation("5f 00 00 00 00 00 01 02 03"), 0x010203);
  EXPECT_EQ(allocation("a0 00 00 00 00 00 01 02 03 04"), 0x01020304);
  EXPECT_EQ(allocation("a3 0c 00 00 00 00 01 02 03 04"), 0x01020304);
  EXPECT_EQ(allocation("a3 0a 00 00 00 00 01 02 03 04"), 0x01020304);
  EXPECT_EQ(allocation("9e 10 00 00 00 00 00 00 00 00 01 02 03 04"), 0x01020304);
  EXPECT_EQ(allocation("83 00 00 00 00 00 00 00 00 00 01 02 03 04"), 0x01020304);
  EXPECT_EQ(allocation("84 07 00 00 00 01 00 00 00 00 01 02 03 04"), 0x01020304);
  EXPECT_EQ(allocation("25"), 0);
  EXPECT_EQ(allocation("28 00 ff ff ff ff 00 ff ff"), 0);
}

}  // namespace
}  // namespace sluice::scsi
