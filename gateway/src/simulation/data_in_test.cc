// Data to the initiator: segmentation, sequences, status and residuals (RFC 7143 §11.4, §11.7).
#include <gtest/gtest.h>

#include <array>

#include "simulation/initiator.h"

namespace sluice::simulation {
namespace {

using pdu::Opcode;

class DataIn : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(host_.login(
        {"MaxRecvDataSegmentLength=4096", "MaxBurstLength=10240", "FirstBurstLength=4096"}));
    host_.clear_attention();
  }
  std::vector<Answer> read(uint32_t blocks, uint32_t expected) {
    const auto h = host_.command(read16(0, blocks), pdu::kFlagFinal | pdu::kFlagRead | 1, expected);
    host_.send(h);
    return host_.answers();
  }
  SimulatedGateway gateway_;
  Initiator host_{gateway_.connect()};
};

TEST_F(DataIn, SplitsDataIntoSegmentsAndEndsSequencesAtMaxBurstLength) {
  const auto pdus = read(50, 25600);
  const std::vector<uint32_t> sizes = {4096, 4096, 2048, 4096, 4096, 2048, 4096, 1024};
  const std::vector<bool> finals = {false, false, true, false, false, true, false, true};
  ASSERT_EQ(pdus.size(), sizes.size());
  uint32_t offset = 0;
  for (size_t i = 0; i < pdus.size(); ++i) {
    const pdu::Bhs& h = pdus[i].header;
    EXPECT_EQ(h.opcode(), Opcode::kDataIn);
    EXPECT_EQ(h.data_length(), sizes[i]) << i;
    EXPECT_EQ(h.final(), finals[i]) << i;
    EXPECT_EQ(h.u32(36), i) << "DataSN";
    EXPECT_EQ(h.u32(40), offset) << "Buffer Offset";
    EXPECT_EQ(bool(h.flags() & pdu::kFlagStatus), i + 1 == pdus.size());
    offset += sizes[i];
  }
}

TEST_F(DataIn, StatusConsumesOneStatSnPerCommand) {
  const uint32_t first = read(1, 512).back().header.u32(24);
  EXPECT_EQ(read(50, 25600).back().header.u32(24), first + 1);
  EXPECT_EQ(read(1, 512).back().header.u32(24), first + 2);
}

TEST_F(DataIn, ReportsUnderflowWhenLessIsReadThanExpected) {
  const auto pdus = read(2, 4096);
  ASSERT_EQ(pdus.size(), 1u);
  EXPECT_EQ(pdus[0].header.data_length(), 1024u);
  EXPECT_TRUE(pdus[0].header.flags() & pdu::kFlagUnderflow);
  EXPECT_EQ(pdus[0].header.u32(44), 3072u);
}

TEST_F(DataIn, ReportsOverflowAndSendsOnlyTheExpectedLength) {
  const auto pdus = read(8, 700);
  ASSERT_EQ(pdus.size(), 1u);
  EXPECT_EQ(pdus[0].header.data_length(), 700u);
  EXPECT_TRUE(pdus[0].header.flags() & pdu::kFlagOverflow);
  EXPECT_EQ(pdus[0].header.u32(44), 4096u - 700);
}

TEST_F(DataIn, SendsNoDataIfTheInitiatorExpectsNone) {
  const auto h = host_.command(read16(0, 1), pdu::kFlagFinal | 1, 0);
  host_.send(h);
  const auto a = host_.answer();
  ASSERT_TRUE(a);
  EXPECT_EQ(a->header.opcode(), Opcode::kScsiResponse);
  EXPECT_TRUE(a->header.flags() & pdu::kFlagOverflow);
  EXPECT_EQ(a->header.u32(44), 512u);
}

TEST_F(DataIn, AReadCommandSentWithTheWriteFlagTransfersNoData) {
  const std::array<uint8_t, 16> inquiry = {0x12, 0, 0, 0, 96, 0};
  for (const auto& cdb : {read16(0, 1), inquiry}) {
    auto h = host_.command(cdb, pdu::kFlagFinal | pdu::kFlagWrite | 1, 4096);
    host_.send(h);
    const auto a = host_.answer();
    ASSERT_TRUE(a);
    EXPECT_EQ(a->header.opcode(), Opcode::kScsiResponse);
    EXPECT_EQ(a->header.u8(3), 0);
    EXPECT_TRUE(a->header.flags() & pdu::kFlagUnderflow);
    EXPECT_EQ(a->header.u32(44), 4096u) << "all that was expected";
  }
}

TEST_F(DataIn, SendsSenseDataInASeparateScsiResponse) {
  const auto h = host_.command(read16(1 << 30, 1), pdu::kFlagFinal | pdu::kFlagRead | 1, 512);
  host_.send(h);
  const auto a = host_.answer();
  ASSERT_TRUE(a);
  EXPECT_EQ(a->header.opcode(), Opcode::kScsiResponse);
  EXPECT_EQ(a->header.u8(3), 2);
  EXPECT_EQ(load_be16(a->data.data()), a->data.size() - 2) << "SenseLength";
  EXPECT_EQ(a->header.u32(44), 512u) << "all of it is residual";
}

TEST_F(DataIn, BoundsOutputWhileThePeerDoesNotReadAndAnswersCommandsInOrder) {
  host_.connection().set_reading(false);
  std::vector<uint32_t> tags;
  for (int i = 0; i < 40; ++i) {
    const auto h = host_.command(read16(0, 4096), pdu::kFlagFinal | pdu::kFlagRead | 1, 2 << 20);
    tags.push_back(h.itt());
    host_.send(h);
  }
  EXPECT_LE(host_.connection().core().outbox().bytes(),
            limits::kMaxOutputBytes + (size_t{4} << 20));
  EXPECT_FALSE(host_.connection().closed());
  host_.connection().set_reading(true);
  gateway_.run();
  std::vector<uint32_t> answered;
  for (const Answer& a : host_.answers()) {
    if (a.header.flags() & pdu::kFlagStatus) answered.push_back(a.header.itt());
  }
  EXPECT_EQ(answered, tags);
}

TEST_F(DataIn, DropsAnInitiatorThatFloodsWithPingsAndDoesNotRead) {
  host_.connection().set_reading(false);
  const std::vector<uint8_t> ping(3072, 0x55);
  for (int i = 0; i < 40000 && !host_.connection().closed(); ++i) {
    host_.send(host_.request(Opcode::kNopOut, true), ping);
  }
  EXPECT_TRUE(host_.connection().closed());
}

}  // namespace
}  // namespace sluice::simulation
