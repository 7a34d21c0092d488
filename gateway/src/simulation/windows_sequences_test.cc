// What Windows hosts send to a disk, in the order they send it: disk.sys, the Microsoft DSM for
// MPIO and failover cluster validation, ODX copies. Each test is one demand of such a host.
#include "simulation/host_fixture.h"

namespace sluice::simulation {
namespace {

class Windows : public HostSequence {};

TEST_F(Windows, EnumeratesTheDiskWithReportLunsAndInquiry) {
  const auto luns = run("a0 00 00 00 00 00 00 00 10 00 00 00", 4096);
  expect_good(luns);
  ASSERT_GE(luns.data.size(), 24u);
  EXPECT_EQ(load_be32(luns.data.data()), 16u);
  const auto inquiry = run("12 00 00 00 24 00", 36);
  expect_good(inquiry);
  ASSERT_EQ(inquiry.data.size(), 36u);
  EXPECT_EQ(inquiry.data[0], 0x00) << "a connected block device";
  EXPECT_EQ(std::string(inquiry.data.begin() + 8, inquiry.data.begin() + 16), "SLUICE  ");
  expect_good(run("12 01 00 00 ff 00", 255));
  const auto serial = run("12 01 80 00 ff 00", 255);
  expect_good(serial);
  EXPECT_GT(serial.data[3], 0);
}

TEST_F(Windows, FindsANaaLunDesignatorInPage83) {
  bool naa = false;
  for (const Designator& d : designators()) {
    naa =
        naa || (d.type == 3 && d.association == 0 && (d.bytes.size() == 8 || d.bytes.size() == 16));
  }
  EXPECT_TRUE(naa);
}

TEST_F(Windows, DsmReadsImplicitAluaThroughReportTargetPortGroups) {
  const auto inquiry = run("12 00 00 00 24 00", 36);
  EXPECT_EQ(inquiry.data[5] >> 4 & 3, 1) << "TPGS: implicit only";
  const auto groups = run("a3 0a 00 00 00 00 00 00 01 00 00 00", 256);
  expect_good(groups);
  ASSERT_GE(groups.data.size(), 16u);
  EXPECT_EQ(groups.data[4] & 0xf, 0) << "Active/Optimized";
  // An explicit change is tried by some versions and must fail in this very way.
  expect_sense(run("a4 0a 00 00 00 00 00 00 00 08 00 00", 0, Bytes(8)), 5, 0x24, 0x00);
}

TEST_F(Windows, ClusterValidationReservesPreemptsAndReleasesWithType5) {
  constexpr uint64_t kA = 0xa1;
  constexpr uint64_t kB = 0xb2;
  expect_good(reserve_out(host_, 6, 0, 0, kA));
  expect_good(reserve_out(other_, 6, 0, 0, kB));
  const auto keys = run("5e 00 00 00 00 00 00 01 00 00", 256);
  expect_good(keys);
  EXPECT_EQ(load_be32(keys.data.data() + 4), 16u) << "both keys";
  expect_good(reserve_out(host_, 1, 5, kA, 0));
  EXPECT_EQ(reserve_out(other_, 1, 5, kB, 0).status, 0x18) << "RESERVATION CONFLICT";
  const auto holder = run("5e 01 00 00 00 00 00 01 00 00", 256);
  ASSERT_GE(holder.data.size(), 24u);
  EXPECT_EQ(load_be64(holder.data.data() + 8), kA);
  EXPECT_EQ(holder.data[21] & 0xf, 5);
  // The challenger takes over; the one pushed out hears of it and can't write any more.
  expect_good(reserve_out(other_, 4, 5, kB, kA));
  expect_sense(run("00 00 00 00 00 00"), 6, 0x2a, 0x05);
  EXPECT_EQ(host_.execute(write16(0, 1), 0, Bytes(512)).status, 0x18);
  expect_good(reserve_out(other_, 2, 5, kB, 0));
  expect_good(reserve_out(other_, 3, 0, kB, 0));
}

TEST_F(Windows, ReadsTheWriteCacheAndThinProvisioningPages) {
  expect_good(run("1a 00 08 00 c0 00", 192));
  expect_good(run("5a 00 3f 00 00 00 00 00 c0 00", 192));
  const auto limits = run("12 01 b0 00 ff 00", 255);
  expect_good(limits);
  ASSERT_GE(limits.data.size(), 36u);
  EXPECT_GT(load_be32(limits.data.data() + 20), 0u) << "MAXIMUM UNMAP LBA COUNT";
  const auto provisioning = run("12 01 b2 00 ff 00", 255);
  expect_good(provisioning);
  EXPECT_TRUE(provisioning.data[5] & 0x80) << "LBPU";
}

TEST_F(Windows, SeesA512eDiskInReadCapacity16) {
  const auto capacity = run("9e 10 00 00 00 00 00 00 00 00 00 00 00 20 00 00", 32);
  expect_good(capacity);
  ASSERT_EQ(capacity.data.size(), 32u);
  EXPECT_EQ(load_be64(capacity.data.data()), SimulatedGateway::kLunBytes / 512 - 1);
  EXPECT_EQ(load_be32(capacity.data.data() + 8), 512u);
  EXPECT_EQ(capacity.data[13] & 0xf, 3) << "eight logical blocks per physical one";
}

TEST_F(Windows, RetrimUnmapsAndGetLbaStatusShowsIt) {
  write(0, 64, 1);
  // One descriptor: 64 blocks from 0.
  Bytes list = hex("00 16 00 10 00 00 00 00  00 00 00 00 00 00 00 00  00 00 00 40 00 00 00 00");
  expect_good(run("42 00 00 00 00 00 00 00 18 00", 0, list));
  EXPECT_EQ(read(0, 64), Bytes(64 * 512));
  const auto status = run("9e 12 00 00 00 00 00 00 00 00 00 00 00 20 00 00", 32);
  expect_good(status);
  ASSERT_GE(status.data.size(), 24u);
  EXPECT_EQ(load_be64(status.data.data() + 8), 0u);
  EXPECT_EQ(status.data[20] & 0xf, 1) << "deallocated";
}

TEST_F(Windows, OdxCopiesByToken) {
  const Bytes source = write(0, 128, 7);
  const auto caps = run("12 01 8f 10 00 00", 4096);
  expect_good(caps);
  // POPULATE TOKEN, list identifier 1: blocks 0..127.
  Bytes populate =
      hex("00 1e 00 00 00 00 00 00 00 00 00 00 00 00 00 10"
          "00 00 00 00 00 00 00 00 00 00 00 80 00 00 00 00");
  expect_good(run("83 10 00 00 00 00 00 00 00 01 00 00 00 20 00 00", 0, populate));
  // RECEIVE ROD TOKEN INFORMATION for list identifier 1.
  const auto info = run("84 07 00 00 00 01 00 00 00 00 00 00 04 00 00 00", 1024);
  expect_good(info);
  ASSERT_GE(info.data.size(), 32u + 4 + 2 + 512);
  // The token sits behind the fixed part, the sense area and the token descriptor's header.
  const size_t sense_length = info.data[13];
  const size_t token_at = 32 + sense_length + 4 + 2;
  ASSERT_GE(info.data.size(), token_at + 512);
  Bytes use(536 + 16);
  store_be16(use.data(), static_cast<uint16_t>(use.size() - 2));
  std::copy_n(info.data.begin() + static_cast<ptrdiff_t>(token_at), 512, use.begin() + 16);
  store_be16(use.data() + 534, 16);
  store_be64(use.data() + 536, 1024);
  store_be32(use.data() + 544, 128);
  expect_good(run("83 11 00 00 00 00 00 00 00 02 00 00 02 28 00 00", 0, use));
  EXPECT_EQ(read(1024, 128), source);
}

TEST_F(Windows, ResetsALunAfterATimeoutAndContinues) {
  gateway_.disk().hold(true);
  const auto stuck = host_.command(read16(0, 8), pdu::kFlagFinal | pdu::kFlagRead | 1, 4096);
  host_.send(stuck);
  pdu::Bhs reset = host_.request(pdu::Opcode::kTaskManagementRequest, true);
  reset.set_flags(0x80 | 5);
  host_.send(reset);
  EXPECT_TRUE(host_.answers().empty()) << "not before the disk has completed it";
  gateway_.disk().hold(false);
  gateway_.disk().release_all();
  gateway_.run();
  const auto answer = host_.answer();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->header.opcode(), pdu::Opcode::kTaskManagementResponse);
  EXPECT_EQ(answer->header.u8(2), 0);
  expect_sense(run("00 00 00 00 00 00"), 6, 0x29, 0x03);
  expect_good(run("00 00 00 00 00 00"));
}

}  // namespace
}  // namespace sluice::simulation
