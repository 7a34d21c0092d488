// What SCSI devices say of themselves, CDBs and answers: bytes in, bytes out.
#include <gtest/gtest.h>

#include <cerrno>
#include <random>
#include <vector>

#include "passthrough/scsi_medium.h"
#include "passthrough/sg_answer.h"
#include "passthrough/sg_commands.h"

namespace sluice::passthrough {
namespace {

using backend::Io;
using backend::Op;
using Bytes = std::vector<uint8_t>;

Bytes capacity16(uint64_t last, uint32_t block, uint8_t provisioning = 0) {
  Bytes data(32);
  store_be64(data.data(), last);
  store_be32(data.data() + 8, block);
  data[14] = provisioning;
  return data;
}

TEST(ScsiMedium, ParsesCapacityAndProvisioning) {
  ScsiMedium medium;
  ASSERT_TRUE(parse_capacity16(capacity16(16383, 512, 0xc0), medium).ok());
  EXPECT_EQ(medium.blocks, 16384u);
  EXPECT_EQ(medium.block_size, 512u);
  EXPECT_TRUE(medium.thin && medium.reads_zeros);
  Bytes small(8);
  store_be32(small.data(), 99);
  store_be32(small.data() + 4, 4096);
  ASSERT_TRUE(parse_capacity10(small, medium).ok());
  EXPECT_EQ(medium.blocks, 100u);
}

TEST(ScsiMedium, UnsupportedDevicesAreRefusedWithTheReason) {
  ScsiMedium medium;
  EXPECT_NE(parse_capacity16(capacity16(9, 520), medium).error().find("520 bytes"),
            std::string::npos);
  EXPECT_NE(parse_capacity16(capacity16(UINT64_MAX, 512), medium).error().find("beyond 8EiB"),
            std::string::npos);
  EXPECT_FALSE(parse_capacity16(Bytes(8), medium).ok());
  EXPECT_FALSE(parse_capacity10(Bytes(8, 0xff), medium).ok());
  Bytes inquiry(36);
  EXPECT_TRUE(parse_inquiry(inquiry).ok());
  inquiry[0] = 0x01;
  EXPECT_NE(parse_inquiry(inquiry).error().find("type 1"), std::string::npos);
  inquiry[0] = 0x14;
  EXPECT_FALSE(parse_inquiry(inquiry).ok()) << "host-managed zones";
  inquiry[0] = 0x60;
  EXPECT_FALSE(parse_inquiry(inquiry).ok()) << "nothing connected";
  EXPECT_FALSE(parse_inquiry(Bytes(20)).ok());
}

TEST(ScsiMedium, VpdPagesAreUsedOnlyIfTheirPageCodeMatches) {
  ScsiMedium medium;
  Bytes limits(64);
  limits[1] = 0xb0;
  limits[3] = 0x3c;
  store_be32(&limits[8], 2048);
  store_be32(&limits[20], 0x1000);
  store_be32(&limits[24], 256);
  store_be32(&limits[28], 8);
  store_be32(&limits[32], 0x80000003);
  store_be64(&limits[36], 0xffff);
  parse_block_limits(limits, medium);
  EXPECT_EQ(medium.max_transfer, 2048u);
  EXPECT_EQ(medium.max_unmap, 0x1000u);
  EXPECT_EQ(medium.unmap_granularity, 8u);
  EXPECT_EQ(medium.unmap_alignment, 3u);
  EXPECT_EQ(medium.max_write_same, 0xffffu);
  ScsiMedium other;
  limits[1] = 0xb1;
  parse_block_limits(limits, other);
  EXPECT_EQ(other.max_transfer, 0u) << "took another page";
  Bytes provisioning = {0, 0xb2, 0, 4, 0, 0xc0, 0, 0};
  parse_provisioning(provisioning, other);
  EXPECT_TRUE(other.unmap && other.write_same_unmap);
  const Bytes pages = {0, 0x00, 0, 3, 0x00, 0x83, 0xb0};
  EXPECT_TRUE(lists_page(pages, 0xb0));
  EXPECT_FALSE(lists_page(pages, 0xb2));
}

TEST(ScsiMedium, AGranularityBeyondFourGibibytesDisablesDiscard) {
  ScsiMedium medium;
  medium.block_size = 512;
  EXPECT_EQ(discard_granularity(medium), 512u);
  medium.unmap_granularity = 0x7fffff;
  EXPECT_EQ(discard_granularity(medium), 0xfffffe00u);
  medium.unmap_granularity = 0x800001;
  EXPECT_EQ(discard_granularity(medium), 0u) << "would be 512 by 32 bits";
}

TEST(ScsiMedium, TheCachingPageReportsWriteProtectionFuaAndVolatileCache) {
  Bytes mode = {0, 26, 0, 0x90, 0, 0, 0, 0, 0x88, 0x12, 0x04};
  ScsiMedium medium;
  parse_caching(mode, medium);
  EXPECT_TRUE(medium.write_protected && medium.fua && medium.volatile_cache);
  mode[3] = mode[10] = 0;
  parse_caching(mode, medium);
  EXPECT_FALSE(medium.write_protected || medium.fua || medium.volatile_cache);
  ScsiMedium silent;
  parse_caching({}, silent);
  EXPECT_TRUE(silent.volatile_cache) << "a cache is assumed";
}

// Under the sanitizers.
TEST(ScsiMedium, RandomDataIsNotReadBeyondItsEnd) {
  std::mt19937 random(3);
  for (unsigned round = 0; round < 3000; ++round) {
    Bytes data(random() % 80);
    for (uint8_t& byte : data) byte = static_cast<uint8_t>(random());
    if (data.size() > 1 && round % 2 == 0) data[1] = static_cast<uint8_t>(0xb0 + random() % 3);
    ScsiMedium medium;
    (void)parse_inquiry(data);
    if (parse_capacity16(data, medium)) {
      EXPECT_LE(medium.blocks, uint64_t{INT64_MAX} / medium.block_size);
    }
    (void)parse_capacity10(data, medium);
    parse_block_limits(data, medium);
    parse_characteristics(data, medium);
    parse_provisioning(data, medium);
    parse_caching(data, medium);
    EXPECT_GE(medium.unmap_granularity, 1u);
    (void)sense_code(data);
  }
}

SgTraits traits() {
  SgTraits t;
  t.medium.block_size = 512;
  t.medium.volatile_cache = true;
  t.medium.fua = true;
  t.medium.max_write_same = 0xffff;
  return t;
}

Io request(Op op, uint64_t offset, uint64_t length, uint8_t flags = 0) {
  Io io;
  io.op = op;
  io.offset = offset;
  io.length = length;
  io.flags = flags;
  Progress::begin(io);
  return io;
}

TEST(SgCommands, TransfersAreLimitedByDeviceAndDriver) {
  const auto most = [](uint64_t device, uint64_t driver, uint32_t block = 512) {
    ScsiMedium medium;
    medium.block_size = block;
    medium.max_transfer = device;
    return traits_of(medium, driver).max_transfer;
  };
  EXPECT_EQ(most(0, 0), 1u << 20);
  EXPECT_EQ(most(0, 128 << 10), 128u << 10);
  EXPECT_EQ(most(255, 0), 126976u) << "whole pages";
  EXPECT_EQ(most(7, 0), 3584u) << "less than a page";
  EXPECT_EQ(most(1, 1 << 20), 512u);
  EXPECT_EQ(most(1, 0, 4096), 4096u);
}

TEST(SgCommands, TenByteCdbsAreUsedUpToTheirLbaLimitAndSixteenByteCdbsBeyond) {
  Io io = request(Op::kRead, 512 * 0x1234, 4096);
  SgStep step = next_step(io, traits(), true, true);
  EXPECT_EQ(Bytes(step.cdb.begin(), step.cdb.begin() + 10),
            (Bytes{0x28, 0, 0, 0, 0x12, 0x34, 0, 0, 8, 0}));
  EXPECT_EQ(step.cdb_length, 10);
  EXPECT_FALSE(step.to_device);
  io = request(Op::kWrite, 512 * uint64_t{0x100000000}, 512);
  step = next_step(io, traits(), true, true);
  EXPECT_EQ(step.cdb[0], 0x8a);
  EXPECT_EQ(step.cdb[1], 0x08) << "FUA";
  EXPECT_EQ(load_be64(&step.cdb[2]), 0x100000000u);
  EXPECT_EQ(load_be32(&step.cdb[10]), 1u);
  EXPECT_EQ(step.cdb_length, 16);
  EXPECT_TRUE(step.to_device);
}

TEST(SgCommands, DurableWritesUseFuaOrASubsequentFlush) {
  Io io = request(Op::kWrite, 0, 512);
  SgTraits t = traits();
  EXPECT_FALSE(needs_flush(io, t, true));
  t.medium.fua = false;
  EXPECT_EQ(next_step(io, t, true, true).cdb[1], 0);
  EXPECT_TRUE(needs_flush(io, t, true));
  EXPECT_FALSE(needs_flush(io, t, false));
  Progress(io).flush_next();
  EXPECT_EQ(next_step(io, t, true, true).cdb[0], 0x35);
  t.medium.volatile_cache = false;
  EXPECT_FALSE(needs_flush(io, t, true));
}

TEST(SgCommands, ZerosAndDiscardsAreEncodedByTheCapabilitiesOfTheDevice) {
  SgTraits t = traits();
  Io io = request(Op::kWriteZeroes, 1024, uint64_t{64} << 20, backend::kIoMayUnmap);
  SgStep step = next_step(io, t, false, true);
  EXPECT_EQ(step.cdb[0], 0x93);
  EXPECT_EQ(step.cdb[1], 0) << "unmapped without a promise of zeros";
  EXPECT_EQ(step.bytes, 0xffffu * 512);
  EXPECT_EQ(step.data, 512u);
  t.discards_by_write_same = true;
  EXPECT_EQ(next_step(io, t, false, true).cdb[1], 0x08);
  EXPECT_EQ(next_step(io, t, false, false).cdb[0], 0x2a) << "after a refusal zeros are written";
  io = request(Op::kDiscard, 1024, 4096);
  EXPECT_EQ(next_step(io, t, false, true).cdb[0], 0x93);
  t.discards_by_write_same = false;
  step = next_step(io, t, false, true);
  EXPECT_EQ(step.cdb[0], 0x42);
  EXPECT_EQ(load_be64(&step.list[8]), 2u);
  EXPECT_EQ(load_be32(&step.list[16]), 8u);
}

TEST(SgCommands, ACdbIsPassedThroughUnchanged) {
  Io io = request(Op::kCdb, 0, 252);
  io.cdb = {0x4d, 0, 0x4d, 0, 0, 0, 0, 0, 0xfc, 0};
  const SgStep step = next_step(io, traits(), true, true);
  EXPECT_EQ(step.cdb, io.cdb);
  EXPECT_EQ(step.cdb_length, 10);
  EXPECT_EQ(step.data, 252u);
  io.cdb[0] = 0x1c;
  EXPECT_EQ(next_step(io, traits(), true, true).cdb_length, 6);
  io.cdb[0] = 0xb7;
  EXPECT_EQ(next_step(io, traits(), true, true).cdb_length, 12);
  io.cdb[0] = 0x9e;
  EXPECT_EQ(next_step(io, traits(), true, true).cdb_length, 16);
}

SgOutcome checked(uint8_t key, uint8_t asc, uint8_t ascq) {
  sg_io_hdr header = {};
  header.status = 0x02;
  Bytes fixed(18);
  fixed[0] = 0x70;
  fixed[2] = key;
  fixed[12] = asc;
  fixed[13] = ascq;
  const Bytes descriptor = {0x72, key, asc, ascq, 0, 0, 0, 0};
  const SgOutcome one = outcome_of(header, fixed);
  const SgOutcome other = outcome_of(header, descriptor);
  EXPECT_EQ(one.error, other.error);
  EXPECT_EQ(one.retry, other.retry);
  EXPECT_EQ(one.refused, other.refused);
  return one;
}

TEST(SgAnswer, SenseDataDeterminesErrorAndRetry) {
  EXPECT_EQ(checked(3, 0x11, 0).error, EIO);
  EXPECT_TRUE(checked(3, 0x11, 0).answered);
  EXPECT_EQ(checked(7, 0x27, 0).error, EROFS);
  EXPECT_EQ(checked(7, 0x27, 7).error, ENOSPC);
  EXPECT_EQ(checked(2, 0x04, 1).error, ENODEV);
  EXPECT_TRUE(checked(6, 0x29, 0).retry);
  EXPECT_TRUE(checked(5, 0x20, 0).refused);
  EXPECT_FALSE(checked(5, 0x21, 0).refused);
  EXPECT_EQ(checked(1, 0x17, 0).error, 0) << "recovered";
}

TEST(SgAnswer, ADeferredErrorFailsOrRetriesThePresentCommand) {
  sg_io_hdr header = {};
  header.status = 0x02;
  for (const Bytes& recovered : {Bytes{0x71, 0, 1, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x17, 0},
                                 Bytes{0x73, 1, 0x17, 0, 0, 0, 0, 0}}) {
    EXPECT_NE(outcome_of(header, recovered).error, 0);
    EXPECT_TRUE(outcome_of(header, recovered).retry);
  }
  for (const Bytes& lost : {Bytes{0xf1, 0, 3}, Bytes{0x73, 5, 0x20, 0, 0, 0, 0, 0}}) {
    const SgOutcome o = outcome_of(header, lost);
    EXPECT_NE(o.error, 0);
    EXPECT_TRUE(o.answered) << "reported to hosts as it came";
    EXPECT_FALSE(o.retry || o.refused);
  }
}

TEST(SgAnswer, TheHostStatusDeterminesTheErrorIfTheDeviceReportsNoStatus) {
  sg_io_hdr header = {};
  EXPECT_EQ(outcome_of(header, {}).error, 0);
  header.host_status = 0x01;
  EXPECT_EQ(outcome_of(header, {}).error, ENODEV);
  header.host_status = 0x03;
  EXPECT_EQ(outcome_of(header, {}).error, ETIMEDOUT);
  EXPECT_FALSE(outcome_of(header, {}).answered);
  header.host_status = 0;
  header.status = 0x18;
  EXPECT_TRUE(outcome_of(header, {}).answered);
}

}  // namespace
}  // namespace sluice::passthrough
