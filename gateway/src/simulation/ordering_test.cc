// Command numbering (RFC 7143 §4.2.2.1) and digests (§7.8) over a whole session.
#include <gtest/gtest.h>

#include "simulation/initiator.h"

namespace sluice::simulation {
namespace {

using pdu::Opcode;

class Ordering : public testing::Test {
 protected:
  void log_in(uint32_t first_cmd_sn, uint32_t window) {
    iscsi::Settings settings;
    settings.command_window = window;
    gateway_ = std::make_unique<SimulatedGateway>(settings);
    host_ = std::make_unique<Initiator>(gateway_->connect());
    host_->cmd_sn = first_cmd_sn;
    ASSERT_TRUE(host_->login());
    host_->clear_attention();
  }
  pdu::Bhs ready(uint32_t cmd_sn) {
    pdu::Bhs h = host_->command(kTestUnitReady, pdu::kFlagFinal | 1, 0);
    --host_->cmd_sn;
    h.put32(24, cmd_sn);
    return h;
  }
  std::vector<uint32_t> answered() {
    std::vector<uint32_t> tags;
    for (const Answer& a : host_->answers()) tags.push_back(a.header.itt());
    return tags;
  }
  std::unique_ptr<SimulatedGateway> gateway_;
  std::unique_ptr<Initiator> host_;
};

TEST_F(Ordering, QueuesEarlyCommandsUntilTheCmdSnGapIsFilled) {
  log_in(1, 16);
  const uint32_t sn = host_->cmd_sn;
  const auto third = ready(sn + 2);
  const auto second = ready(sn + 1);
  const auto first = ready(sn);
  host_->send(third);
  host_->send(second);
  EXPECT_TRUE(answered().empty());
  host_->send(first);
  EXPECT_EQ(answered(), (std::vector{first.itt(), second.itt(), third.itt()}));
}

TEST_F(Ordering, IgnoresDuplicatesAndCmdSnsOutsideTheWindow) {
  log_in(1, 16);
  const uint32_t sn = host_->cmd_sn;
  host_->send(ready(sn - 1));
  host_->send(ready(sn + 16));
  host_->send(ready(sn + 1));
  host_->send(ready(sn + 1));
  EXPECT_TRUE(answered().empty());
  host_->send(ready(sn));
  EXPECT_EQ(answered().size(), 2u) << "the missing one and one of the two duplicates";
}

TEST_F(Ordering, ExecutesImmediateCommandsWithoutDelayOrConsumingACmdSn) {
  log_in(1, 16);
  const uint32_t sn = host_->cmd_sn;
  host_->send(ready(sn + 1));
  pdu::Bhs now = ready(sn);
  now.put8(0, now.u8(0) | 0x40);
  host_->send(now);
  EXPECT_EQ(answered(), std::vector{now.itt()});
  host_->send(ready(sn));
  EXPECT_EQ(answered().size(), 2u);
}

TEST_F(Ordering, WindowClosesWhileCommandsRunAndOpensAsTheyEnd) {
  log_in(1, 4);
  gateway_->disk().hold(true);
  for (int i = 0; i < 4; ++i) {
    host_->send(host_->command(read16(0, 1), pdu::kFlagFinal | pdu::kFlagRead | 1, 512));
  }
  EXPECT_EQ(gateway_->disk().waiting(), 4u);
  host_->send(host_->command(read16(0, 1), pdu::kFlagFinal | pdu::kFlagRead | 1, 512));
  EXPECT_EQ(gateway_->disk().waiting(), 4u) << "outside the window: ignored";
  --host_->cmd_sn;
  gateway_->disk().release_one();
  gateway_->run();
  const auto a = host_->answer();
  ASSERT_TRUE(a);
  EXPECT_EQ(a->header.u32(28), host_->cmd_sn) << "ExpCmdSN";
  EXPECT_EQ(a->header.u32(32), host_->cmd_sn) << "MaxCmdSN: one place is free";
}

TEST_F(Ordering, CountsAcrossTheCmdSnWraparound) {
  log_in(0xfffffff0, 8);
  for (int i = 0; i < 64; ++i) ASSERT_EQ(host_->execute(kTestUnitReady, 0).status, 0) << i;
}

TEST_F(Ordering, BoundsImmediateCommandsInFlight) {
  log_in(1, 8);
  gateway_->disk().hold(true);
  size_t rejected = 0;
  for (uint32_t i = 0; i < limits::kMaxImmediateCommands + 5; ++i) {
    pdu::Bhs h = host_->command(read16(0, 1), pdu::kFlagFinal | pdu::kFlagRead | 1, 512);
    --host_->cmd_sn;
    h.put8(0, h.u8(0) | 0x40);
    host_->send(h);
    for (const Answer& a : host_->answers()) {
      rejected += a.header.opcode() == Opcode::kReject && a.header.u8(2) == 0x06;
    }
  }
  EXPECT_EQ(rejected, 5u);
}

TEST_F(Ordering, RejectsATagThatIsInUse) {
  log_in(1, 8);
  gateway_->disk().hold(true);
  pdu::Bhs h = host_->command(read16(0, 1), pdu::kFlagFinal | pdu::kFlagRead | 1, 512);
  host_->send(h);
  pdu::Bhs again = host_->command(read16(0, 1), pdu::kFlagFinal | pdu::kFlagRead | 1, 512);
  again.set_itt(h.itt());
  host_->send(again);
  const auto a = host_->answer();
  ASSERT_TRUE(a);
  EXPECT_EQ(a->header.opcode(), Opcode::kReject);
  EXPECT_EQ(a->header.u8(2), 0x07);
  ASSERT_EQ(a->data.size(), pdu::kBhsSize) << "carries the header";
  EXPECT_EQ(load_be32(a->data.data() + 16), h.itt());
}

class Digests : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(host_.login({"HeaderDigest=CRC32C", "DataDigest=CRC32C"}));
    host_.set_digests(true, true);
    host_.clear_attention();
  }
  SimulatedGateway gateway_;
  Initiator host_{gateway_.connect()};
};

