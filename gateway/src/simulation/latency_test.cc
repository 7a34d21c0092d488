// What the latency histograms count: from the arrival of a command's PDU to the end of the batch
// that answered it.
#include <gtest/gtest.h>

#include "simulation/initiator.h"
#include "unit/statistics.h"
#include "unit/unit.h"

namespace sluice::simulation {
namespace {

using pdu::Opcode;

constexpr Nanos kBatch = 7 * kMicrosecond;

class Latency : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(host_.login({"InitialR2T=Yes", "ImmediateData=No"}));
    host_.clear_attention();
    gateway_.set_batch_time(kBatch);
  }
  void send_read() {
    host_.send(host_.command(read16(0, 1), pdu::kFlagFinal | pdu::kFlagRead | 1, 512));
  }
  lun::LatencySnapshot reads() { return gateway_.unit()->statistics().snapshot().read_latency; }
  lun::LatencySnapshot writes() { return gateway_.unit()->statistics().snapshot().write_latency; }
  static void expect_one(const lun::LatencySnapshot& latency, Nanos took) {
    EXPECT_EQ(latency.count, 1u);
    EXPECT_EQ(latency.sum, static_cast<uint64_t>(took));
    EXPECT_EQ(latency.counts.at(lun::latency_bucket(took)), 1u);
  }
  SimulatedGateway gateway_;
  Initiator host_{gateway_.connect()};
};

TEST_F(Latency, ACommandThatEndsInItsBatchIsMeasuredAsTheWholeBatch) {
  send_read();
  expect_one(reads(), kBatch);
  EXPECT_EQ(host_.execute(write16(0, 1), 0, std::vector<uint8_t>(512)).status, 0);
  expect_one(writes(), kBatch);
}

TEST_F(Latency, EveryCommandOfABatchIsMeasuredAsTheWholeBatch) {
  std::vector<uint8_t> together;
  for (int i = 0; i < 5; ++i) {
    const auto one =
        host_.frame(host_.command(read16(0, 1), pdu::kFlagFinal | pdu::kFlagRead | 1, 512));
    together.insert(together.end(), one.begin(), one.end());
  }
  host_.connection().send(together);
  EXPECT_EQ(reads().count, 5u);
  EXPECT_EQ(reads().sum, uint64_t{5 * kBatch});
}

TEST_F(Latency, ACommandThatEndsLaterIsMeasuredUntilTheEndOfItsFinalBatch) {
  gateway_.disk().hold(true);
  send_read();
  EXPECT_EQ(reads().count, 0u) << "it is still under way";
  gateway_.advance(3 * kMillisecond);
  gateway_.disk().release_all();
  gateway_.run();
  expect_one(reads(), 3 * kMillisecond + kBatch);
}

TEST_F(Latency, AWriteIsMeasuredFromItsCommandNotFromItsData) {
  const pdu::Bhs h = host_.command(write16(0, 1), pdu::kFlagFinal | pdu::kFlagWrite | 1, 512);
  host_.send(h);
  const auto r2t = host_.answer();
  ASSERT_TRUE(r2t);
  ASSERT_EQ(r2t->header.opcode(), Opcode::kR2t);
  gateway_.advance(20 * kMillisecond);
  host_.send(host_.data_out(h.itt(), r2t->header.target_transfer_tag(), 0, 0, true),
             std::vector<uint8_t>(512));
  expect_one(writes(), 20 * kMillisecond + kBatch);
}

TEST_F(Latency, AReadDelayedByAPeerThatDoesNotReadIsMeasuredFromItsArrival) {
  constexpr uint32_t kBytes = limits::kMaxOutputBytes / 4;
  host_.connection().set_reading(false);
  for (int i = 0; i < 5; ++i) {
    host_.send(
        host_.command(read16(0, kBytes / 512), pdu::kFlagFinal | pdu::kFlagRead | 1, kBytes));
  }
  const uint64_t at_once = reads().count;
  ASSERT_LT(at_once, 5u) << "more than the outbox takes";
  EXPECT_EQ(reads().sum, at_once * kBatch) << "that their bytes wait to be read is not in it";
  gateway_.advance(9 * kMillisecond);
  host_.connection().set_reading(true);
  gateway_.run();
  EXPECT_EQ(reads().count, 5u);
  EXPECT_EQ(reads().sum, at_once * kBatch + (5 - at_once) * (9 * kMillisecond + kBatch));
}

TEST_F(Latency, ACommandReceivedOutOfOrderIsMeasuredFromItsArrival) {
  const pdu::Bhs first = host_.request(Opcode::kNopOut, false);
  send_read();
  EXPECT_EQ(reads().count, 0u);
  gateway_.advance(2 * kMillisecond);
  host_.send(first);
  expect_one(reads(), 2 * kMillisecond + kBatch);
}

TEST_F(Latency, ARemovedUnitIsReleasedAtTheEndOfItsLastBatch) {
  const std::weak_ptr<lun::Unit> unit = gateway_.unit();
  // Command and removal meet in one batch: the connection's bytes first, then what was posted.
  host_.connection().deliver(
      host_.frame(host_.command(read16(0, 1), pdu::kFlagFinal | pdu::kFlagRead | 1, 512)));
  gateway_.remove_lun(0);
  EXPECT_TRUE(unit.expired());
}

}  // namespace
}  // namespace sluice::simulation
