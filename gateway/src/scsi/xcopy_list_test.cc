#include "scsi/xcopy_list.h"

#include <gtest/gtest.h>

#include "scsi/expected_bytes.h"
#include "scsi/identity.h"
#include "scsi/receive_copy.h"
#include "scsi/refusal_text.h"

namespace sluice::scsi {
namespace {

const ThirdPartyCopyLimits kLimits{.max_cscds = 4, .max_segments = 8};

const auto kCscd = hex("e4 00 00 00  01 03 00 08 31 23 45 67 89 ab cd ef 00*12  04 00 02 00");
const auto kSegment = hex("02 03 00 18 00 01 00 02 00 00 08 00 0000000000000010 0000000000000020");

std::vector<uint8_t> list_of(size_t cscds, size_t segments, uint8_t id = 1, uint8_t flags = 0) {
  auto list = hex("00*16");
  list[0] = id;
  list[1] = flags;
  store_be16(&list[2], static_cast<uint16_t>(cscds * 32));
  store_be32(&list[8], static_cast<uint32_t>(segments * 28));
  for (size_t i = 0; i < cscds; ++i) list = list + kCscd;
  for (size_t i = 0; i < segments; ++i) list = list + kSegment;
  return list;
}

Outcome<XcopyList> parse(const std::vector<uint8_t>& data, int declared_length = -1) {
  auto cdb = hex("83 00*15");
  store_be32(&cdb[10], static_cast<uint32_t>(declared_length < 0 ? static_cast<int>(data.size())
                                                                 : declared_length));
  return parse_xcopy(cdb, kLimits, data);
}

TEST(XcopyList, IsParsedIntoDescriptorsAndSegments) {
  const auto data = list_of(2, 1, 9, 0x35);
  const auto list = parse(data);
  ASSERT_TRUE(list.ok()) << refusal_of(list);
  EXPECT_EQ(list->list_id, 9);
  EXPECT_EQ(list->list_id_usage, 2);
  EXPECT_EQ(list->priority, 5);
  EXPECT_TRUE(list->sequential && list->retains_results());
  ASSERT_EQ(list->cscd_count(), 2u);
  ASSERT_EQ(list->segment_count(), 1u);
  const CscdDescriptor cscd = list->cscd(1);
  EXPECT_TRUE(cscd.pad);
  EXPECT_EQ(cscd.block_length, 512u);
  EXPECT_EQ(cscd.designator.size(), 12u);
  Identity identity;
  identity.uuid = {0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0x4d, 0xef};
  EXPECT_TRUE(designates(cscd.designator, identity));
  const CopySegment segment = list->segment(0);
  EXPECT_TRUE(segment.destination_count && segment.cat);
  EXPECT_EQ(segment.source, 1);
  EXPECT_EQ(segment.destination, 2);
  EXPECT_EQ(segment.blocks, 0x800);
  EXPECT_EQ(segment.source_lba, 0x10u);
  EXPECT_EQ(segment.destination_lba, 0x20u);
}

TEST(XcopyList, AnEmptyListContainsNoSegments) {
  const auto list = parse({});
  ASSERT_TRUE(list.ok());
  EXPECT_EQ(list->segment_count(), 0u);
  EXPECT_FALSE(list->retains_results());
}

TEST(XcopyList, TruncatedListsAreLengthErrors) {
  auto in_cscd = list_of(1, 1);
  in_cscd.resize(16 + 31);
  EXPECT_EQ(refusal_of(parse(in_cscd)), "1a/00");
  auto in_segment = list_of(1, 1);
  in_segment.pop_back();
  EXPECT_EQ(refusal_of(parse(in_segment)), "1a/00");
  EXPECT_EQ(refusal_of(parse(list_of(1, 1), 77)), "1a/00");
  EXPECT_EQ(refusal_of(parse(hex("00*15"))), "1a/00");
}

TEST(XcopyList, TooManyDescriptorsAreRefused) {
  EXPECT_EQ(refusal_of(parse(list_of(4, 8))), "ok");
  EXPECT_EQ(refusal_of(parse(list_of(5, 1))), "26/06 2.7");
  EXPECT_EQ(refusal_of(parse(list_of(1, 9))), "26/08 8.7");
  EXPECT_EQ(refusal_of(parse(list_of(5, 8))), "1a/00");  // beyond the longest list
}

TEST(XcopyList, UnknownDescriptorTypesAreRefused) {
  auto cscd = list_of(2, 1);
  cscd[16 + 32] = 0xe0;
  EXPECT_EQ(refusal_of(parse(cscd)), "26/07 48.7");
  auto segment = list_of(1, 2);
  segment[16 + 32 + 28] = 0x03;
  EXPECT_EQ(refusal_of(parse(segment)), "26/09 76.7");
  auto short_unknown = list_of(1, 1);
  short_unknown[48] = 0x03;
  short_unknown.resize(16 + 32 + 20);
  store_be32(&short_unknown[8], 20);
  EXPECT_EQ(refusal_of(parse(short_unknown)), "26/09 48.7");
}

TEST(XcopyList, InvalidFieldsAreRefused) {
  EXPECT_EQ(refusal_of(parse(list_of(1, 1, 0, 0x18))), "ok");
  EXPECT_EQ(refusal_of(parse(list_of(1, 1, 1, 0x18))), "26/00 0.7");  // an unknown list id
  EXPECT_EQ(refusal_of(parse(list_of(1, 1, 1, 0x08))), "26/00 1.4");
  auto inline_data = list_of(1, 1);
  inline_data[15] = 1;
  EXPECT_EQ(refusal_of(parse(inline_data)), "26/0b 12.7");
  auto odd = list_of(1, 1);
  odd[3] = 31;
  EXPECT_EQ(refusal_of(parse(odd)), "26/00 2.7");
  auto long_designator = list_of(1, 1);
  long_designator[16 + 7] = 21;
  EXPECT_EQ(refusal_of(parse(long_designator)), "26/00 23.7");
  auto length = list_of(1, 1);
  length[16 + 32 + 3] = 0x14;
  EXPECT_EQ(refusal_of(parse(length)), "26/00 50.7");
  auto huge = list_of(1, 1);
  store_be32(&huge[8], 0xffffffff);
  EXPECT_EQ(refusal_of(parse(huge)), "1a/00");
}

TEST(XcopyList, SegmentFailuresNameTheSegment) {
  std::array<uint8_t, kMaxSenseBytes> out;
  encode(unreachable_cscd(0x0102, true), false, out);
  EXPECT_EQ(std::vector<uint8_t>(out.begin(), out.begin() + 18),
            hex("70 00 0a 00*4 0a 00 00 01 02 08 04 00 a0 00 06"));
  const CopyCause cause{.party = CopyParty::kDestination,
                        .status = Status::kCheckCondition,
                        .key = SenseKey::kMediumError,
                        .asc = 0x0c,
                        .has_information = true,
                        .information = 7};
  ASSERT_EQ(encode(copy_aborted(3, cause, 5), false, out), 37u);
  EXPECT_EQ(std::vector<uint8_t>(out.begin(), out.begin() + 37),
            hex("f0 00 0a 00 00 00 05 1d 00 12 00 03 0d 01 00*4 "
                "02 f0 00 03 00 00 00 07 0a 00*4 0c 00*5"));
  ASSERT_EQ(encode(copy_aborted(3, cause), true, out), 44u);
  EXPECT_EQ(std::vector<uint8_t>(out.begin(), out.begin() + 44),
            hex("72 0a 0d 01 00 00 00 24  01 0a 00*8 00 03"
                "0c 16 02 02 72 03 0c 00 00*3 0c 00 0a 80 00 00*7 07"));
  const CopyCause conflict{.party = CopyParty::kSource, .status = Status::kReservationConflict};
  ASSERT_EQ(encode(copy_aborted(3, conflict), false, out), 19u);
  EXPECT_EQ(out[8], 0x12);
  EXPECT_EQ(out[18], 0x18);
  EXPECT_EQ(copy_aborted(3, {.key = SenseKey::kNotReady}).ascq, 0x02);
}

TEST(ReceiveCopy, OperatingParametersReportTheLimits) {
  const ThirdPartyCopyLimits limits{.max_cscds = 16,
                                    .max_segments = 256,
                                    .max_segment_bytes = 0x01fffe00,
                                    .total_concurrent = 0x0102,
                                    .max_concurrent = 0x0102,
                                    .granularity_log2 = 9};
  EXPECT_EQ(built([&](MutableBytes out) { return build_operating_parameters(limits, out); }),
            hex("0000002a 01 00*3 0010 0100 00001e00 01fffe00 00*4 00*4 00*4 0000 0102 ff 09 00 00"
                "00*3 02 02 e4"));
}

TEST(ReceiveCopy, CopyStatusScalesItsCount) {
  const auto run = [](const CopyResult& r) {
    return built([&](MutableBytes out) { return build_copy_status(r, out); });
  };
  EXPECT_EQ(run({.state = CopyState::kCompletedWithoutErrors,
                 .segments_processed = 3,
                 .bytes_transferred = 0xffffffff}),
            hex("00000008 01 0003 00 ffffffff"));
  EXPECT_EQ(run({.state = CopyState::kInProgress, .bytes_transferred = uint64_t{5} << 32}),
            hex("00000008 00 0000 01 01400000"));
  EXPECT_EQ(run({.bytes_transferred = UINT64_MAX}), hex("00000008 00 0000 04 00ffffff"));
}

TEST(ReceiveCopy, FailedSegmentDetailsAreReportedOnlyForFailures) {
  const auto run = [](const CopyResult& r) {
    return built([&](MutableBytes out) { return build_failed_segment_details(r, false, out); });
  };
  EXPECT_EQ(run({.state = CopyState::kCompletedWithoutErrors}), hex("00000000"));
  EXPECT_EQ(run({.state = CopyState::kCompletedWithErrors,
                 .status = Status::kCheckCondition,
                 .sense = Sense::make(SenseKey::kMediumError, 0x11, 0x00)}),
            hex("0000004a 00*52 02 00 0012 70 00 03 00*4 0a 00*4 11 00 00*4"));
  EXPECT_EQ(run({.state = CopyState::kCompletedWithErrors, .status = Status::kBusy}),
            hex("00000038 00*52 08 00 0000"));
  EXPECT_EQ(built([](MutableBytes out) { return build_receive_data(out); }), hex("00000000"));
}

}  // namespace
}  // namespace sluice::scsi
