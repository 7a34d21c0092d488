// A unit that answers nothing keeps the data of what was written to it: a part of its session's and
// of its reactor's memory, not all (DESIGN R14, R15).
#include "simulation/write_buffer_quota_fixture.h"
#include "unit/statistics.h"
#include "unit/unit.h"

namespace sluice::simulation {
namespace {

using pdu::Opcode;

TEST_F(WriteBufferQuotaTest, AHangingUnitLeavesMemoryForOtherUnitsOfItsReactor) {
  constexpr unsigned kHosts = 8;
  constexpr unsigned kWrites = 24;  // 768 MiB in all
  gateway_.disk(kHung).hold(true);
  for (unsigned i = 0; i < kHosts; ++i) {
    Writer& w = log_in();
    for (unsigned n = 0; n < kWrites; ++n) w.start(kHung, kBytes);
  }
  answer_all();
  EXPECT_GT(pool().available(), pool().budget() / 4);
  for (const auto& w : writers_) {
    EXPECT_GT(w->asked_for, 0u) << "no host is kept out of the unit by another";
    EXPECT_TRUE(writes(*w, kLive)) << "a host that writes to the one that hangs, too";
  }
  EXPECT_TRUE(writes(log_in(), kLive));

  release_disk();
  for (unsigned i = 0; i < kHosts; ++i) {
    EXPECT_EQ(writers_[i]->good, kWrites) << "host " << i << ": all that waited went on";
  }
  EXPECT_EQ(pool().in_use(), 0u);
}

TEST_F(WriteBufferQuotaTest, AHangingLunLeavesMemoryForOtherLunsOfItsSession) {
  Writer& w = log_in();
  gateway_.disk(kHung).hold(true);
  for (unsigned n = 0; n < 24; ++n) w.start(kHung, kBytes);
  answer_all();
  EXPECT_TRUE(writes(w, kLive));
}

// More READs than a session may have in progress. Each LUN has a share of its own.
TEST_F(WriteBufferQuotaTest, ReadsOfAHangingLunDoNotDelayReadsOfOtherLunsOfItsSession) {
  Writer& w = log_in();
  gateway_.disk(kHung).hold(true);
  constexpr unsigned kReads = 2 * limits::kMaxOutputBytes / kPiece;
  const auto read = [&w](uint64_t lun) {
    const pdu::Bhs header =
        w.host.command(read16(0, kPiece / 512), pdu::kFlagFinal | pdu::kFlagRead | 1, kPiece, lun);
    w.host.send(header);
    return header.itt();
  };
  for (unsigned n = 0; n < kReads; ++n) read(kHung);
  EXPECT_LT(gateway_.disk(kHung).waiting(), kReads) << "the session's limit has no effect";
  std::set<uint32_t> sent;
  for (unsigned n = 0; n < 8; ++n) sent.insert(read(kLive));
  gateway_.run();
  std::set<uint32_t> answered;
  for (const Answer& a : w.host.answers()) {
    if (a.header.opcode() == Opcode::kDataIn && (a.header.flags() & pdu::kFlagStatus) != 0) {
      answered.insert(a.header.itt());
    }
  }
  EXPECT_EQ(answered, sent);

  release_disk();
  EXPECT_EQ(gateway_.disk(kHung).waiting(), 0u);
  EXPECT_EQ(pool().in_use(), 0u);
}

TEST_F(WriteBufferQuotaTest, ExcessUnsolicitedDataForAHangingUnitReturnsTaskSetFull) {
  constexpr unsigned kHosts = 16;
  constexpr unsigned kWrites = 64;  // 256 MiB in all
  gateway_.disk(kHung).hold(true);
  const std::vector<uint8_t> data(kPiece, 3);
  unsigned full = 0;
  for (unsigned i = 0; i < kHosts; ++i) {
    Writer& w = log_in(true);
    for (unsigned n = 0; n < kWrites; ++n) w.start(kHung, kPiece, data);
    w.look();
    full += w.full;
  }
  EXPECT_GT(full, 0u);
  EXPECT_GE(pool().available() + size_t{2} * kPiece, pool().budget() / (limits::kUnaskedShare + 1));
  EXPECT_TRUE(writes(*writers_[0], kLive));
  EXPECT_EQ(gateway_.unit(kHung)->statistics().snapshot().failures[size_t(lun::Failure::kBusy)],
            full);

  release_disk();
  unsigned good = 0;
  for (const auto& w : writers_) {
    w->look();
    good += w->good;
  }
  EXPECT_EQ(good + full, kHosts * kWrites) << "the others were done";
  EXPECT_TRUE(writes(*writers_[0], kHung));
  EXPECT_EQ(pool().in_use(), 0u);
}

TEST_F(WriteBufferQuotaTest, ADisconnectedHostReleasesItsWholeQuota) {
  const auto granted = [&] {  // to a host that is alone, before it sends anything
    Writer& w = log_in();
    gateway_.disk(kHung).hold(true);
    for (unsigned n = 0; n < 24; ++n) w.start(kHung, kBytes);
    w.look();
    return w.asked_for;
  };
  const unsigned first = granted();
  writers_.back()->host.connection().hang_up();
  for (unsigned round = 0; round < 8; ++round) {
    Writer& w = log_in();
    for (unsigned n = 0; n < 24; ++n) w.start(kHung, kBytes);
    // Some of it has come, or all, or it runs already.
    for (unsigned n = 0; n < 24 * round; ++n) w.answer();
    w.host.connection().hang_up();
  }
  release_disk();
  EXPECT_EQ(pool().in_use(), 0u);
  EXPECT_EQ(granted(), first);
}

TEST_F(WriteBufferQuotaTest, ReadsLeaveTheBytesReservedForAdmittedWrites) {
  grow(kLive);
  const size_t reserved = reserve_by_write();
  EXPECT_GT(reserved, pool().budget() / 3);
  read(7, false);
  EXPECT_GE(pool().available(), reserved + pool().budget() / limits::kReceiveReserve / 2);
  EXPECT_LT(pool().available(), reserved + kLarge + kLarge) << "but they do run";

  answer_all();
  for (unsigned i = 0; i < 3; ++i) {
    EXPECT_EQ(writers_[i]->good, 8u) << "host " << i;
    EXPECT_FALSE(writers_[i]->host.connection().closed());
  }
  EXPECT_EQ(gateway_.shard().write_quota.free(), pool().available());
}

TEST_F(WriteBufferQuotaTest, AReservationEndsWithItsTask) {
  grow(kLive);
  const auto free = [&] { return gateway_.shard().write_quota.free(); };
  for (unsigned round = 0; round < 6; ++round) {
    EXPECT_GT(reserve_by_write(), pool().budget() / 3);
    read(3, true);
    EXPECT_EQ(gateway_.disk(kLive).waiting(), 1u) << "the others find no memory";
    for (unsigned i = 0; i < 3; ++i) {
      Writer& w = *writers_[i];
      // Some of what it was asked for has come.
      for (unsigned n = 0; n < 6 * round; ++n) w.answer();
      if (round % 3 == 0) {
        w.host.connection().hang_up();
      } else if (round % 3 == 1) {
        pdu::Bhs abort = w.host.request(Opcode::kTaskManagementRequest, true);
        abort.set_flags(pdu::kFlagFinal | static_cast<uint8_t>(pdu::TaskFunction::kAbortTaskSet));
        w.host.send(abort);
      } else if (pdu::Bhs wrong = w.host.data_out(0, 0, 0, 0, true); !w.asked.empty()) {
        // All that was asked for goes by, with wrong numbers: the task fails.
        for (const pdu::Bhs& r2t : w.asked) {
          wrong = w.host.data_out(r2t.itt(), r2t.target_transfer_tag(), 9, r2t.u32(40), true);
          w.host.send(wrong, std::vector<uint8_t>(r2t.u32(44), 1));
        }
        w.host.connection().hang_up();
      }
    }
    EXPECT_EQ(free(), pool().available()) << "round " << round;
    gateway_.advance(limits::kTick);
    EXPECT_EQ(gateway_.disk(kLive).waiting(), 3u) << "reads that waited are notified";
    for (const auto& w : writers_) {
      if (!w->host.connection().closed()) w->host.connection().hang_up();
    }
    writers_.clear();
    gateway_.disk(kLive).release_all();
    gateway_.run();
    ASSERT_EQ(pool().in_use(), 0u);
  }
}

}  // namespace
}  // namespace sluice::simulation
