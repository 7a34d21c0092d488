// A unit that answers nothing keeps the data of what was written to it: a part of its session's and
// of its reactor's memory, not all (DESIGN R14, R15).
#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "lun/statistics.h"
#include "lun/unit.h"
#include "scsi/sense.h"
#include "simulation/initiator.h"

namespace sluice::simulation {
namespace {

using pdu::Opcode;

constexpr uint32_t kBytes = 4u << 20;  // of one write
constexpr uint32_t kLarge = limits::kMaxTransferBytes;
constexpr uint32_t kPiece = 256u << 10;
constexpr uint64_t kHung = 0;  // LUNs
constexpr uint64_t kLive = 1;

// A host that writes to one LUN without waiting for answers.
struct Writer {
  explicit Writer(SimulatedConnection& connection) : host(connection) {}
  Initiator host;
  std::deque<pdu::Bhs> asked;
  unsigned asked_for = 0;  // R2Ts so far
  unsigned good = 0;
  unsigned full = 0;  // TASK SET FULL

  void start(uint64_t lun, uint32_t bytes, ByteView immediate = {}) {
    const auto header =
        host.command(write16(0, bytes / 512), pdu::kFlagFinal | pdu::kFlagWrite | 1, bytes, lun);
    host.send(header, immediate);
  }
  void look() {
    for (const Answer& a : host.answers()) {
      if (a.header.opcode() == Opcode::kR2t) {
        asked.push_back(a.header);
        ++asked_for;
      }
      if (a.header.opcode() != Opcode::kScsiResponse) continue;
      const auto status = static_cast<scsi::Status>(a.header.data()[3]);
      if (status == scsi::Status::kGood) ++good;
      if (status == scsi::Status::kTaskSetFull) ++full;
    }
  }
  // Sends what it was asked for. false: nothing.
  bool answer() {
    look();
    if (asked.empty()) return false;
    const pdu::Bhs r2t = asked.front();
    asked.pop_front();
    const std::vector<uint8_t> data(r2t.u32(44), 1);
    host.send(host.data_out(r2t.itt(), r2t.target_transfer_tag(), 0, r2t.u32(40), true), data);
    return true;
  }
};

class WriteMemory : public testing::Test {
 protected:
  Writer& log_in(bool immediate = false) {
    const auto n = static_cast<uint8_t>(writers_.size() + 1);
    writers_.push_back(std::make_unique<Writer>(gateway_.connect()));
    Writer& w = *writers_.back();
    w.host.isid[5] = n;
    w.host.name += std::to_string(n);
    EXPECT_TRUE(w.host.login({"MaxBurstLength=262144", "FirstBurstLength=262144",
                              immediate ? "ImmediateData=Yes" : "ImmediateData=No"}));
    w.host.clear_attention(kHung);
    w.host.clear_attention(kLive);
    return w;
  }
  void answer_all() {
    for (bool any = true; any;) {
      any = false;
      for (const auto& w : writers_) any = w->answer() || any;
    }
  }
  bool writes(Writer& w, uint64_t lun) {
    return w.host.execute(write16(0, kBytes / 512), 0, std::vector<uint8_t>(kBytes, 2), lun)
               .status == 0;
  }
  // The unit that hung answers all that waits, and what comes then at once.
  void let_go() {
    gateway_.disk(kHung).hold(false);
    gateway_.disk(kHung).release_all();
    gateway_.run();
    answer_all();
  }
  // Before anybody logs in: a transfer of the largest size fits.
  void grow(unsigned lun) {
    backend::Spec spec;
    spec.kind = "memory";
    spec.size = kLarge;
    gateway_.replace_lun(lun, spec);
  }
  // Somebody else uses so much of the reactor's memory.
  void occupy(size_t bytes) {
    for (size_t i = 0; i < bytes; i += BufferPool::kLargest) {
      occupied_.push_back(pool().allocate(BufferPool::kLargest));
    }
  }
  // Three sessions are let in to write to one unit and send nothing yet.
  size_t promise() {
    for (unsigned i = 0; i < 3; ++i) {
      Writer& w = log_in();
      for (unsigned n = 0; n < 8; ++n) w.start(kHung, kBytes);
    }
    return pool().available() - gateway_.shard().write_memory.free();
  }
  // Hosts that read as much as they may at once, and perhaps take no answer.
  void read(unsigned hosts, bool take) {
    gateway_.disk(kLive).hold(true);  // so that data is read into buffers, not lent
    for (unsigned i = 0; i < hosts; ++i) {
      Initiator& host = log_in().host;
      host.connection().set_reading(take);
      host.send(host.command(read16(0, kLarge / 512), pdu::kFlagFinal | pdu::kFlagRead | 1, kLarge,
                             kLive));
    }
  }
  BufferPool& pool() { return gateway_.buffers(); }

