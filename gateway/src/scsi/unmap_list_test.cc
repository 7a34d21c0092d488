#include "scsi/unmap_list.h"

#include <gtest/gtest.h>

#include "scsi/expected_bytes.h"
#include "scsi/refusal_text.h"

namespace sluice::scsi {
namespace {

constexpr UnmapBounds kBounds{.blocks = 0x1000, .max_descriptors = 3, .max_blocks = 0x800};

Outcome<UnmapList> parse(const std::vector<uint8_t>& data, int declared_length = -1) {
  auto cdb = hex("42 00*9");
  store_be16(&cdb[7], static_cast<uint16_t>(declared_length < 0 ? static_cast<int>(data.size())
                                                                : declared_length));
  return parse_unmap(cdb, kBounds, data);
}

TEST(UnmapList, IsParsedIntoExtents) {
  const auto data =
      hex("00 26 00 20 00*4  0000000000000010 00000020 00*4"
          "                   0000000000000fff 00000001 00*4");
  const auto list = parse(data);
  ASSERT_TRUE(list.ok());
  ASSERT_EQ(list->size(), 2u);
  EXPECT_EQ(list->at(0).lba, 0x10u);
  EXPECT_EQ(list->at(0).blocks, 0x20u);
  EXPECT_EQ(list->at(1).lba, 0xfffu);
}

TEST(UnmapList, EmptyListsAndEmptyExtentsAreAccepted) {
  EXPECT_EQ(parse({})->size(), 0u);
  EXPECT_EQ(parse(hex("00 06 00 00 00*4"))->size(), 0u);
  EXPECT_EQ(refusal_of(parse(hex("00 16 00 10 00*4 0000000000001000 00000000 00*4"))), "ok");
}

TEST(UnmapList, ATrailingPartOfADescriptorIsIgnored) {
  const auto list = parse(hex("00 1e 00 18 00*4 0000000000000010 00000020 00*4 00*8"));
  ASSERT_TRUE(list.ok());
  EXPECT_EQ(list->size(), 1u);
}

TEST(UnmapList, RefusesTruncatedLists) {
  EXPECT_EQ(refusal_of(parse(hex("00 06 00 00 00*3"))), "1a/00");
  EXPECT_EQ(refusal_of(parse(hex("00 16 00 10 00*4 00*15"))), "1a/00");
  EXPECT_EQ(refusal_of(parse(hex("00 06 00 00 00*4"), 24)), "1a/00");
  EXPECT_EQ(refusal_of(parse(hex("00 15 00 10 00*4 00*16"))), "26/00 0.7");
}

TEST(UnmapList, RefusesListsBeyondTheLimitsWithTheirFieldPointer) {
  EXPECT_EQ(refusal_of(parse(hex("00 46 00 40 00*4 00*64"))), "26/00 2.7");
  EXPECT_EQ(refusal_of(parse(hex("00 26 00 20 00*4 0000000000000000 00000800 00*4"
                                 "                   0000000000000800 00000001 00*4"))),
            "26/00 32.7");
}

TEST(UnmapList, NamesTheFirstBlockOutsideTheCapacity) {
  EXPECT_EQ(refusal_of(parse(hex("00 16 00 10 00*4 0000000000000fff 00000002 00*4"))),
            "21/00 info 4096");
  EXPECT_EQ(refusal_of(parse(hex("00 16 00 10 00*4 0000000000001001 00000000 00*4"))),
            "21/00 info 4097");
  EXPECT_EQ(refusal_of(parse(hex("00 16 00 10 00*4 ffffffffffffffff ffffffff 00*4"))),
            "21/00 info 18446744073709551615");
}

}  // namespace
}  // namespace sluice::scsi
