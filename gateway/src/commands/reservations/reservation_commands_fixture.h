// A unit whose reservation store answers when the test says so, and three initiators.
#pragma once

#include <gtest/gtest.h>

#include <deque>

#include "commands/reservations/reservations_fixture.h"
#include "nexus/lun_fixture.h"
#include "unit/reservations/reservation_contract.h"

namespace sluice::lun {

// Queues calls until the test supplies the answers, and posts them as the contract requires.
class TestStore : public ReservationStore {
 public:
  void commit(const std::string&, const ReservationState& state, StoreReply reply,
              CommitDone done) override {
    states.push_back(state);
    if (holds) {
      waiting.push_back({reply, std::move(done)});
    } else {
      tell({reply, std::move(done)}, outcome);
    }
  }
  void read(const std::string&, StoreReply reply, ReadDone done) override {
    ++reads;
    if (holds_reads) {
      readers.push_back({reply, std::move(done)});
    } else {
      tell({reply, std::move(done)});
    }
  }
  Result<ReservationState> load(const std::string&) override { return kept; }
  void stop() override {}

  void answer(CommitOutcome with) {
    const Commit commit = std::move(waiting.front());
    waiting.pop_front();
    tell(commit, with);
  }
  void answer_read() {
    const Reader reader = std::move(readers.front());
    readers.pop_front();
    tell(reader);
  }

  bool holds = false;
  bool holds_reads = false;
  CommitOutcome outcome = CommitOutcome::kCommitted;
  unsigned reads = 0;
  std::vector<ReservationState> states;
  Result<ReservationState> kept = ReservationState{};

  struct Commit {
    StoreReply reply;
    CommitDone done;
  };
  struct Reader {
    StoreReply reply;
    ReadDone done;
  };
  std::deque<Commit> waiting;
  std::deque<Reader> readers;

 private:
  static void tell(const Commit& commit, CommitOutcome with) {
    commit.reply.reactors->post(commit.reply.reactor,
                                [done = commit.done, with] { done(with, ""); });
  }
  void tell(const Reader& reader) const {
    reader.reply.reactors->post(reader.reply.reactor,
                                [done = reader.done, state = kept] { done(state); });
  }
};

struct Out {
  uint64_t key = 0;
  uint64_t service_action_key = 0;
  scsi::PrType type = scsi::PrType::kNone;
  uint8_t flags = 0;  // byte 20: SPEC_I_PT 8, ALL_TG_PT 4, APTPL 1
  Bytes transport_ids{};
};

inline Bytes transport_id(const std::string& name) {
  Bytes id = {0x45, 0, 0, 0};
  const std::string text = "iqn.2026-11.test:" + name + ",i,0x000000000000";
  id.insert(id.end(), text.begin(), text.end());
  do id.push_back(0);
  while (id.size() % 4 != 0);
  id[3] = static_cast<uint8_t>(id.size() - 4);
  return id;
}

class ReservationCommandsTest : public LunTest {
 protected:
  ReservationCommandsTest() : store(std::make_shared<TestStore>()) {}
  void SetUp() override {
    make_unit_with(store);
    a = open("a");
    b = open("b", 1);
    c = open("c");
  }
  void make_unit_with(std::shared_ptr<ReservationStore> with) {
    auto memory = std::make_unique<TestBackend>(kBlocks * block);
    backend = memory.get();
    UnitIdentity identity;
    identity.uuid = {1, 2, 3};
    unit = std::make_shared<Unit>(identity, std::move(memory), reactors.count(), std::move(with));
    target = std::make_shared<Target>("iqn.2026-11.dev.sluice:test", "", 1);
    target->set_luns({{0, unit}}, reactors);
  }

  Task& begin_out(Nexus& nexus, scsi::PrOutAction action, const Out& out = {}) {
    Bytes data(24);
    put_be(data, 0, 8, out.key);
    put_be(data, 8, 8, out.service_action_key);
    data[20] = out.flags;
    if (!out.transport_ids.empty()) {
      data.resize(28);
      put_be(data, 24, 4, out.transport_ids.size());
      data.insert(data.end(), out.transport_ids.begin(), out.transport_ids.end());
    }
    return begin_list(nexus, action, out.type, std::move(data));
  }
  Task& begin_list(Nexus& nexus, scsi::PrOutAction action, scsi::PrType type, Bytes data) {
    Bytes cdb(10);
    cdb[0] = 0x5f;
    cdb[1] = static_cast<uint8_t>(action);
    cdb[2] = static_cast<uint8_t>(type);
    put_be(cdb, 5, 4, data.size());
    return start(nexus, cdb, std::move(data));
  }
  Task& run(Task& task) {
    reactors.run();
    EXPECT_TRUE(task.done());
    return task;
  }
  scsi::Status out(Nexus& nexus, scsi::PrOutAction action, const Out& what = {}) {
    return run(begin_out(nexus, action, what)).command.status;
  }
  void enlist(Nexus& nexus, uint64_t key) {
    ASSERT_EQ(
        out(nexus, scsi::PrOutAction::kRegisterAndIgnoreExistingKey, {.service_action_key = key}),
        scsi::Status::kGood);
  }
  void reserve(Nexus& nexus, uint64_t key, scsi::PrType type) {
    ASSERT_EQ(out(nexus, scsi::PrOutAction::kReserve, {.key = key, .type = type}),
              scsi::Status::kGood);
  }
  Task& in(Nexus& nexus, uint8_t action, uint16_t room = 1024) {
    Bytes cdb(10);
    cdb[0] = 0x5e;
    cdb[1] = action;
    put_be(cdb, 7, 2, room);
    return run(start(nexus, cdb));
  }
  scsi::Status status_of(Nexus& nexus, const Bytes& cdb, Bytes data = {}) {
    return run(start(nexus, cdb, std::move(data))).command.status;
  }
  bool reads(Nexus& nexus) { return status_of(nexus, read16(0, 1)) == scsi::Status::kGood; }
  bool writes(Nexus& nexus) {
    return status_of(nexus, write16(0, 1), Bytes(block)) == scsi::Status::kGood;
  }
  uint32_t attention(Nexus& nexus) { return run(start(nexus, test_unit_ready())).sense(); }
  scsi::Status reserve6(Nexus& nexus) { return status_of(nexus, {0x16, 0, 0, 0, 0, 0}); }
  scsi::Status release6(Nexus& nexus) { return status_of(nexus, {0x17, 0, 0, 0, 0, 0}); }
  const ReservationState& state() { return unit->reservations().state(); }

  std::shared_ptr<TestStore> store;
  std::shared_ptr<Nexus> a, b, c;
};

}  // namespace sluice::lun