  SimulatedGateway gateway_;
  std::vector<std::unique_ptr<Writer>> writers_;
  std::vector<BufferRef> occupied_;
};

TEST_F(WriteMemory, AUnitThatAnswersNothingLeavesOthersOfTheReactorMemory) {
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

  let_go();
  for (unsigned i = 0; i < kHosts; ++i) {
    EXPECT_EQ(writers_[i]->good, kWrites) << "host " << i << ": all that waited went on";
  }
  EXPECT_EQ(pool().in_use(), 0u);
}

TEST_F(WriteMemory, ALunThatAnswersNothingLeavesOthersOfItsSessionMemory) {
  Writer& w = log_in();
  gateway_.disk(kHung).hold(true);
  for (unsigned n = 0; n < 24; ++n) w.start(kHung, kBytes);
  answer_all();
  EXPECT_TRUE(writes(w, kLive));
}

TEST_F(WriteMemory, OfWhatComesUnaskedForAUnitThatAnswersNothingTheRestIsTaskSetFull) {
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

  let_go();
  unsigned good = 0;
  for (const auto& w : writers_) {
    w->look();
    good += w->good;
  }
  EXPECT_EQ(good + full, kHosts * kWrites) << "the others were done";
  EXPECT_TRUE(writes(*writers_[0], kHung));
  EXPECT_EQ(pool().in_use(), 0u);
}

TEST_F(WriteMemory, IsAllGivenBackByWhoeverLeaves) {
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
  let_go();
  EXPECT_EQ(pool().in_use(), 0u);
  EXPECT_EQ(granted(), first);
}

TEST_F(WriteMemory, ReadsLeaveWhatWasPromisedToWritesThatSendNothingYet) {
  grow(kLive);
  const size_t promised = promise();
  EXPECT_GT(promised, pool().budget() / 3);
  read(7, false);
  EXPECT_GE(pool().available(), promised + pool().budget() / limits::kReceiveReserve / 2);
  EXPECT_LT(pool().available(), promised + kLarge + kLarge) << "but they do run";

  answer_all();
  for (unsigned i = 0; i < 3; ++i) {
    EXPECT_EQ(writers_[i]->good, 8u) << "host " << i;
    EXPECT_FALSE(writers_[i]->host.connection().closed());
  }
  EXPECT_EQ(gateway_.shard().write_memory.free(), pool().available());
}

TEST_F(WriteMemory, TwoFirstWritesThatDoNotFitSideBySideGoOneAfterTheOther) {
  grow(kHung);
  grow(kLive);
  // What a reactor of 64 MiB has beside its receive ring.
  occupy(pool().available() - (size_t{63} << 20));
  Writer& one = log_in();
  Writer& two = log_in();
  one.start(kHung, kLarge);
  two.start(kLive, kLarge);
  one.look();
  two.look();
  EXPECT_GT(one.asked_for, 0u);
  EXPECT_EQ(two.asked_for, 0u);
  answer_all();
  EXPECT_EQ(one.good, 1u);
  EXPECT_EQ(two.good, 1u) << "it is told when memory came back";
}

TEST_F(WriteMemory, OneThatIsAloneNeedsNotFit) {
  grow(kHung);
  occupy(pool().available() - kLarge);  // its last bytes would take the reserve
  Writer& w = log_in();
  w.start(kHung, kLarge);
  w.look();
  EXPECT_GT(w.asked_for, 0u);
}

TEST_F(WriteMemory, APromiseEndsWithItsTask) {
  grow(kLive);
  const auto free = [&] { return gateway_.shard().write_memory.free(); };
  for (unsigned round = 0; round < 6; ++round) {
    EXPECT_GT(promise(), pool().budget() / 3);
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
    EXPECT_EQ(gateway_.disk(kLive).waiting(), 3u) << "reads that waited are told";
    for (const auto& w : writers_) {
      if (!w->host.connection().closed()) w->host.connection().hang_up();
    }
    writers_.clear();
    gateway_.disk(kLive).release_all();
    gateway_.run();
    ASSERT_EQ(pool().in_use(), 0u);
  }
}

TEST_F(WriteMemory, ALargeFirstWriteIsNotOvertakenForEver) {
  grow(kLive);
  occupy(size_t{72} << 20);  // beside what one unit takes, it does not fit
  for (unsigned i = 0; i < 3; ++i) {
    Writer& w = log_in();
    for (unsigned n = 0; n < 60; ++n) w.start(kHung, kBytes);
  }
  Writer& large = log_in();
  large.start(kLive, kLarge);
  const auto busy_for = [&](Nanos span) {
    for (Nanos t = 0; t < span; t += limits::kTick) {
      for (unsigned i = 0; i < 12; ++i) writers_[i % 3]->answer();
      gateway_.advance(limits::kTick);
    }
    large.look();
  };
  busy_for(limits::kMemoryPatience / 2);
  EXPECT_EQ(large.asked_for, 0u);
  busy_for(limits::kMemoryPatience / 2 + limits::kMemoryTurn);
  EXPECT_GT(large.asked_for, 0u);
  EXPECT_LT(writers_[0]->good, 60u) << "others were not done";
  answer_all();
  EXPECT_EQ(large.good, 1u);
  for (unsigned i = 0; i < 3; ++i) EXPECT_EQ(writers_[i]->good, 60u);
}

TEST_F(WriteMemory, ATurnInVainHoldsOthersUpForALittleOnly) {
  grow(kLive);
  occupy(size_t{72} << 20);
  gateway_.disk(kHung).hold(true);
  Writer& hung = log_in();
  for (unsigned n = 0; n < 8; ++n) hung.start(kHung, kBytes);
  answer_all();
  Writer& large = log_in();
  large.start(kLive, kLarge);
  Initiator& reader = log_in().host;
  const auto reads = [&] {
    reader.send(reader.command(read16(0, 8), pdu::kFlagFinal | pdu::kFlagRead | 1, 4096, kLive));
    return reader.answers().size();
  };
  EXPECT_EQ(reads(), 1u);
  gateway_.advance(limits::kMemoryPatience + limits::kTick);
  reader.answers();  // pings
  EXPECT_EQ(reads(), 0u);
  gateway_.advance(limits::kMemoryTurn + limits::kTick);
  EXPECT_GT(reader.answers().size(), 0u);
  EXPECT_EQ(reads(), 1u);
  large.look();
  EXPECT_EQ(large.asked_for, 0u);
}

}  // namespace
}  // namespace sluice::simulation
