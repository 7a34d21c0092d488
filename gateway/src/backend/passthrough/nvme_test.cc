// Identify data, commands and status codes of NVMe: bytes in, bytes out.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <random>
#include <vector>

#include "passthrough/nvme_commands.h"
#include "passthrough/nvme_identify.h"
#include "passthrough/nvme_status.h"

namespace sluice::passthrough {
namespace {

using backend::Io;
using backend::Op;
using scsi::SenseKey;
using scsi::Status;

std::vector<uint8_t> namespace_data(uint64_t blocks, uint8_t exponent, uint16_t metadata = 0) {
  std::vector<uint8_t> data(kIdentifyBytes);
  for (unsigned i = 0; i < 8; ++i) data[i] = static_cast<uint8_t>(blocks >> (8 * i));
  data[25] = 1;  // two formats
  data[26] = 1;  // of which the second
  data[33] = 0x09;
  data[132] = static_cast<uint8_t>(metadata);
  data[133] = static_cast<uint8_t>(metadata >> 8);
  data[134] = exponent;
  return data;
}

bool refused_for(const std::vector<uint8_t>& data, const std::string& words) {
  const auto parsed = parse_namespace(data);
  return !parsed.ok() && parsed.error().find(words) != std::string::npos;
}

TEST(NvmeIdentify, ANamespaceReportsItsSizeAndDeallocationBehaviour) {
  for (uint8_t exponent : {uint8_t{9}, uint8_t{12}}) {
    const auto parsed = parse_namespace(namespace_data(0x123456789, exponent));
    ASSERT_TRUE(parsed.ok()) << parsed.error();
    EXPECT_EQ(parsed.value().blocks, 0x123456789u);
    EXPECT_EQ(parsed.value().block_size, 1u << exponent);
    EXPECT_TRUE(parsed.value().reads_zeros);
    EXPECT_TRUE(parsed.value().zeroes_deallocate);
    EXPECT_FALSE(parsed.value().write_protected);
  }
}

TEST(NvmeIdentify, UnsupportedFormatsAreRefusedWithTheReason) {
  EXPECT_TRUE(refused_for(namespace_data(8, 9, 8), "8 bytes of metadata"));
  EXPECT_TRUE(refused_for(namespace_data(8, 9, 64), "nvme format"));
  EXPECT_TRUE(refused_for(namespace_data(8, 13), "2^13"));
  EXPECT_TRUE(refused_for(namespace_data(0, 9), "no blocks"));
  EXPECT_TRUE(refused_for(namespace_data(UINT64_MAX, 9), "beyond 8EiB"));
  std::vector<uint8_t> data = namespace_data(8, 9);
  data[26] = 5;
  EXPECT_TRUE(refused_for(data, "format 5 of 2"));
  data = namespace_data(8, 9);
  data[29] = 1;
  EXPECT_TRUE(refused_for(data, "metadata")) << "protection information";
  EXPECT_TRUE(refused_for(std::vector<uint8_t>(100), "too short"));
}

TEST(NvmeIdentify, AControllerReportsItsLimitsAndFeatures) {
  std::vector<uint8_t> data(kIdentifyBytes);
  data[77] = 5;
  data[520] = 0x0c;
  data[525] = 1;
  auto parsed = parse_controller(data);
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->max_transfer, 128u << 10);
  EXPECT_TRUE(parsed->deallocates && parsed->writes_zeroes && parsed->volatile_cache);
  data[77] = 0;
  data[520] = data[525] = 0;
  parsed = parse_controller(data);
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->max_transfer, 0u) << "no limit";
  EXPECT_FALSE(parsed->deallocates || parsed->writes_zeroes || parsed->volatile_cache);
  data[77] = 0xff;
  EXPECT_EQ(parse_controller(data)->max_transfer, 0u) << "would overflow";
}

