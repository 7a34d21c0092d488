// Data from the initiator in every combination of the keys that rule it (RFC 7143 §13.10-13.15).
#include <gtest/gtest.h>

#include <algorithm>

#include "simulation/initiator.h"

namespace sluice::simulation {
namespace {

using pdu::Opcode;

std::vector<uint8_t> pattern(size_t n, uint8_t seed) {
  std::vector<uint8_t> v(n);
  for (size_t i = 0; i < n; ++i) v[i] = static_cast<uint8_t>(seed + i * 7 + i / 512);
  return v;
}

struct Rules {
  bool initial_r2t;
  bool immediate_data;
  uint32_t first_burst;
  uint32_t max_burst;
  uint32_t outstanding;
};

class DataOut : public testing::TestWithParam<Rules> {
 protected:
  void SetUp() override {
    const Rules& r = GetParam();
    const auto yes = [](bool b) { return std::string(b ? "Yes" : "No"); };
    iscsi::Settings settings;
    settings.offer.max_outstanding_r2t = 16;
    gateway_ = std::make_unique<SimulatedGateway>(settings);
    host_ = std::make_unique<Initiator>(gateway_->connect());
    const auto login =
        host_->login({"InitialR2T=" + yes(r.initial_r2t), "ImmediateData=" + yes(r.immediate_data),
                      "FirstBurstLength=" + std::to_string(r.first_burst),
                      "MaxBurstLength=" + std::to_string(r.max_burst),
                      "MaxOutstandingR2T=" + std::to_string(r.outstanding)});
    ASSERT_TRUE(login);
    ASSERT_EQ(login->header.u16(36), 0);
    host_->clear_attention();
  }

  // Sends `data` as a write from block 0, as much of it unsolicited as the rules allow, in
  // segments of `segment` bytes; answers every R2T. Returns the final SCSI Response.
  std::optional<Answer> write(const std::vector<uint8_t>& data, uint32_t segment) {
    const Rules& r = GetParam();
    const auto total = static_cast<uint32_t>(data.size());
    const uint32_t first = std::min(total, r.first_burst);
    uint32_t sent = r.immediate_data ? std::min(first, segment) : 0;
    const bool more_unsolicited = !r.initial_r2t && sent < first;
    const auto flags =
        static_cast<uint8_t>((more_unsolicited ? 0 : pdu::kFlagFinal) | pdu::kFlagWrite | 1);
    const pdu::Bhs h = host_->command(write16(0, total / 512), flags, total);
    host_->send(h, ByteView(data).first(sent));
    for (uint32_t sn = 0; !r.initial_r2t && sent < first; ++sn) {
      const uint32_t n = std::min(segment, first - sent);
      host_->send(host_->data_out(h.itt(), pdu::kReservedTag, sn, sent, sent + n == first),
                  ByteView(data).subspan(sent, n));
      sent += n;
    }
    return answer_r2ts(h.itt(), data, segment, sent);
  }

  std::optional<Answer> answer_r2ts(uint32_t itt, const std::vector<uint8_t>& data,
                                    uint32_t segment, uint32_t next_offset) {
    uint32_t r2t_sn = 0;
    std::vector<Answer> queue = host_->answers();
    while (!queue.empty()) {
      std::vector<Answer> r2ts;
      for (Answer& a : queue) {
        if (a.header.opcode() != Opcode::kR2t) return std::move(a);
        r2ts.push_back(std::move(a));
      }
      EXPECT_LE(r2ts.size(), GetParam().outstanding);
      queue.clear();
      for (const Answer& a : r2ts) {
        EXPECT_EQ(a.header.itt(), itt);
        EXPECT_EQ(a.header.u32(36), r2t_sn++) << "R2TSN";
        EXPECT_EQ(a.header.u32(40), next_offset) << "bursts follow each other";
        const uint32_t length = a.header.u32(44);
        EXPECT_LE(length, GetParam().max_burst);
        EXPECT_GT(length, 0u);
        next_offset += length;
        send_burst(itt, a, data, segment);
      }
      for (Answer& a : host_->answers()) queue.push_back(std::move(a));
    }
    return std::nullopt;
  }

  void send_burst(uint32_t itt, const Answer& r2t, const std::vector<uint8_t>& data,
                  uint32_t segment) {
    const uint32_t offset = r2t.header.u32(40);
    const uint32_t length = r2t.header.u32(44);
    uint32_t sn = 0;
    for (uint32_t at = 0; at < length; ++sn) {
      const uint32_t n = std::min(segment, length - at);
      host_->send(
          host_->data_out(itt, r2t.header.target_transfer_tag(), sn, offset + at, at + n == length),
          ByteView(data).subspan(offset + at, n));
      at += n;
    }
  }

