// The memory budget of a session (DESIGN R14): many large writes at once.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <vector>

#include "simulation/initiator.h"

namespace sluice::simulation {
namespace {

using pdu::Opcode;

constexpr uint32_t kBytes = 4u << 20;
constexpr uint32_t kWrites = 24;  // 96 MiB in all

class Memory : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(host_.login({"MaxBurstLength=262144", "ImmediateData=No"}));
    host_.clear_attention();
  }
  void start_writes() {
    for (uint32_t i = 0; i < kWrites; ++i) {
      host_.send(
          host_.command(write16(0, kBytes / 512), pdu::kFlagFinal | pdu::kFlagWrite | 1, kBytes));
    }
  }
  // Answers the oldest R2T, one burst of it; false when there is none.
  bool answer_one() {
    for (Answer& a : host_.answers()) {
      if (a.header.opcode() == Opcode::kR2t) r2ts_.push_back(a.header);
      if (a.header.opcode() == Opcode::kScsiResponse) ++ended_;
    }
    if (r2ts_.empty()) return false;
    const pdu::Bhs r2t = r2ts_.front();
    r2ts_.pop_front();
    const std::vector<uint8_t> data(r2t.u32(44), 1);
    host_.send(host_.data_out(r2t.itt(), r2t.target_transfer_tag(), 0, r2t.u32(40), true), data);
    most_ = std::max(most_, gateway_.buffers().in_use());
    return true;
  }
  SimulatedGateway gateway_;
  Initiator host_{gateway_.connect()};
  std::deque<pdu::Bhs> r2ts_;
  uint32_t ended_ = 0;
  size_t most_ = 0;
};

TEST_F(Memory, ConcurrentLargeWritesStayWithinTheBudgetAndEnd) {
  start_writes();
  // In turn, a burst of each: every write has part of its data before any has all of it.
  while (answer_one()) {
  }
  EXPECT_EQ(ended_, kWrites) << "every write gets memory in the end";
  EXPECT_LE(most_, limits::kSessionMemory + (size_t{1} << 20));
  EXPECT_GT(most_, limits::kSessionMemory / 4) << "but they do run side by side";
  EXPECT_EQ(gateway_.buffers().in_use(), 0u);
}

TEST_F(Memory, AbortingAdmittedOrWaitingWritesAllowsTheOthersToContinue) {
  start_writes();
  std::vector<pdu::Bhs> first;
  for (const Answer& a : host_.answers()) first.push_back(a.header);
  constexpr size_t kOneLun = limits::kSessionMemory / (limits::kLunShare + 1) * limits::kLunShare;
  ASSERT_EQ(first.size(), kOneLun / kBytes) << "those that fit were asked for";
  // Abort one that holds memory: the oldest that waits is let in.
  pdu::Bhs abort = host_.request(Opcode::kTaskManagementRequest, true);
  abort.set_flags(pdu::kFlagFinal | 1);
  abort.put32(20, first[0].itt());
  host_.send(abort);
  const auto answers = host_.answers();
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(answers[0].header.opcode(), Opcode::kTaskManagementResponse);
  EXPECT_EQ(answers[1].header.opcode(), Opcode::kR2t);
  EXPECT_EQ(answers[1].header.itt(), first.back().itt() + 1);
  // And one that waits: nothing changes for the rest.
  abort = host_.request(Opcode::kTaskManagementRequest, true);
  abort.set_flags(pdu::kFlagFinal | 1);
  abort.put32(20, first.back().itt() + 2);
  host_.send(abort);
  EXPECT_EQ(host_.answers().size(), 1u);
  for (size_t i = 1; i < first.size(); ++i) r2ts_.push_back(first[i]);
  r2ts_.push_back(answers[1].header);
  while (answer_one()) {
  }
  EXPECT_EQ(ended_, kWrites - 2);
  EXPECT_EQ(gateway_.buffers().in_use(), 0u);
}

TEST_F(Memory, ALostConnectionReleasesAllItsBuffers) {
  start_writes();
  for (int i = 0; i < 40; ++i) answer_one();
  EXPECT_GT(gateway_.buffers().in_use(), 0u);
  host_.connection().hang_up();
  EXPECT_TRUE(host_.connection().ended());
  EXPECT_EQ(gateway_.buffers().in_use(), 0u);
}

// Each PDU comes in a receive buffer of its own here, as on a busy reactor.
TEST_F(Memory, AWriteInSmallDataOutPdusOccupiesBoundedMemory) {
  host_.send(host_.command(write16(0, 8), pdu::kFlagFinal | pdu::kFlagWrite | 1, 4096));
  const auto r2t = host_.answer();
  ASSERT_TRUE(r2t && r2t->header.opcode() == Opcode::kR2t);
  constexpr uint32_t kPiece = 8;
  std::vector<uint8_t> all;
  for (uint32_t n = 0; n < 4096 / kPiece; ++n) {
    const std::vector<uint8_t> data(kPiece, static_cast<uint8_t>(n));
    all.insert(all.end(), data.begin(), data.end());
    host_.send(host_.data_out(r2t->header.itt(), r2t->header.target_transfer_tag(), n, n * kPiece,
                              all.size() == 4096),
               data);
    most_ = std::max(most_, gateway_.buffers().in_use());
  }
  EXPECT_LE(most_, size_t{128} << 10);
  const auto response = host_.answer();
  ASSERT_TRUE(response && response->header.opcode() == Opcode::kScsiResponse);
  EXPECT_EQ(host_.execute(read16(0, 8), 4096).data, all);
}

TEST_F(Memory, PeersThatDoNotReadLeaveMemoryForReceiving) {
  constexpr uint32_t kRead = 1u << 20;
  gateway_.disk(0).hold(true);  // so that data is read into buffers, not lent
  std::vector<std::unique_ptr<Initiator>> hosts;
  for (uint8_t i = 0; i < 24; ++i) {
    hosts.push_back(std::make_unique<Initiator>(gateway_.connect()));
    Initiator& host = *hosts.back();
    host.isid[5] = static_cast<uint8_t>(i + 2);
    ASSERT_TRUE(host.login());
    host.clear_attention();
    host.connection().set_reading(false);
    for (int n = 0; n < 8; ++n) {
      host.send(host.command(read16(0, kRead / 512), pdu::kFlagFinal | pdu::kFlagRead | 1, kRead));
    }
    gateway_.disk(0).release_all();
    gateway_.run();
  }
  const BufferPool& pool = gateway_.buffers();
  EXPECT_GE(pool.available(), pool.budget() / limits::kReceiveReserve / 2);
  for (const auto& host : hosts) host->connection().set_reading(true);
  for (int n = 0; n < 8; ++n) {
    gateway_.run();
    gateway_.disk(0).release_all();
  }
  gateway_.run();
  for (const auto& host : hosts) {
    size_t bytes = 0;
    for (const Answer& a : host->answers()) bytes += a.data.size();
    EXPECT_EQ(bytes, size_t{8} * kRead);
  }
}

TEST_F(Memory, RequestsReceivedOutOfOrderOccupyBoundedMemory) {
  ++host_.cmd_sn;  // one never comes
  const std::vector<uint8_t> data(262144);
  for (uint32_t i = 0; i < limits::kDefaultCommandWindow - 1; ++i) {
    if (host_.connection().closed()) break;
    host_.send(host_.request(Opcode::kNopOut, false), data);
  }
  EXPECT_LE(gateway_.buffers().in_use(), limits::kSessionMemory);
}

}  // namespace
}  // namespace sluice::simulation
