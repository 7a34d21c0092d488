// What is asked for by R2T and has not come yet (RFC 7143 §11.8): never more than
// limits::kMaxSolicited over all writes of a session, and all of that again once it has come.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <random>

#include "simulation/initiator.h"

namespace sluice::simulation {
namespace {

using pdu::Opcode;
using pdu::TaskFunction;

constexpr uint32_t kMiB = 1u << 20;

// An R2T that was not answered yet, or not with all of it.
struct Asked {
  uint32_t itt = 0;
  uint32_t tag = 0;
  uint32_t offset = 0;
  uint32_t length = 0;
  uint32_t sent = 0;
  uint32_t data_sn = 0;
  uint32_t left() const { return length - sent; }
};

class Solicited : public testing::Test {
 protected:
  void log_in(uint32_t max_burst, uint32_t outstanding_r2t, bool digests = false) {
    iscsi::Settings settings;
    settings.offer.max_burst_length = limits::kMaxBurst;
    settings.offer.max_outstanding_r2t = limits::kMaxOutstandingR2t;
    settings.offer.max_recv_data_segment_length = limits::kMaxSegment;
    gateway_ = std::make_unique<SimulatedGateway>(settings);
    host_ = std::make_unique<Initiator>(gateway_->connect());
    std::vector<std::string> keys = {"InitialR2T=Yes", "ImmediateData=No",
                                     "MaxBurstLength=" + std::to_string(max_burst),
                                     "MaxOutstandingR2T=" + std::to_string(outstanding_r2t)};
    if (digests) keys.push_back("DataDigest=CRC32C");
    ASSERT_TRUE(host_->login(keys));
    if (digests) host_->set_digests(false, true);
    host_->clear_attention();
  }
  uint32_t start_write(uint32_t bytes) {
    const auto h =
        host_->command(write16(0, bytes / 512), pdu::kFlagFinal | pdu::kFlagWrite | 1, bytes);
    host_->send(h);
    look();
    return h.itt();
  }
  // Takes what the gateway said.
  void look() {
    for (const Answer& a : host_->answers()) {
      const pdu::Bhs& h = a.header;
      switch (h.opcode()) {
        case Opcode::kR2t:
          asked_.push_back({h.itt(), h.target_transfer_tag(), h.u32(40), h.u32(44)});
          break;
        case Opcode::kScsiResponse:
          statuses_[h.itt()] = h.u8(3);
          break;
        case Opcode::kTaskManagementResponse:
          EXPECT_EQ(h.u8(2), 0);
          ++functions_;
          break;
        case Opcode::kReject:
          ++rejects_;
          break;
        default:
          break;
      }
    }
    most_ = std::max(most_, outstanding());
    ASSERT_LE(outstanding(), limits::kMaxSolicited);
  }
  uint64_t outstanding() const {
    uint64_t sum = 0;
    for (const Asked& a : asked_) sum += a.left();
    return sum;
  }
  uint64_t outstanding(uint32_t itt) const {
    uint64_t sum = 0;
    for (const Asked& a : asked_) sum += a.itt == itt ? a.left() : 0;
    return sum;
  }
  // Sends the next `bytes` of that R2T; not more than it asked for.
  void send_some(size_t which, uint32_t bytes) {
    Asked& a = asked_[which];
    const uint32_t n = std::min(bytes, a.left());
    const auto h = host_->data_out(a.itt, a.tag, a.data_sn++, a.offset + a.sent, n == a.left());
    a.sent += n;
    if (a.left() == 0) asked_.erase(asked_.begin() + static_cast<ptrdiff_t>(which));
    host_->send(h, ByteView(zeros_).first(n));
    look();
  }
  void send_all() {
    while (!asked_.empty()) send_some(0, asked_[0].left());
  }
  // The initiator drops what it was asked for in the name of a task that is no more.
  void forget(uint32_t itt) {
    std::erase_if(asked_, [itt](const Asked& a) { return a.itt == itt; });
  }
  pdu::Bhs function(TaskFunction f, uint32_t itt = 0) {
    pdu::Bhs h = host_->request(Opcode::kTaskManagementRequest, true);
    h.set_flags(static_cast<uint8_t>(pdu::kFlagFinal | static_cast<uint8_t>(f)));
    h.put32(20, itt);
    return h;
  }
  // Nothing is counted that isn't there, and nothing that is there was forgotten: writes that
  // want more than the bound, whatever the session negotiated, are asked for just that.
  void expect_all_room_is_free() {
    ASSERT_TRUE(asked_.empty());
    host_->clear_attention();
    for (int i = 0; i < 80; ++i) start_write(kMiB / 2);
    EXPECT_EQ(outstanding(), limits::kMaxSolicited);
    send_all();
    EXPECT_TRUE(asked_.empty());
    EXPECT_EQ(gateway_->buffers().in_use(), 0u);
  }