// Under the sanitizers: nothing is read outside, nothing is claimed that can't be.
TEST(NvmeIdentify, RandomDataIsRefusedOrYieldsAValidNamespace) {
  std::mt19937 random(5);
  for (unsigned round = 0; round < 2000; ++round) {
    std::vector<uint8_t> data(round % 50 == 0 ? random() % kIdentifyBytes : kIdentifyBytes);
    for (uint8_t& byte : data) byte = static_cast<uint8_t>(random());
    if (data.size() > 300 && round % 2 == 0) {
      for (size_t i = 128; i < 384 && i < data.size(); ++i) data[i] = i % 4 == 2 ? 9 : 0;
      if (data.size() > 29) data[29] = 0;
    }
    const auto parsed = parse_namespace(data);
    if (!parsed) {
      EXPECT_FALSE(parsed.error().empty());
      continue;
    }
    EXPECT_TRUE(parsed.value().block_size == 512 || parsed.value().block_size == 4096);
    EXPECT_LE(parsed.value().blocks, uint64_t{INT64_MAX} / parsed.value().block_size);
    (void)parse_controller(data);
    (void)parse_write_zeroes_limit(data);
  }
}

NvmeTraits traits() {
  NvmeTraits t;
  t.nsid = 7;
  t.block_size = 4096;
  t.max_transfer = 128 << 10;
  t.volatile_cache = t.deallocates = t.writes_zeroes = true;
  return t;
}

NvmeStep step(Op op, uint64_t offset, uint64_t length, bool durable, const NvmeTraits& t,
              uint8_t flags = 0) {
  Io io;
  io.op = op;
  io.offset = offset;
  io.length = length;
  io.flags = flags;
  Progress::begin(io);
  return next_step(io, t, durable);
}

TEST(NvmeCommands, ReadsAndWritesEncodeZeroBasedBlockCountsAndFua) {
  const uint64_t far = uint64_t{0x100000001} * 4096;
  const NvmeStep read = step(Op::kRead, far, 8192, true, traits());
  EXPECT_EQ(read.command.opcode, 0x02);
  EXPECT_EQ(read.command.nsid, 7u);
  EXPECT_EQ(read.command.cdw10, 1u);
  EXPECT_EQ(read.command.cdw11, 1u);
  EXPECT_EQ(read.command.cdw12, 1u) << "two blocks, 0's based, no FUA";
  EXPECT_EQ(read.bytes, 8192u);
  const NvmeStep write = step(Op::kWrite, 4096, 4096, true, traits());
  EXPECT_EQ(write.command.opcode, 0x01);
  EXPECT_EQ(write.command.cdw12, 1u << 30) << "one block, FUA";
  EXPECT_EQ(step(Op::kWrite, 4096, 4096, false, traits()).command.cdw12, 0u);
  NvmeTraits uncached = traits();
  uncached.volatile_cache = false;
  EXPECT_EQ(step(Op::kWrite, 4096, 4096, true, uncached).command.cdw12, 0u);
}

TEST(NvmeCommands, TransfersAreLimitedToTheMaximumOfTheDrive) {
  const NvmeStep cut = step(Op::kRead, 0, uint64_t{1} << 20, false, traits());
  EXPECT_EQ(cut.bytes, 128u << 10);
  EXPECT_EQ(cut.command.cdw12, 31u);
}

TEST(NvmeCommands, FlushAndDiscardAreEncodedAsFlushAndDeallocate) {
  EXPECT_EQ(step(Op::kFlush, 0, 0, false, traits()).command.opcode, 0x00);
  const NvmeStep discard = step(Op::kDiscard, 8192, uint64_t{1} << 30, false, traits());
  EXPECT_EQ(discard.command.opcode, 0x09);
  EXPECT_EQ(discard.command.cdw10, 0u) << "one range, 0's based";
  EXPECT_EQ(discard.command.cdw11, 4u);
  EXPECT_EQ(discard.range.first, 2u);
  EXPECT_EQ(discard.range.blocks, (uint64_t{1} << 30) / 4096);
  Io io;
  io.op = Op::kDiscard;
  EXPECT_TRUE(needs_flush(io, traits(), true));
  EXPECT_FALSE(needs_flush(io, traits(), false));
}

