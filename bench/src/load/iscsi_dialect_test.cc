#include "load/iscsi_dialect.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>

namespace sluice::bench {
namespace {

using pdu::Bhs;
using pdu::Opcode;

struct Sent {
  Bhs header;
  uint32_t size;
};

class IscsiDialectTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends_), 0); }
  void TearDown() override {
    close(ends_[0]);
    close(ends_[1]);
  }

  void open(const IscsiParameters& parameters, uint32_t window = 32) {
    const IscsiState state{
        .parameters = parameters, .cmd_sn = 1, .exp_stat_sn = 5, .max_cmd_sn = window};
    dialect_ = std::make_unique<IscsiDialect>(state, nullptr, luns_, 512, 4, false);
  }
  Command write_of(uint32_t size) {
    return {.slot = 2, .write = true, .offset = 1024, .size = size, .data = data_.data()};
  }
  std::vector<Sent> sent() {
    EXPECT_TRUE(tx_.flush(ends_[0]));
    std::vector<Sent> out;
    Bhs h;
    while (recv(ends_[1], h.data(), 48, MSG_DONTWAIT) == 48) {
      out.push_back({h, h.data_length()});
      std::vector<uint8_t> body(pdu::padded(h.data_length()));
      if (!body.empty()) {
        EXPECT_EQ(recv(ends_[1], body.data(), body.size(), MSG_WAITALL),
                  static_cast<ssize_t>(body.size()));
      }
    }
    return out;
  }
  const char* answer(const Bhs& h, Incoming* in) { return dialect_->parse(h.data(), in, tx_); }
  static Bhs r2t(uint32_t from, uint32_t size) {
    Bhs h;
    h.set_opcode(Opcode::kR2t);
    h.set_itt(2);
    h.put32(20, 77);
    h.put32(32, 32);
    h.put32(40, from);
    h.put32(44, size);
    return h;
  }

  int ends_[2] = {};
  TxQueue tx_;
  std::vector<uint64_t> luns_ = {uint64_t{3} << 48};
  std::unique_ptr<IscsiDialect> dialect_;
  std::vector<uint8_t> data_ = std::vector<uint8_t>(65536, 7);
};

TEST_F(IscsiDialectTest, AReadCarriesItsPlaceAndNumbers) {
  open({});
  ASSERT_TRUE(dialect_->issue({.slot = 1, .offset = 4096, .size = 8192}, tx_));
  const auto pdus = sent();
  ASSERT_EQ(pdus.size(), 1u);
  const Bhs& h = pdus[0].header;
  EXPECT_EQ(h.opcode(), Opcode::kScsiCommand);
  EXPECT_EQ(h.flags(), pdu::kFlagFinal | pdu::kFlagRead | 1);
  EXPECT_EQ(h.lun(), uint64_t{3} << 48);
  EXPECT_EQ(h.itt(), 1u);
  EXPECT_EQ(h.expected_data_length(), 8192u);
  EXPECT_EQ(h.cmd_sn(), 1u);
  EXPECT_EQ(h.exp_stat_sn(), 5u);
  EXPECT_EQ(h.u8(32), 0x88);
  EXPECT_EQ(load_be64(h.data() + 34), 8u);
  EXPECT_EQ(h.u32(42), 16u);
}

TEST_F(IscsiDialectTest, ItsSlotSaysWhichLunACommandAndItsDataGoTo) {
  luns_ = {uint64_t{3} << 48, uint64_t{4} << 48};
  open({.initial_r2t = false, .immediate_data = false});
  ASSERT_TRUE(dialect_->issue({.slot = 1, .size = 512}, tx_));
  ASSERT_TRUE(dialect_->issue(write_of(4096), tx_));  // slot 2
  const auto pdus = sent();
  ASSERT_EQ(pdus.size(), 3u);
  EXPECT_EQ(pdus[0].header.lun(), uint64_t{4} << 48);
  EXPECT_EQ(pdus[1].header.lun(), uint64_t{3} << 48);
  EXPECT_EQ(pdus[2].header.opcode(), Opcode::kDataOut);
  EXPECT_EQ(pdus[2].header.lun(), uint64_t{3} << 48);
}

TEST_F(IscsiDialectTest, AWriteSendsWhatItMayUnaskedAndTheRestWhenAsked) {
  open({.initial_r2t = false,
        .immediate_data = true,
        .target_segment = 4096,
        .max_burst = 8192,
        .first_burst = 12288});
  ASSERT_TRUE(dialect_->issue(write_of(16384), tx_));
  auto pdus = sent();
  ASSERT_EQ(pdus.size(), 3u);  // immediate, two unsolicited Data-Outs
  EXPECT_FALSE(pdus[0].header.final());
  EXPECT_EQ(pdus[0].size, 4096u);
  EXPECT_EQ(pdus[1].header.target_transfer_tag(), pdu::kReservedTag);
  EXPECT_EQ(pdus[1].header.u32(36), 0u);
  EXPECT_EQ(pdus[1].header.u32(40), 4096u);
  EXPECT_FALSE(pdus[1].header.final());
  EXPECT_EQ(pdus[2].header.u32(36), 1u);
  EXPECT_EQ(pdus[2].header.u32(40), 8192u);
  EXPECT_TRUE(pdus[2].header.final());

  Incoming in;
  ASSERT_EQ(answer(r2t(12288, 4096), &in), nullptr);
  EXPECT_FALSE(in.done);
  pdus = sent();
  ASSERT_EQ(pdus.size(), 1u);
  EXPECT_EQ(pdus[0].header.target_transfer_tag(), 77u);
  EXPECT_EQ(pdus[0].header.u32(40), 12288u);
  EXPECT_TRUE(pdus[0].header.final());
}