  std::unique_ptr<SimulatedGateway> gateway_;
  std::unique_ptr<Initiator> host_;
  std::vector<Asked> asked_;  // in the order in which it was
  std::map<uint32_t, uint8_t> statuses_;
  uint32_t functions_ = 0;
  uint32_t rejects_ = 0;
  uint64_t most_ = 0;
  const std::vector<uint8_t> zeros_ = std::vector<uint8_t>(4 * kMiB);
};

TEST_F(Solicited, AllWritesTogetherSolicitNoMoreThanTheLimit) {
  log_in(kMiB / 2, 8);
  for (int i = 0; i < 12; ++i) start_write(4 * kMiB);
  send_all();  // look() holds it against the bound each time
  EXPECT_EQ(most_, limits::kMaxSolicited) << "and all of it is made use of";
  EXPECT_EQ(statuses_.size(), 12u);
  expect_all_room_is_free();
}

TEST_F(Solicited, TheOldestWriteReceivesItsR2tFirst) {
  log_in(kMiB, 1);
  std::vector<uint32_t> writes;
  for (int i = 0; i < 6; ++i) writes.push_back(start_write(2 * kMiB));
  ASSERT_EQ(asked_.size(), 4u);
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(asked_[i].itt, writes[i]);
  // The first may have another now: it is older than the fifth, which waited all the time.
  send_some(0, kMiB);
  ASSERT_EQ(asked_.size(), 4u);
  EXPECT_EQ(asked_[3].itt, writes[0]);
  EXPECT_EQ(asked_[3].offset, kMiB);
  // It wants nothing more after this one, and the others have one each.
  send_some(3, kMiB);
  ASSERT_EQ(asked_.size(), 4u);
  EXPECT_EQ(asked_[3].itt, writes[4]);
}

TEST_F(Solicited, ASmallBurstDoesNotOvertakeAWaitingLargeBurst) {
  log_in(kMiB, 4);
  start_write(3 * kMiB + kMiB / 2);
  const uint32_t large = start_write(kMiB);
  const uint32_t small = start_write(kMiB / 4);
  EXPECT_EQ(outstanding(large), 0u) << "half of it would fit";
  EXPECT_EQ(outstanding(small), 0u) << "its turn has not come";
  send_some(0, kMiB / 2);
  EXPECT_EQ(outstanding(large), kMiB);
  EXPECT_EQ(outstanding(small), 0u);
}

TEST_F(Solicited, AnR2tIsSentAsSoonAsPartOfAnEarlierBurstHasArrived) {
  log_in(kMiB, 4);
  start_write(4 * kMiB);
  const uint32_t next = start_write(kMiB / 4);
  send_some(0, kMiB / 4 - 512);
  EXPECT_EQ(outstanding(next), 0u);
  send_some(0, 512);
  EXPECT_EQ(outstanding(next), kMiB / 4) << "the first burst is still under way";
}

TEST_F(Solicited, AnR2tDoesNotExceedTheLimitEvenIfMaxBurstLengthDoes) {
  log_in(limits::kMaxBurst - 512, 4);
  backend::Spec spec;
  spec.kind = "memory";
  spec.size = limits::kMaxBurst;
  gateway_->replace_lun(0, spec);
  host_->clear_attention();
  start_write(limits::kMaxBurst);
  ASSERT_EQ(asked_.size(), 1u);
  EXPECT_EQ(asked_[0].length, limits::kMaxSolicited);
  send_all();
  EXPECT_EQ(statuses_.size(), 1u);
}

TEST_F(Solicited, UnsolicitedDataDoesNotCountAgainstTheLimit) {
  iscsi::Settings settings;
  settings.offer.max_recv_data_segment_length = limits::kMaxSegment;
  gateway_ = std::make_unique<SimulatedGateway>(settings);
  host_ = std::make_unique<Initiator>(gateway_->connect());
  ASSERT_TRUE(host_->login({"InitialR2T=No", "ImmediateData=No", "FirstBurstLength=65536",
                            "MaxBurstLength=1048576", "MaxOutstandingR2T=8"}));
  host_->clear_attention();
  const auto open = host_->command(write16(0, 128), pdu::kFlagWrite | 1, 65536);
  host_->send(open);
  start_write(4 * kMiB);
  EXPECT_EQ(outstanding(), limits::kMaxSolicited) << "another announced unsolicited data";
  host_->send(host_->data_out(open.itt(), pdu::kReservedTag, 0, 0, true),
              ByteView(zeros_).first(65536));
  start_write(4 * kMiB);
  EXPECT_EQ(outstanding(), limits::kMaxSolicited) << "which is no room when it comes";
  send_all();
  EXPECT_EQ(statuses_.size(), 3u);
}

TEST_F(Solicited, AnAbortedWriteReleasesItsSolicitedBytesOnce) {
  log_in(kMiB, 4);
  const uint32_t first = start_write(4 * kMiB);
  const uint32_t second = start_write(4 * kMiB);
  const uint32_t third = start_write(4 * kMiB);
  send_some(0, kMiB / 2);
  const std::vector<Asked> late = asked_;
  forget(first);
  host_->send(function(TaskFunction::kAbortTask, first));
  look();
  EXPECT_EQ(functions_, 1u);
  EXPECT_EQ(outstanding(second), limits::kMaxSolicited);
  // Late data for the first task frees no memory for the third.
  for (const Asked& a : late) {
    host_->send(host_->data_out(a.itt, a.tag, a.data_sn, a.offset + a.sent, true),
                ByteView(zeros_).first(a.left()));
  }
  look();
  EXPECT_EQ(outstanding(third), 0u);
  // The second's goes to the third as the first's went to the second.
  forget(second);
  host_->send(function(TaskFunction::kAbortTask, second));
  look();
  EXPECT_EQ(outstanding(third), limits::kMaxSolicited);
  send_all();
  EXPECT_EQ(statuses_.size(), 1u);
  expect_all_room_is_free();
}

TEST_F(Solicited, AnAbortedWaitingWriteReceivesNoR2t) {
  log_in(kMiB, 4);
  start_write(4 * kMiB);
  const uint32_t second = start_write(4 * kMiB);
  const uint32_t third = start_write(4 * kMiB);
  host_->send(function(TaskFunction::kAbortTask, second));
  look();
  send_some(0, kMiB);
  EXPECT_EQ(outstanding(second), 0u);
  EXPECT_EQ(outstanding(third), kMiB);
  send_all();
  EXPECT_EQ(statuses_.size(), 2u);
  expect_all_room_is_free();
}

TEST_F(Solicited, ATaskSetFunctionOrResetStopsR2tsForAllWrites) {
  for (const TaskFunction f : {TaskFunction::kAbortTaskSet, TaskFunction::kClearTaskSet,
                               TaskFunction::kLogicalUnitReset, TaskFunction::kTargetWarmReset}) {
    log_in(kMiB, 4);
    functions_ = 0;
    statuses_.clear();
    for (int i = 0; i < 24; ++i) start_write(4 * kMiB);
    send_some(0, kMiB / 2);
    asked_.clear();
    host_->send(function(f));
    look();
    EXPECT_EQ(functions_, 1u);
    EXPECT_TRUE(asked_.empty()) << static_cast<int>(f);
    EXPECT_TRUE(statuses_.empty());
    expect_all_room_is_free();
  }
}

TEST_F(Solicited, AWriteWithInvalidDataReceivesNoMoreR2tsAndReleasesItsBytes) {
  log_in(kMiB, 8);
  const uint32_t first = start_write(2 * kMiB);
  const uint32_t bad = start_write(4 * kMiB);
  const uint32_t good = start_write(4 * kMiB);
  ASSERT_EQ(outstanding(bad), 2 * kMiB) << "and it waits for more";
  // At the wrong place, and with less than was asked for.
  const Asked wrong = asked_[2];
  asked_.erase(asked_.begin() + 2);
  host_->send(host_->data_out(bad, wrong.tag, 0, wrong.offset + 512, true),
              ByteView(zeros_).first(512));
  look();
  EXPECT_EQ(outstanding(bad), kMiB);
  send_some(0, kMiB);
  EXPECT_EQ(outstanding(first), kMiB);
  EXPECT_EQ(outstanding(bad), kMiB);
  EXPECT_EQ(outstanding(good), kMiB);
  send_some(1, kMiB);
  EXPECT_EQ(statuses_[bad], 2);
  EXPECT_EQ(outstanding(good), 3 * kMiB) << "what never came of the bad one is given back";
  send_all();
  EXPECT_EQ(statuses_[good], 0);
  expect_all_room_is_free();
}

TEST_F(Solicited, DamagedDataReleasesSolicitedBytesLikeIntactData) {
  log_in(kMiB, 4, true);
  const uint32_t bad = start_write(4 * kMiB);
  const uint32_t next = start_write(kMiB);
  const Asked a = asked_[0];
  asked_.erase(asked_.begin());
  std::vector<uint8_t> bytes =
      host_->frame(host_->data_out(bad, a.tag, 0, a.offset, true), ByteView(zeros_).first(kMiB));
  bytes[100] ^= 1;
  host_->connection().send(bytes);
  look();
  EXPECT_EQ(rejects_, 1u);
  EXPECT_EQ(outstanding(next), kMiB);
  send_all();
  EXPECT_EQ(statuses_[bad], 2);
  EXPECT_EQ(statuses_[next], 0);
  expect_all_room_is_free();
}

TEST_F(Solicited, ExcessDataReleasesNoMoreThanTheRequestedBytes) {
  log_in(kMiB, 2);
  const uint32_t bad = start_write(2 * kMiB);
  start_write(4 * kMiB);
  start_write(4 * kMiB);
  const uint32_t last = start_write(4 * kMiB);
  ASSERT_EQ(outstanding(bad), 2 * kMiB);
  const std::vector<Asked> both(asked_.begin(), asked_.begin() + 2);
  forget(bad);
  // More than both of its R2Ts asked for, in the name of the first; it waits for the second's.
  host_->send(host_->data_out(bad, both[0].tag, 0, 0, true), ByteView(zeros_).first(3 * kMiB));
  look();
  EXPECT_FALSE(statuses_.contains(bad));
  EXPECT_EQ(outstanding(), limits::kMaxSolicited);
  EXPECT_EQ(outstanding(last), 0u);
  host_->send(host_->data_out(bad, both[1].tag, 0, kMiB, true), ByteView(zeros_).first(kMiB));
  look();
  EXPECT_EQ(statuses_[bad], 2);
  EXPECT_EQ(outstanding(last), 0u);
  send_all();
  expect_all_room_is_free();
}

TEST_F(Solicited, RandomWritesAndAbortsAllEndAndReleaseAllSolicitedBytes) {
  for (uint32_t seed = 1; seed <= 40; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&random](uint32_t n) { return static_cast<uint32_t>(random() % n); };
    const uint32_t burst = 65536u << below(5);
    log_in(burst, 1 + below(8));
    asked_.clear();
    statuses_.clear();
    std::vector<uint32_t> writes;
    std::vector<uint32_t> aborted;
    for (int step = 0; step < 300 && !HasFatalFailure(); ++step) {
      const uint32_t what = below(10);
      if (what < 3 && writes.size() < 60) {
        writes.push_back(start_write(512 * (1 + below(4 * kMiB / 512))));
      } else if (what == 3 && !writes.empty()) {
        const uint32_t itt = writes[below(static_cast<uint32_t>(writes.size()))];
        if (statuses_.contains(itt) || std::ranges::count(aborted, itt) != 0) continue;
        aborted.push_back(itt);
        std::vector<Asked> late;
        std::ranges::copy_if(asked_, std::back_inserter(late),
                             [itt](const Asked& a) { return a.itt == itt; });
        forget(itt);
        host_->send(function(TaskFunction::kAbortTask, itt));
        look();
        for (const Asked& a : late) {
          if (below(2) == 0) continue;
          host_->send(host_->data_out(itt, a.tag, a.data_sn, a.offset + a.sent, true),
                      ByteView(zeros_).first(a.left()));
        }
        look();
      } else if (!asked_.empty()) {
        const uint32_t which = below(static_cast<uint32_t>(asked_.size()));
        // Data of one task comes in the order in which it was asked for.
        const uint32_t itt = asked_[which].itt;
        const auto first = std::ranges::find(asked_, itt, &Asked::itt);
        send_some(static_cast<size_t>(first - asked_.begin()), 512 * (1 + below(burst / 512)));
      }
    }
    send_all();
    for (const uint32_t itt : writes) {
      const bool gone = std::ranges::count(aborted, itt) != 0;
      EXPECT_EQ(statuses_.contains(itt), !gone) << "seed " << seed;
      if (!gone) {
        EXPECT_EQ(statuses_[itt], 0) << "seed " << seed;
      }
    }
    expect_all_room_is_free();
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace sluice::simulation