TEST(NvmeCommands, ZerosDeallocateOnlyOnRequestAndIfDeallocatedBlocksReadZeros) {
  NvmeTraits t = traits();
  constexpr uint32_t kDeac = 1u << 25;
  EXPECT_EQ(step(Op::kWriteZeroes, 0, 4096, false, t, backend::kIoMayUnmap).command.cdw12, 0u);
  t.discards_by_zeroes = true;
  EXPECT_EQ(step(Op::kWriteZeroes, 0, 4096, false, t, backend::kIoMayUnmap).command.cdw12, kDeac);
  EXPECT_EQ(step(Op::kWriteZeroes, 0, 4096, false, t).command.cdw12, 0u);
  const NvmeStep discard = step(Op::kDiscard, 0, 4096, true, t);
  EXPECT_EQ(discard.command.opcode, 0x08);
  EXPECT_EQ(discard.command.cdw12, kDeac | 1u << 30);
  t.writes_zeroes = t.discards_by_zeroes = false;
  const NvmeStep written = step(Op::kWriteZeroes, 0, 4096, false, t);
  EXPECT_EQ(written.command.opcode, 0x01);
  EXPECT_EQ(written.source, Source::kZeros);
}

TEST(NvmeStatus, EveryCodeMapsToItsSenseDataAndErrno) {
  struct Case {
    uint16_t status;
    SenseKey key;
    uint8_t asc, ascq;
    int error;
  };
  for (const Case& c : {Case{0x001, SenseKey::kIllegalRequest, 0x20, 0x00, EOPNOTSUPP},
                        Case{0x002, SenseKey::kIllegalRequest, 0x24, 0x00, EINVAL},
                        Case{0x006 | 0x4000, SenseKey::kHardwareError, 0x44, 0x00, EREMOTEIO},
                        Case{0x00b, SenseKey::kIllegalRequest, 0x20, 0x09, ENODEV},
                        Case{0x020, SenseKey::kDataProtect, 0x27, 0x00, EROFS},
                        Case{0x080, SenseKey::kIllegalRequest, 0x21, 0x00, EINVAL},
                        Case{0x082, SenseKey::kNotReady, 0x04, 0x00, ENODEV},
                        Case{0x280, SenseKey::kMediumError, 0x03, 0x00, EIO},
                        Case{0x281 | 0x4000, SenseKey::kMediumError, 0x11, 0x00, EIO},
                        Case{0x285, SenseKey::kMiscompare, 0x1d, 0x00, EILSEQ},
                        Case{0x286, SenseKey::kIllegalRequest, 0x20, 0x09, EACCES},
                        Case{0x303, SenseKey::kNotReady, 0x04, 0x0a, ENODEV},
                        Case{0x7c0, SenseKey::kHardwareError, 0x44, 0x00, EREMOTEIO}}) {
    const NvmeOutcome outcome = outcome_of(c.status);
    EXPECT_EQ(outcome.status, Status::kCheckCondition) << c.status;
    EXPECT_EQ(outcome.sense.key, c.key) << c.status;
    EXPECT_EQ(outcome.sense.asc, c.asc) << c.status;
    EXPECT_EQ(outcome.sense.ascq, c.ascq) << c.status;
    EXPECT_EQ(outcome.error, c.error) << c.status;
    EXPECT_FALSE(outcome.retry) << c.status;
  }
  EXPECT_EQ(outcome_of(0).error, 0);
  EXPECT_EQ(outcome_of(0x083).status, Status::kReservationConflict);
  EXPECT_EQ(outcome_of(0x021 | 0x4000).status, Status::kBusy);
}

TEST(NvmeStatus, OnlyTransientErrorsAreRetriedAndRetriesAreBounded) {
  EXPECT_TRUE(outcome_of(0x006).retry);
  EXPECT_TRUE(outcome_of(0x021).retry);
  EXPECT_FALSE(outcome_of(0x006 | 0x4000).retry) << "Do Not Retry";
  EXPECT_FALSE(outcome_of(0x281).retry);
  Io io;
  Progress::begin(io);
  unsigned attempts = 0;
  while (Progress(io).retry()) ASSERT_LT(++attempts, 100u);
  EXPECT_GT(attempts, 0u);
}

}  // namespace
}  // namespace sluice::passthrough