  std::unique_ptr<SimulatedGateway> gateway_;
  std::unique_ptr<Initiator> host_;
};

TEST_P(DataOut, StoresExactlyTheSentDataAtEverySize) {
  uint8_t seed = 1;
  const Rules& r = GetParam();
  for (const uint32_t size :
       {512u, r.first_burst - 512, r.first_burst, r.first_burst + 512, r.max_burst,
        r.max_burst + r.first_burst + 512, 4 * r.max_burst, 5 * r.max_burst + 1024}) {
    for (const uint32_t segment : {512u, 4096u, 65536u}) {
      if (size == 0) continue;
      const auto data = pattern(size, seed++);
      const auto response = write(data, segment);
      ASSERT_TRUE(response) << size << "/" << segment;
      EXPECT_EQ(response->header.opcode(), Opcode::kScsiResponse);
      EXPECT_EQ(response->header.u8(3), 0) << size << "/" << segment;
      EXPECT_EQ(response->header.flags(), pdu::kFlagFinal) << "no residual";
      EXPECT_EQ(host_->execute(read16(0, size / 512), size).data, data) << size << "/" << segment;
    }
  }
  EXPECT_EQ(gateway_->buffers().in_use(), 0u) << "every buffer came back";
}

TEST_P(DataOut, RequestsNoMoreDataThanTheCommandNeeds) {
  // Two blocks named, four announced: the rest is residual, and is neither asked for nor stored.
  const auto before = host_->execute(read16(0, 4), 2048).data;
  const auto data = pattern(2048, 99);
  const pdu::Bhs h = host_->command(write16(0, 2), pdu::kFlagFinal | pdu::kFlagWrite | 1, 2048);
  host_->send(h);
  const auto response = answer_r2ts(h.itt(), data, 4096, 0);
  ASSERT_TRUE(response);
  EXPECT_EQ(response->header.u8(3), 0);
  EXPECT_EQ(response->header.flags(), pdu::kFlagFinal | pdu::kFlagUnderflow);
  EXPECT_EQ(response->header.u32(44), 1024u);
  const auto after = host_->execute(read16(0, 4), 2048).data;
  EXPECT_TRUE(std::equal(after.begin(), after.begin() + 1024, data.begin()));
  EXPECT_TRUE(std::equal(after.begin() + 1024, after.end(), before.begin() + 1024));
}

TEST_P(DataOut, ReportsOverflowWhenTheCommandNeedsMoreThanIsSent) {
  const auto data = pattern(512, 5);
  const pdu::Bhs h = host_->command(write16(0, 3), pdu::kFlagFinal | pdu::kFlagWrite | 1, 512);
  host_->send(h);
  const auto response = answer_r2ts(h.itt(), data, 512, 0);
  ASSERT_TRUE(response);
  EXPECT_EQ(response->header.flags(), pdu::kFlagFinal | pdu::kFlagOverflow);
  EXPECT_EQ(response->header.u32(44), 1024u);
}

INSTANTIATE_TEST_SUITE_P(
    Rules, DataOut,
    testing::Values(Rules{true, true, 8192, 16384, 1}, Rules{true, false, 8192, 16384, 1},
                    Rules{false, true, 8192, 16384, 1}, Rules{false, false, 8192, 16384, 1},
                    Rules{false, true, 8192, 8192, 16}, Rules{true, false, 4096, 8192, 2},
                    Rules{false, false, 65536, 65536, 4}));

class DataErrors : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(host_.login({"InitialR2T=No", "ImmediateData=Yes", "FirstBurstLength=4096"}));
    host_.clear_attention();
  }
  void expect_failed(uint8_t asc, uint8_t ascq) {
    for (const Answer& a : host_.answers()) {
      if (a.header.opcode() != Opcode::kScsiResponse) continue;
      EXPECT_EQ(a.header.u8(3), 2);
      ASSERT_GE(a.data.size(), 16u);
      EXPECT_EQ(a.data[4] & 0xf, 0xb);
      EXPECT_EQ(a.data[2 + 12], asc);
      EXPECT_EQ(a.data[2 + 13], ascq);
      // And the session goes on.
      EXPECT_EQ(host_.execute(kTestUnitReady, 0).status, 0);
      return;
    }
    FAIL() << "no SCSI Response";
  }
  SimulatedGateway gateway_;
  Initiator host_{gateway_.connect()};
  const std::vector<uint8_t> data_ = pattern(65536, 1);
};

TEST_F(DataErrors, WrongDataSnEndsTheTask) {
  const auto h = host_.command(write16(0, 8), pdu::kFlagWrite | 1, 4096);
  host_.send(h);
  host_.send(host_.data_out(h.itt(), pdu::kReservedTag, 1, 0, true), ByteView(data_).first(4096));
  expect_failed(0x4b, 0x00);
}

TEST_F(DataErrors, WrongOffsetEndsTheTask) {
  const auto h = host_.command(write16(0, 8), pdu::kFlagWrite | 1, 4096);
  host_.send(h);
  host_.send(host_.data_out(h.itt(), pdu::kReservedTag, 0, 512, true), ByteView(data_).first(512));
  expect_failed(0x4b, 0x05);
}

