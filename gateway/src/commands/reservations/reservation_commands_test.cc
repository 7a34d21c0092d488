// The four reservation commands as a host sees them.
#include <gtest/gtest.h>

#include "commands/reservations/reservation_commands_fixture.h"

namespace sluice::lun {
namespace {

using scsi::PrOutAction;
using scsi::PrType;
using scsi::Status;

// --- who may do what

TEST_F(ReservationCommandsTest, EveryTypeGatesReadsAndWritesEndToEnd) {
  struct Row {
    PrType type;
    bool registered_reads, registered_writes, stranger_reads, stranger_writes;
  };
  for (const Row& row :
       {Row{kWe, true, false, true, false}, Row{kEa, false, false, false, false},
        Row{kWero, true, true, true, false}, Row{kEaro, true, true, false, false},
        Row{kWear, true, true, true, false}, Row{kEaar, true, true, false, false}}) {
    const int type = static_cast<int>(row.type);
    enlist(*a, 0xa);
    enlist(*b, 0xb);
    reserve(*a, 0xa, row.type);
    EXPECT_TRUE(reads(*a) && writes(*a)) << type;
    EXPECT_EQ(reads(*b), row.registered_reads) << type;
    EXPECT_EQ(writes(*b), row.registered_writes) << type;
    EXPECT_EQ(reads(*c), row.stranger_reads) << type;
    EXPECT_EQ(writes(*c), row.stranger_writes) << type;
    EXPECT_EQ(out(*a, PrOutAction::kRelease, {.key = 0xa, .type = row.type}), Status::kGood);
    attention(*b);
    EXPECT_TRUE(writes(*c)) << "released";
    EXPECT_EQ(out(*a, PrOutAction::kClear, {.key = 0xa}), Status::kGood);
    attention(*b);
  }
}

TEST_F(ReservationCommandsTest, ExclusiveAccessPermitsOtherNexusesToStartTheUnit) {
  enlist(*a, 1);
  reserve(*a, 1, scsi::PrType::kExclusiveAccess);
  EXPECT_EQ(status_of(*b, {0x1b, 0, 0, 0, 1, 0}), scsi::Status::kGood);
  EXPECT_EQ(status_of(*b, {0x1b, 0, 0, 0, 0, 0}), scsi::Status::kReservationConflict);
}

TEST_F(ReservationCommandsTest, AReservationEndsOrRemainsSharedWhenItsHolderUnregisters) {
  for (const PrType type : kAllTypes) {
    enlist(*a, 0xa);
    enlist(*b, 0xb);
    reserve(*a, 0xa, type);
    EXPECT_EQ(out(*a, PrOutAction::kRegister, {.key = 0xa}), Status::kGood);
    const bool all = scsi::is_all_registrants(type);
    EXPECT_EQ(attention(*b), scsi::is_registrants_only(type) ? 0x062a04u : 0u);
    EXPECT_EQ(in(*c, 1).answer().size(), all ? 24u : 8u);
    if (all) {
      EXPECT_EQ(out(*b, PrOutAction::kRelease, {.key = 0xb, .type = type}), Status::kGood);
    }
    EXPECT_EQ(out(*b, PrOutAction::kRegister, {.key = 0xb}), Status::kGood);
    EXPECT_TRUE(state().registrations.empty());
  }
}

TEST_F(ReservationCommandsTest, ReservationAttentionsReachOnlyTheAffectedNexuses) {
  enlist(*a, 0xa);
  enlist(*b, 0xb);
  enlist(*c, 0xc);
  reserve(*a, 0xa, kWe);
  EXPECT_EQ(out(*b, PrOutAction::kPreempt, {.key = 0xb, .service_action_key = 0xa, .type = kEa}),
            Status::kGood);
  EXPECT_EQ(attention(*a), 0x062a05u);
  EXPECT_EQ(attention(*c), 0x062a04u);
  EXPECT_EQ(attention(*b), 0u);
  EXPECT_EQ(out(*b, PrOutAction::kClear, {.key = 0xb}), Status::kGood);
  EXPECT_EQ(attention(*c), 0x062a03u);
  EXPECT_EQ(attention(*a), 0u);
}

TEST_F(ReservationCommandsTest, InvalidParameterListsAreRefused) {
  EXPECT_EQ(run(begin_list(*a, PrOutAction::kRegister, PrType::kNone, Bytes(23))).sense(),
            0x051a00u);
  enlist(*a, 0xa);
  EXPECT_EQ(run(begin_out(*a, PrOutAction::kReserve, {.key = 0xa, .type = PrType{2}})).sense(),
            0x052400u);
  EXPECT_EQ(run(begin_out(*a, PrOutAction::kRelease, {.key = 0xa, .type = PrType{15}})).sense(),
            0x052400u);
  // The initiator sends less than the CDB announces.
  Task& task = make({0x5f, 0, 0, 0, 0, 0, 0, 0, 24, 0}, Bytes(8));
  if (begin(*a, task)) send_data(*a, task);
  reactors.run();
  ASSERT_TRUE(task.done());
  EXPECT_NE(task.command.status, Status::kGood);
  EXPECT_EQ(out(*a, PrOutAction::kRegister, {.key = 0xa}), Status::kGood) << "turn passed on";
}

// --- TransportIDs

TEST_F(ReservationCommandsTest, SpecIPtRegistersOtherInitiatorPorts) {
  Out what{.service_action_key = 0xa, .flags = 8};
  what.transport_ids = transport_id("b");
  const Bytes third = transport_id("Z");  // not logged in, and in upper case
  what.transport_ids.insert(what.transport_ids.end(), third.begin(), third.end());
  EXPECT_EQ(out(*a, PrOutAction::kRegister, what), Status::kGood);
  EXPECT_TRUE(unit->reservations().registered(b->id()));
  EXPECT_FALSE(unit->reservations().registered(c->id()));
  EXPECT_TRUE(unit->reservations().registered(open("z")->id()));
}

TEST_F(ReservationCommandsTest, ADeviceNameRegistersItsLoggedInPorts) {
  Bytes id = {0x05, 0, 0, 20};  // TPID FORMAT 00b
  const std::string name = "iqn.2026-11.test:b";
  id.insert(id.end(), name.begin(), name.end());
  id.resize(24);
  Out what{.service_action_key = 0xa, .flags = 8};
  what.transport_ids = id;
  EXPECT_EQ(out(*a, PrOutAction::kRegister, what), Status::kGood);
  EXPECT_TRUE(unit->reservations().registered(b->id()));
  what.transport_ids[4 + name.size() - 1] = 'y';
  EXPECT_EQ(run(begin_out(*c, PrOutAction::kRegister, what)).sense(), 0x052600u) << "unknown";
}

TEST_F(ReservationCommandsTest, SpecIPtNamingTheSenderIsRefused) {
  Out what{.service_action_key = 0xa, .flags = 8};
  what.transport_ids = transport_id("a");
  EXPECT_EQ(run(begin_out(*a, PrOutAction::kRegister, what)).sense(), 0x052600u);
  EXPECT_TRUE(state().registrations.empty());
}

TEST_F(ReservationCommandsTest, RegisterAndMoveTransfersTheReservation) {
  enlist(*a, 0xa);
  reserve(*a, 0xa, kEa);
  const Bytes id = transport_id("b");
  Bytes data(24);
  put_be(data, 0, 8, 0xa);
  put_be(data, 8, 8, 0xb);
  data[17] = 0x02;  // UNREG
  put_be(data, 18, 2, 1);
  put_be(data, 20, 4, id.size());
  data.insert(data.end(), id.begin(), id.end());
  Bytes elsewhere = data;
  put_be(elsewhere, 18, 2, 77);
  EXPECT_EQ(run(begin_list(*a, PrOutAction::kRegisterAndMove, PrType::kNone, elsewhere)).sense(),
            0x052600u)
      << "no such target port";
  EXPECT_EQ(run(begin_list(*a, PrOutAction::kRegisterAndMove, PrType::kNone, data)).command.status,
            Status::kGood);
  EXPECT_TRUE(reads(*b));
  EXPECT_FALSE(reads(*a));
  EXPECT_FALSE(unit->reservations().registered(a->id()));
}

// --- PERSISTENT RESERVE IN

TEST_F(ReservationCommandsTest, ReadKeysReportsTheWholeLengthHoweverSmallTheAllocationLength) {
  enlist(*a, 0xa);
  enlist(*b, 0xb);
  const Bytes cut = in(*c, 0, 8).answer();
  ASSERT_EQ(cut.size(), 8u);
  EXPECT_EQ(load_be32(&cut[0]), 2u) << "PRgeneration";
  EXPECT_EQ(load_be32(&cut[4]), 16u);
  EXPECT_EQ(in(*c, 0).answer().size(), 24u);
  EXPECT_EQ(in(*c, 0, 0).command.status, Status::kGood);
}

TEST_F(ReservationCommandsTest, ReadReservationShowsTheHoldersKeyExceptForAllRegistrants) {
  for (const PrType type : {kEaro, kWear}) {
    enlist(*a, 0xa);
    reserve(*a, 0xa, type);
    const Bytes data = in(*b, 1).answer();
    ASSERT_EQ(data.size(), 24u);
    EXPECT_EQ(load_be64(&data[8]), type == kWear ? 0u : 0xau);
    EXPECT_EQ(data[21], static_cast<uint8_t>(type));
    out(*a, PrOutAction::kClear, {.key = 0xa});
  }
}

TEST_F(ReservationCommandsTest, ReportCapabilitiesReportsTheSupportedFeatures) {
  const Bytes data = in(*a, 2).answer();
  ASSERT_EQ(data.size(), 8u);
  EXPECT_EQ(data[2] & 0x1d, 0x1d) << "CRH, SIP_C, ATP_C, PTPL_C";
  EXPECT_EQ(load_be16(&data[4]), 0xea01) << "all six types";
  EXPECT_EQ(data[3] & 0x01, 0) << "PTPL_A";
  out(*a, PrOutAction::kRegister, {.service_action_key = 1, .flags = 1});
  EXPECT_EQ(in(*a, 2).answer()[3] & 0x01, 1);
}

TEST_F(ReservationCommandsTest, ReadFullStatusListsEveryRegistrantAndMarksTheHolder) {
  enlist(*a, 0xa);
  out(*b, PrOutAction::kRegister, {.service_action_key = 0xb, .flags = 4});  // ALL_TG_PT
  reserve(*a, 0xa, kWe);
  const Bytes data = in(*c, 3).answer();
  ASSERT_GT(data.size(), 8u + 24);
  EXPECT_EQ(load_be64(&data[8]), 0xau);
  EXPECT_EQ(data[20], 0x01) << "R_HOLDER";
  EXPECT_EQ(data[21], static_cast<uint8_t>(kWe));
  const size_t second = 8 + 24 + load_be32(&data[28]);
  EXPECT_EQ(load_be64(&data[second]), 0xbu);
  EXPECT_EQ(data[second + 12], 0x02) << "ALL_TG_PT";
}

// --- RESERVE(6) and RELEASE(6)

TEST_F(ReservationCommandsTest, Reserve6ExcludesTheOtherInitiator) {
  EXPECT_EQ(reserve6(*a), Status::kGood);
  EXPECT_EQ(reserve6(*a), Status::kGood);
  EXPECT_EQ(reserve6(*b), Status::kReservationConflict);
  EXPECT_EQ(release6(*b), Status::kGood);
  EXPECT_EQ(status_of(*b, {0x1a, 0, 0x3f, 0, 255, 0}), Status::kReservationConflict);
  EXPECT_EQ(status_of(*a, {0x1a, 0, 0x3f, 0, 255, 0}), Status::kGood);
  EXPECT_EQ(status_of(*b, inquiry()), Status::kGood);
  EXPECT_EQ(release6(*a), Status::kGood);
  EXPECT_EQ(reserve6(*b), Status::kGood);
}

TEST_F(ReservationCommandsTest, Reserve6EndsWithItsNexusAndWithAReset) {
  ASSERT_EQ(reserve6(*a), Status::kGood);
  a->close(true, [] {});
  reactors.run();
  EXPECT_EQ(reserve6(*b), Status::kGood);
  bool reset = false;
  c->logical_unit_reset(0, [&](bool at_owner) { reset = at_owner; });
  reactors.run();
  EXPECT_TRUE(reset);
  attention(*c);
  EXPECT_EQ(reserve6(*c), Status::kGood);
}

TEST_F(ReservationCommandsTest, Reserve6AndPersistentReservationsExcludeEachOther) {
  ASSERT_EQ(reserve6(*a), Status::kGood);
  EXPECT_EQ(out(*a, PrOutAction::kRegister, {.service_action_key = 0xa}),
            Status::kReservationConflict);
  EXPECT_EQ(in(*a, 0).command.status, Status::kReservationConflict);
  ASSERT_EQ(release6(*a), Status::kGood);
  enlist(*a, 0xa);
  EXPECT_EQ(reserve6(*b), Status::kReservationConflict);
}

TEST_F(ReservationCommandsTest, Reserve6WaitsForARegistrationInProgress) {
  store->holds = true;
  Task& change = begin_out(*a, PrOutAction::kRegister, {.service_action_key = 0xa});
  Task& waiting = start(*b, {0x16, 0, 0, 0, 0, 0});
  reactors.run();
  EXPECT_FALSE(waiting.done());
  store->answer(CommitOutcome::kCommitted);
  EXPECT_EQ(run(change).command.status, Status::kGood);
  EXPECT_EQ(run(waiting).command.status, Status::kReservationConflict);
}

}  // namespace
}  // namespace sluice::lun