TEST_F(Digests, ARoundTripWithDigestsPreservesData) {
  std::vector<uint8_t> data(262144 + 512);
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<uint8_t>(i * 31);
  EXPECT_EQ(host_.execute(write16(0, 513), 0, data).status, 0);
  EXPECT_EQ(host_.execute(read16(0, 513), static_cast<uint32_t>(data.size())).data, data);
}

TEST_F(Digests, DamagedHeaderEndsTheConnection) {
  auto bytes = host_.frame(host_.command(kTestUnitReady, pdu::kFlagFinal | 1, 0));
  bytes[20] ^= 1;
  host_.connection().send(bytes);
  EXPECT_TRUE(host_.connection().closed());
}

TEST_F(Digests, DamagedImmediateDataIsRejectedAndTheCommandDiscarded) {
  const std::vector<uint8_t> data(512, 7);
  const auto h = host_.command(write16(0, 1), pdu::kFlagFinal | pdu::kFlagWrite | 1, 512);
  auto bytes = host_.frame(h, data);
  bytes[60] ^= 1;
  host_.connection().send(bytes);
  const auto a = host_.answer();
  ASSERT_TRUE(a);
  EXPECT_EQ(a->header.opcode(), Opcode::kReject);
  EXPECT_EQ(a->header.u8(2), 0x02);
  EXPECT_EQ(a->header.u32(28), h.cmd_sn()) << "the number is still expected";
  host_.send(h, data);
  ASSERT_TRUE(host_.answer());
}

TEST_F(Digests, DamagedDataOutEndsTheTaskWithACrcError) {
  const std::vector<uint8_t> data(512, 7);
  const auto h = host_.command(write16(0, 1), pdu::kFlagFinal | pdu::kFlagWrite | 1, 512);
  host_.send(h);
  const auto r2t = host_.answer();
  ASSERT_TRUE(r2t && r2t->header.opcode() == Opcode::kR2t);
  auto bytes =
      host_.frame(host_.data_out(h.itt(), r2t->header.target_transfer_tag(), 0, 0, true), data);
  bytes[70] ^= 1;
  host_.connection().send(bytes);
  const auto answers = host_.answers();
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(answers[0].header.opcode(), Opcode::kReject);
  EXPECT_EQ(answers[1].header.opcode(), Opcode::kScsiResponse);
  EXPECT_EQ(answers[1].data[2 + 12], 0x47);
  EXPECT_EQ(answers[1].data[2 + 13], 0x05);
}

}  // namespace
}  // namespace sluice::simulation
