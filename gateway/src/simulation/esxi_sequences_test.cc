// What ESXi hosts send: device claiming by SATP_ALUA, the VAAI primitives (atomic test and set,
// full copy, block zeroing, thin provisioning), clustered VMDKs and error handling.
#include "simulation/host_fixture.h"

namespace sluice::simulation {
namespace {

class Esxi : public HostSequence {};

TEST_F(Esxi, ClaimsTheDeviceByItsNaaNameAndAlua) {
  std::vector<Designator> all = designators();
  bool naa = false;
  bool group = false;
  bool port = false;
  for (const Designator& d : all) {
    naa = naa || (d.type == 3 && d.association == 0);
    port = port || (d.type == 4 && d.association == 1);
    group = group || (d.type == 5 && d.association == 1);
  }
  EXPECT_TRUE(naa && group && port);
  expect_good(run("a3 0a 00 00 00 00 00 00 01 00 00 00", 256));
}

TEST_F(Esxi, AtsWritesOnlyWhenTheOldImageMatches) {
  const Bytes old = write(8, 1, 3);
  Bytes swap = old;
  swap.insert(swap.end(), 512, 0xee);
  const std::string caw = "89 00 00 00 00 00 00 00 00 08 00 00 00 01 00 00";
  expect_good(run(caw, 0, swap));
  EXPECT_EQ(read(8, 1), Bytes(512, 0xee));
  // Another host sends the same old image and its own new one: MISCOMPARE, and no write.
  Bytes late = old;
  late.insert(late.end(), 512, 0xdd);
  expect_sense(run(caw, 0, late), 0xe, 0x1d, 0x00);
  EXPECT_EQ(read(8, 1), Bytes(512, 0xee)) << "nothing was written";
}

TEST_F(Esxi, TheBlockLimitsPageReportsTheMaximumCompareAndWriteLength) {
  const auto limits = run("12 01 b0 00 ff 00", 255);
  ASSERT_GE(limits.data.size(), 6u);
  EXPECT_GE(limits.data[5], 1) << "MAXIMUM COMPARE AND WRITE LENGTH";
}

TEST_F(Esxi, FullCopyCopiesBlocksWithinAndAcrossLuns) {
  const Bytes source = write(0, 256, 9);
  // Operating parameters first (84h/03h), as the VAAI filter does.
  expect_good(run("84 03 00 00 00 00 00 00 00 00 00 00 02 00 00 00", 512));
  for (const uint64_t lun : {uint64_t{0}, uint64_t{1}}) {
    Bytes list(16 + 32 * 2 + 28);
    list[0] = 1;               // LIST IDENTIFIER
    store_be16(&list[2], 64);  // CSCD descriptor list
    store_be32(&list[8], 28);  // segment descriptor list
    const auto describe = [&](size_t at, uint64_t of) {
      const Bytes page = run("12 01 83 ff ff 00", 65535, {}, of).data;
      list[at] = 0xe4;
      for (size_t d = 4; d + 4 <= page.size(); d += 4 + page[d + 3]) {
        if ((page[d + 1] & 0x3f) != 3) continue;  // the LUN's NAA designator
        std::copy_n(page.begin() + static_cast<ptrdiff_t>(d), 4 + page[d + 3],
                    list.begin() + static_cast<ptrdiff_t>(at + 4));
        break;
      }
      list[at + 30] = 2;  // 512-byte blocks
    };
    describe(16, 0);
    describe(48, lun);
    uint8_t* segment = &list[80];
    segment[0] = 0x02;
    store_be16(segment + 2, 0x18);
    store_be16(segment + 4, 0);
    store_be16(segment + 6, 1);
    store_be16(segment + 10, 256);
    store_be64(segment + 12, 0);
    store_be64(segment + 20, 2048);
    Bytes cdb = hex("83 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00");
    store_be32(&cdb[10], static_cast<uint32_t>(list.size()));
    expect_good(host_.execute(cdb, 0, list));
    EXPECT_EQ(read(2048, 256, lun), source) << "to LUN " << lun;
  }
}

TEST_F(Esxi, BlockZeroingUsesWriteSame16) {
  write(0, 64, 5);
  expect_good(run("93 00 00 00 00 00 00 00 00 00 00 00 00 40 00 00", 0, Bytes(512)));
  EXPECT_EQ(read(0, 64), Bytes(64 * 512));
  // With UNMAP, to give the space back.
  write(0, 64, 6);
  expect_good(run("93 08 00 00 00 00 00 00 00 00 00 00 00 40 00 00", 0, Bytes(512)));
  EXPECT_EQ(read(0, 64), Bytes(64 * 512));
}

TEST_F(Esxi, UnmapGranularityIsReportedForAutomaticReclaim) {
  const auto limits = run("12 01 b0 00 ff 00", 255);
  ASSERT_GE(limits.data.size(), 36u);
  EXPECT_GT(load_be32(limits.data.data() + 24), 0u) << "MAXIMUM UNMAP BLOCK DESCRIPTOR COUNT";
  EXPECT_GT(load_be32(limits.data.data() + 28), 0u) << "OPTIMAL UNMAP GRANULARITY";
}

TEST_F(Esxi, FallsBackToReserve6AndRelease6) {
  expect_good(run("16 00 00 00 00 00"));
  EXPECT_EQ(run_other("00 00 00 00 00 00").status, 0x18);
  expect_good(run("17 00 00 00 00 00"));
  expect_good(run_other("00 00 00 00 00 00"));
}

TEST_F(Esxi, ClusteredVmdksReserveForAllRegistrantsType7) {
  expect_good(reserve_out(host_, 6, 0, 0, 0x11));
  expect_good(reserve_out(other_, 6, 0, 0, 0x22));
  expect_good(reserve_out(host_, 1, 7, 0x11, 0));
  EXPECT_EQ(other_.execute(write16(0, 1), 0, Bytes(512)).status, 0) << "a registrant may write";
  expect_good(reserve_out(other_, 6, 0, 0, 0));
  EXPECT_EQ(other_.execute(write16(0, 1), 0, Bytes(512)).status, 0x18) << "not any more";
}

TEST_F(Esxi, AbortTaskIsAnsweredAfterTheBackendCompletes) {
  gateway_.disk().hold(true);
  const auto stuck = host_.command(write16(0, 1), pdu::kFlagFinal | pdu::kFlagWrite | 1, 512);
  host_.send(stuck, Bytes(512, 1));
  for (const Answer& a : host_.answers()) {
    ASSERT_EQ(a.header.opcode(), pdu::Opcode::kR2t);
    host_.send(host_.data_out(stuck.itt(), a.header.target_transfer_tag(), 0, 0, true),
               Bytes(512, 1));
  }
  ASSERT_EQ(gateway_.disk().waiting(), 1u);
  pdu::Bhs abort = host_.request(pdu::Opcode::kTaskManagementRequest, true);
  abort.set_flags(0x80 | 1);
  abort.put32(20, stuck.itt());
  abort.put32(32, stuck.cmd_sn());
  host_.send(abort);
  EXPECT_TRUE(host_.answers().empty());
  gateway_.disk().release_all();
  gateway_.run();
  const auto answer = host_.answer();
  ASSERT_TRUE(answer) << "the TMF response alone: the aborted command is silent";
  EXPECT_EQ(answer->header.opcode(), pdu::Opcode::kTaskManagementResponse);
  EXPECT_EQ(answer->header.u8(2), 0);
}

}  // namespace
}  // namespace sluice::simulation