TEST_F(DataErrors, TooMuchUnsolicitedDataEndsTheTask) {
  const auto h = host_.command(write16(0, 16), pdu::kFlagWrite | 1, 8192);
  host_.send(h);
  host_.send(host_.data_out(h.itt(), pdu::kReservedTag, 0, 0, true), ByteView(data_).first(8192));
  expect_failed(0x4b, 0x02);
}

TEST_F(DataErrors, ImmediateDataAboveFirstBurstEndsTheTask) {
  const auto h = host_.command(write16(0, 16), pdu::kFlagFinal | pdu::kFlagWrite | 1, 8192);
  host_.send(h, ByteView(data_).first(8192));
  expect_failed(0x0c, 0x0c);
}

TEST_F(DataErrors, UnknownTransferTagEndsTheTask) {
  const auto h = host_.command(write16(0, 64), pdu::kFlagFinal | pdu::kFlagWrite | 1, 32768);
  host_.send(h);
  const auto r2t = host_.answer();
  ASSERT_TRUE(r2t && r2t->header.opcode() == Opcode::kR2t);
  host_.send(host_.data_out(h.itt(), r2t->header.target_transfer_tag() + 77, 0, 0, true),
             ByteView(data_).first(32768));
  expect_failed(0x4b, 0x01);
}

TEST_F(DataErrors, ALunOtherThanThatOfTheR2tEndsTheTask) {
  const auto h = host_.command(write16(0, 8), pdu::kFlagFinal | pdu::kFlagWrite | 1, 4096);
  host_.send(h);
  const auto r2t = host_.answer();
  ASSERT_TRUE(r2t && r2t->header.opcode() == Opcode::kR2t);
  auto data = host_.data_out(h.itt(), r2t->header.target_transfer_tag(), 0, 0, true);
  data.set_lun(uint64_t{1} << 48);
  host_.send(data, ByteView(data_).first(4096));
  expect_failed(0x4b, 0x01);
}

TEST_F(DataErrors, AWriteCommandSentWithTheReadFlagFails) {
  const auto h = host_.command(write16(0, 8), pdu::kFlagFinal | pdu::kFlagRead | 1, 4096);
  host_.send(h);
  const auto response = host_.answer();
  ASSERT_TRUE(response);
  EXPECT_EQ(response->header.u8(3), 2);
  EXPECT_EQ(response->data[2 + 2] & 0x0f, 0x05);
  EXPECT_EQ(response->data[2 + 12], 0x0e);
  EXPECT_EQ(response->data[2 + 13], 0x03);
  EXPECT_TRUE(response->header.flags() & pdu::kFlagUnderflow);
  EXPECT_EQ(response->header.u32(44), 4096u);
}

TEST_F(DataErrors, MoreDataThanTheR2tRequestedEndsTheTask) {
  const auto h = host_.command(write16(0, 8), pdu::kFlagFinal | pdu::kFlagWrite | 1, 4096);
  host_.send(h);
  const auto r2t = host_.answer();
  ASSERT_TRUE(r2t && r2t->header.opcode() == Opcode::kR2t);
  host_.send(host_.data_out(h.itt(), r2t->header.target_transfer_tag(), 0, 0, true),
             ByteView(data_).first(8192));
  expect_failed(0x4b, 0x02);
}

TEST_F(DataErrors, DataForAnUnknownTaskIsIgnored) {
  host_.send(host_.data_out(0x7777, 5, 0, 0, true), ByteView(data_).first(512));
  EXPECT_TRUE(host_.answers().empty());
  EXPECT_EQ(host_.execute(kTestUnitReady, 0).status, 0);
}

TEST_F(DataErrors, ARefusedCommandWaitsForTheDataItAnnounced) {
  // LBA out of range is known at once, but the answer comes after the unsolicited burst: until
  // then the tag is in use.
  const auto h = host_.command(write16(1 << 30, 8), pdu::kFlagWrite | 1, 4096);
  host_.send(h);
  EXPECT_TRUE(host_.answers().empty());
  host_.send(host_.data_out(h.itt(), pdu::kReservedTag, 0, 0, true), ByteView(data_).first(4096));
  const auto response = host_.answer();
  ASSERT_TRUE(response);
  EXPECT_EQ(response->header.u8(3), 2);
  EXPECT_EQ(response->data[2 + 12], 0x21);
}

TEST_F(DataErrors, BidirectionalCommandsAreRefusedWithAnInvalidOperationCode) {
  const auto h =
      host_.command(write16(0, 1), pdu::kFlagFinal | pdu::kFlagWrite | pdu::kFlagRead | 1, 512);
  host_.send(h, ByteView(data_).first(512));
  const auto response = host_.answer();
  ASSERT_TRUE(response);
  EXPECT_EQ(response->header.u8(3), 2);
  EXPECT_EQ(response->data[2 + 2] & 0xf, 5);
  EXPECT_EQ(response->data[2 + 12], 0x20);
}

}  // namespace
}  // namespace sluice::simulation
