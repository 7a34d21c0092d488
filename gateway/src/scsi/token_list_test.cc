#include "scsi/token_list.h"

#include <gtest/gtest.h>

#include "scsi/expected_bytes.h"
#include "scsi/refusal_text.h"

namespace sluice::scsi {
namespace {

constexpr TokenBounds kBounds{
    .blocks = 0x1000, .max_ranges = 3, .max_blocks = 0x800, .max_inactivity_seconds = 120};

const auto kRange = hex("0000000000000010 00000020 00*4");
const auto kSecondRange = hex("0000000000000030 00000010 00*4");

std::vector<uint8_t> populate(const std::vector<uint8_t>& ranges) {
  auto list = hex("00 00 00 00 00000000 00000000 0000 0000") + ranges;
  store_be16(&list[0], static_cast<uint16_t>(list.size() - 2));
  store_be16(&list[14], static_cast<uint16_t>(ranges.size()));
  return list;
}

std::vector<uint8_t> write_list(const std::vector<uint8_t>& ranges) {
  auto list = hex("00 00 02 00*5 0000000000000007 00*512 00*6 0000") + ranges;
  list[16] = 0xaa;
  store_be16(&list[0], static_cast<uint16_t>(list.size() - 2));
  store_be16(&list[534], static_cast<uint16_t>(ranges.size()));
  return list;
}

std::vector<uint8_t> cdb(uint8_t action, size_t length) {
  auto c = hex("83 00 00*4 cafebabe 00*4 00 00");
  c[1] = action;
  store_be32(&c[10], static_cast<uint32_t>(length));
  return c;
}

Outcome<PopulateToken> parse(const std::vector<uint8_t>& data) {
  return parse_populate_token(cdb(0x10, data.size()), kBounds, data);
}
Outcome<WriteUsingToken> parse_write(const std::vector<uint8_t>& data) {
  return parse_write_using_token(cdb(0x11, data.size()), kBounds, data);
}

TEST(PopulateTokenList, IsParsedIntoRangesAndOptions) {
  auto data = populate(kRange + kSecondRange);
  data[2] = 0x03;
  data[7] = 60;
  store_be32(&data[8], kRodTypeAccessUponReference);
  const auto request = parse(data);
  ASSERT_TRUE(request.ok()) << refusal_of(request);
  EXPECT_EQ(request->list_id, 0xcafebabe);
  EXPECT_TRUE(request->immed && request->type_valid);
  EXPECT_EQ(request->inactivity_seconds, 60u);
  EXPECT_EQ(request->rod_type, kRodTypeAccessUponReference);
  ASSERT_EQ(request->ranges.size(), 2u);
  EXPECT_EQ(request->ranges.at(1).lba, 0x30u);
  EXPECT_EQ(request->ranges.total_blocks(), 0x30u);
}

TEST(PopulateTokenList, AnEmptyListContainsNoRanges) {
  const auto request = parse({});
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(request->ranges.size(), 0u);
}

TEST(PopulateTokenList, LengthsAreChecked) {
  EXPECT_EQ(refusal_of(parse(hex("00*15"))), "1a/00");
  auto data = populate(kRange);
  data[1] = 0x1d;
  EXPECT_EQ(refusal_of(parse(data)), "26/00 0.7");
  data = populate(kRange);
  data[15] = 0x0f;
  EXPECT_EQ(refusal_of(parse(data)), "26/00 14.7");
  data = populate(kRange);
  data[15] = 0x11;
  EXPECT_EQ(refusal_of(parse(data)), "1a/00");
  data = populate(kRange);
  data.pop_back();
  EXPECT_EQ(refusal_of(parse(data)), "1a/00");
  EXPECT_EQ(refusal_of(parse_populate_token(cdb(0x10, 33), kBounds, populate(kRange))), "1a/00");
}

TEST(PopulateTokenList, RangesAreChecked) {
  EXPECT_EQ(refusal_of(parse(populate(kRange + kRange))), "26/00 32.7");  // the same block twice
  EXPECT_EQ(refusal_of(parse(populate(kRange + hex("0000000000000011 00000000 00*4")))), "ok");
  EXPECT_EQ(refusal_of(parse(populate(hex("00*64")))), "26/08 14.7");
  EXPECT_EQ(refusal_of(parse(populate(hex("0000000000000fff 00000002 00*4")))), "21/00 info 4096");
  EXPECT_EQ(refusal_of(parse(populate(hex("0000000000000000 00000801 00*4")))), "26/00 24.7");
}

TEST(PopulateTokenList, TypeAndTimerAreChecked) {
  auto data = populate(kRange);
  data[7] = 121;
  EXPECT_EQ(refusal_of(parse(data)), "26/00 4.7");
  data = populate(kRange);
  store_be32(&data[8], 0x00800002);
  EXPECT_EQ(refusal_of(parse(data)), "ok");  // RTV 0: ROD TYPE isn't looked at
  data[2] = 0x02;
  EXPECT_EQ(refusal_of(parse(data)), "26/00 8.7");
}

TEST(WriteUsingTokenList, IsParsedIntoTokenOffsetAndRanges) {
  const auto data = write_list(kRange);
  const auto request = parse_write(data);
  ASSERT_TRUE(request.ok()) << refusal_of(request);
  EXPECT_EQ(request->list_id, 0xcafebabe);
  EXPECT_TRUE(request->delete_token);
  EXPECT_FALSE(request->immed);
  EXPECT_EQ(request->offset_blocks, 7u);
  EXPECT_EQ(request->token.size(), kRodTokenBytes);
  EXPECT_EQ(request->token[0], 0xaa);
  EXPECT_EQ(request->ranges.at(0).blocks, 0x20u);
}

TEST(WriteUsingTokenList, LengthsAreChecked) {
  auto data = write_list(kRange);
  store_be16(&data[0], 549);
  EXPECT_EQ(refusal_of(parse_write(data)), "26/00 0.7");
  data = write_list(kRange);
  data.resize(535);
  EXPECT_EQ(refusal_of(parse_write(data)), "1a/00");
  data = write_list(kRange + kRange);
  EXPECT_EQ(refusal_of(parse_write(data)), "26/00 552.7");
}

TEST(TokenListId, IsReadFromBytes2To5OfReceiveRodTokenInformation) {
  EXPECT_EQ(token_list_id(hex("84 07 12345678 00*4 00*4 00 00")), 0x12345678u);
}

TEST(RodToken, HasTheStandardHeaderAndIsParsedAsItWasBuilt) {
  RodToken token;
  token.rod_type = kRodTypeAccessUponReference;
  token.copy_manager_id = 0x1122334455667788;
  token.secret.fill(0x5a);
  token.bytes_represented = 0x4000;
  token.unit_uuid.fill(0x77);
  RodTokenBytes bytes;
  std::vector<uint8_t> cscd(32, 0xc5);
  build_rod_token(token, cscd, 512, bytes);
  EXPECT_EQ(std::vector<uint8_t>(bytes.begin(), bytes.begin() + 100),
            hex("00010000 0000 01f8 1122334455667788 c5*32 00*8 0000000000004000 00*32 00000200"));
  RodToken back;
  ASSERT_TRUE(parse_rod_token(bytes, &back));
  EXPECT_EQ(back.copy_manager_id, token.copy_manager_id);
  EXPECT_EQ(back.secret, token.secret);
  EXPECT_EQ(back.bytes_represented, token.bytes_represented);
  EXPECT_EQ(back.unit_uuid, token.unit_uuid);
}

TEST(RodToken, TheZeroTokenIsIdentifiedByItsType) {
  const auto bytes = hex("ffff0001 0000 01f8 00*504");
  RodToken token;
  ASSERT_TRUE(parse_rod_token(bytes, &token));
  EXPECT_EQ(token.rod_type, kRodTypeZero);
}

TEST(RodToken, ForeignTokensAreRefusedWithTheReason) {
  EXPECT_EQ(refusal_of(read_rod_token(hex("00010000 0000 01f8 00*504"))), "23/04");
  EXPECT_EQ(refusal_of(read_rod_token(hex("00010000 0000 01f7 00*504"))), "23/0a");
  EXPECT_EQ(refusal_of(read_rod_token(hex("00800000 0000 01f8 00*504"))), "23/01");
  EXPECT_EQ(refusal_of(read_rod_token(hex("00010000 0000 01f8 00*503"))), "23/0a");
}

TEST(RodTokenInformation, CarriesTheTokenOfAPopulatedRod) {
  RodTokenBytes token;
  token.fill(0x99);
  const TokenOperation operation{.populate = true, .blocks_transferred = 0x1234, .token = &token};
  EXPECT_EQ(
      built([&](MutableBytes out) { return build_rod_token_information(operation, false, out); }),
      hex("00000222 10 01 0000 00000000 00 00 00 f1 0000000000001234 0000 00*6"
          " 00000202 0000 99*512"));
}

TEST(RodTokenInformation, CarriesTheSenseDataOfAFailure) {
  const TokenOperation operation{.state = TokenOperationState::kCompletedWithErrors,
                                 .blocks_transferred = 1,
                                 .status = Status::kCheckCondition,
                                 .sense = invalid_token(TokenFault::kExpired)};
  EXPECT_EQ(
      built([&](MutableBytes out) { return build_rod_token_information(operation, false, out); }),
      hex("00000034 11 02 0000 00000000 02 14 12 f1 0000000000000001 0000 00*6"
          " 70 00 05 00*4 0a 00*4 23 07 00*4 00*2 00000000"));
}

TEST(RodTokenInformation, ReportsTheDelayBeforeTheNextStatusRequest) {
  const TokenOperation operation{.state = TokenOperationState::kInProgressBackground,
                                 .update_delay_ms = 250};
  const auto data =
      built([&](MutableBytes out) { return build_rod_token_information(operation, false, out); });
  EXPECT_EQ(std::vector<uint8_t>(data.begin() + 4, data.begin() + 12), hex("11 12 0000 000000fa"));
}

}  // namespace
}  // namespace sluice::scsi