TEST_F(IscsiDialectTest, NothingIsSentUnaskedWhereThatWasNotAgreed) {
  open({.initial_r2t = true, .immediate_data = false});
  ASSERT_TRUE(dialect_->issue(write_of(8192), tx_));
  const auto pdus = sent();
  ASSERT_EQ(pdus.size(), 1u);
  EXPECT_TRUE(pdus[0].header.final());
  EXPECT_EQ(pdus[0].size, 0u);
}

TEST_F(IscsiDialectTest, AnR2tBeyondTheCommandOrTheBurstIsAViolation) {
  open({.initial_r2t = true, .immediate_data = false, .max_burst = 4096});
  ASSERT_TRUE(dialect_->issue(write_of(8192), tx_));
  Incoming in;
  EXPECT_NE(answer(r2t(8192, 512), &in), nullptr);
  EXPECT_NE(answer(r2t(4096, 4608), &in), nullptr);
  EXPECT_NE(answer(r2t(0, 8192), &in), nullptr);
  EXPECT_NE(answer(r2t(0, 0), &in), nullptr);
  EXPECT_EQ(answer(r2t(4096, 4096), &in), nullptr);
}

TEST_F(IscsiDialectTest, AClosedWindowHoldsCommandsBackUntilAnAnswerOpensIt) {
  open({}, 1);
  const Command read{.slot = 0, .size = 512};
  EXPECT_TRUE(dialect_->issue(read, tx_));
  EXPECT_FALSE(dialect_->issue({.slot = 1, .size = 512}, tx_));
  Bhs h;
  h.set_opcode(Opcode::kDataIn);
  h.set_flags(pdu::kFlagFinal | pdu::kFlagStatus);
  h.set_data_length(512);
  h.put32(24, 5);
  h.put32(32, 2);
  Incoming in;
  ASSERT_EQ(answer(h, &in), nullptr);
  EXPECT_TRUE(in.done && in.payload);
  EXPECT_EQ(in.data, 512u);
  EXPECT_TRUE(dialect_->issue({.slot = 1, .size = 512}, tx_));
  EXPECT_EQ(sent().back().header.exp_stat_sn(), 6u);
}

TEST_F(IscsiDialectTest, TheAnswerToAPingDoesNotWaitForDataThatWasAskedFor) {
  open({.initial_r2t = true, .immediate_data = false});
  ASSERT_TRUE(dialect_->issue(write_of(8192), tx_));
  sent();
  Incoming in;
  ASSERT_EQ(answer(r2t(0, 8192), &in), nullptr);
  Bhs ping;
  ping.set_opcode(Opcode::kNopIn);
  ping.set_itt(pdu::kReservedTag);
  ping.put32(20, 1234);
  ASSERT_EQ(answer(ping, &in), nullptr);
  const auto pdus = sent();
  ASSERT_GE(pdus.size(), 2u);
  EXPECT_EQ(pdus[0].header.opcode(), Opcode::kNopOut);
  EXPECT_EQ(pdus[1].header.opcode(), Opcode::kDataOut);
}

TEST_F(IscsiDialectTest, APingIsAnsweredAndAFailedCommandIsSeen) {
  open({});
  Bhs h;
  h.set_opcode(Opcode::kNopIn);
  h.set_itt(pdu::kReservedTag);
  h.put32(20, 1234);
  Incoming in;
  ASSERT_EQ(answer(h, &in), nullptr);
  const auto pdus = sent();
  ASSERT_EQ(pdus.size(), 1u);
  EXPECT_EQ(pdus[0].header.opcode(), Opcode::kNopOut);
  EXPECT_EQ(pdus[0].header.u32(20), 1234u);

  Bhs response;
  response.set_opcode(Opcode::kScsiResponse);
  response.put8(3, 2);
  response.set_data_length(20);
  ASSERT_EQ(answer(response, &in), nullptr);
  EXPECT_TRUE(in.done);
  EXPECT_FALSE(in.payload) << "sense data is not the command's data";
  EXPECT_EQ(in.status, 2);
  response.put8(2, 1);  // target failure: the status byte means nothing
  ASSERT_EQ(answer(response, &in), nullptr);
  EXPECT_NE(in.status, 0);
}

}  // namespace
}  // namespace sluice::bench
