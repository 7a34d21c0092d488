#include "unit/reservations/reservations.h"

#include <gtest/gtest.h>

#include "base/limits.h"
#include "commands/reservations/reservations_fixture.h"

namespace sluice::lun {
namespace {

using scsi::PrOutAction;
using scsi::PrType;
using scsi::SenseKey;
using scsi::Status;

const NexusId kA = test_nexus("a");
const NexusId kB = test_nexus("b");
const NexusId kC = test_nexus("c");

// A unit's persistent reservations without a unit: applies each decision as the handler would.
struct Bench {
  ReservationState state;
  PrDecision last;

  Status ask(const NexusId& who, const PrRequest& what) {
    last = decide(state, who, what);
    if (last.changed) state = last.state;
    return last.status;
  }
  Status enlist(const NexusId& who, uint64_t key) {
    return ask(who, pr_request(PrOutAction::kRegisterAndIgnoreExistingKey, 0, key));
  }
  Status leave(const NexusId& who, uint64_t key) {
    return ask(who, pr_request(PrOutAction::kRegister, key, 0));
  }
  Status reserve(const NexusId& who, uint64_t key, PrType type) {
    return ask(who, pr_request(PrOutAction::kReserve, key, 0, type));
  }
  bool told(const NexusId& who, UnitAttention what) const {
    for (const auto& a : last.attentions) {
      if (a.what == what && a.who.covers(who)) return true;
    }
    return false;
  }
  bool refused(SenseKey key, uint8_t asc, uint8_t ascq) const {
    return last.status == Status::kCheckCondition && last.sense.key == key &&
           last.sense.asc == asc && last.sense.ascq == ascq;
  }
};

// --- the gate's question

// What a command needs of the reservation tables (SPC-5 table 73 and SBC-4 table 13).
struct CommandClass {
  const char* name;
  uint16_t flags;
};
constexpr CommandClass kReads = {"reads", scsi::kAllowedUnderWriteExclusive};
constexpr CommandClass kWrites = {"writes", 0};
constexpr CommandClass kAlways = {
    "always", scsi::kAllowedUnderWriteExclusive | scsi::kAllowedUnderExclusiveAccess};

scsi::CommandInfo command(const CommandClass& c) {
  scsi::CommandInfo info{};
  info.operation = scsi::Operation::kRead;
  info.flags = c.flags;
  return info;
}

struct MatrixRow {
  PrType type;
  // reads, writes
  bool holder[2];
  bool registered[2];
  bool unregistered[2];
};
constexpr MatrixRow kMatrix[] = {
    {kWe, {true, true}, {true, false}, {true, false}},
    {kEa, {true, true}, {false, false}, {false, false}},
    {kWero, {true, true}, {true, true}, {true, false}},
    {kEaro, {true, true}, {true, true}, {false, false}},
    {kWear, {true, true}, {true, true}, {true, false}},
    {kEaar, {true, true}, {true, true}, {false, false}},
};

TEST(Reservations, EveryTypeAllowsTheCommandsOfTheSpcTable) {
  for (const MatrixRow& row : kMatrix) {
    Bench bench;
    bench.enlist(kA, 0xa);
    bench.enlist(kB, 0xb);
    ASSERT_EQ(bench.reserve(kA, 0xa, row.type), Status::kGood);
    Reservations r;
    r.replace(bench.state);
    const int type = static_cast<int>(row.type);
    EXPECT_TRUE(r.held()) << type;
    const CommandClass* classes[] = {&kReads, &kWrites};
    for (int c = 0; c < 2; ++c) {
      const scsi::CommandInfo info = command(*classes[c]);
      EXPECT_EQ(r.allows(kA, info), row.holder[c]) << type << ' ' << classes[c]->name;
      EXPECT_EQ(r.allows(kB, info), row.registered[c]) << type << ' ' << classes[c]->name;
      EXPECT_EQ(r.allows(kC, info), row.unregistered[c]) << type << ' ' << classes[c]->name;
    }
    EXPECT_TRUE(r.allows(kC, command(kAlways))) << type;
  }
}

TEST(Reservations, RegistrationsAloneRestrictNoNexus) {
  Bench bench;
  bench.enlist(kA, 0xa);
  Reservations r;
  r.replace(bench.state);
  EXPECT_FALSE(r.held());
  EXPECT_TRUE(r.allows(kC, command(kWrites)));
}

TEST(Reservations, TheSameInitiatorThroughAnotherPortIsAnotherNexus) {
  Bench bench;
  bench.enlist(kA, 0xa);
  bench.reserve(kA, 0xa, kWe);
  Reservations r;
  r.replace(bench.state);
  EXPECT_FALSE(r.allows(test_nexus("a", 2), command(kWrites)));
}

// --- RESERVE(6)

scsi::CommandInfo operation_info(scsi::Operation op) {
  scsi::CommandInfo info{};
  info.operation = op;
  return info;
}

TEST(Reservations, Reserve6ExcludesOthersUntilReleasedByItsHolder) {
  Reservations r;
  EXPECT_TRUE(r.reserve6(kA));
  EXPECT_TRUE(r.reserve6(kA));
  EXPECT_FALSE(r.reserve6(kB));
  EXPECT_TRUE(r.release6(kB));  // GOOD, but A still holds it
  EXPECT_FALSE(r.reserve6(kB));
  EXPECT_TRUE(r.allows(kA, command(kWrites)));
  EXPECT_FALSE(r.allows(kB, command(kAlways)));
  scsi::CommandInfo inquiry = command(kAlways);
  inquiry.flags |= scsi::kAllowedUnderReserve6;
  EXPECT_TRUE(r.allows(kB, inquiry));
  EXPECT_TRUE(r.release6(kA));
  EXPECT_TRUE(r.reserve6(kB));
}

TEST(Reservations, PersistentReserveConflictsForEveryNexusWhileReserve6IsHeld) {
  Reservations r;
  r.reserve6(kA);
  for (const auto op :
       {scsi::Operation::kPersistentReserveIn, scsi::Operation::kPersistentReserveOut}) {
    EXPECT_FALSE(r.allows(kA, operation_info(op)));
    EXPECT_FALSE(r.allows(kB, operation_info(op)));
  }
  EXPECT_TRUE(r.allows(kB, operation_info(scsi::Operation::kReserve6)));
}

TEST(Reservations, Reserve6ConflictsWithAnyRegistrationUnlessCompatible) {
  for (const PrType type : kAllTypes) {
    Bench bench;
    bench.enlist(kA, 0xa);
    bench.enlist(kB, 0xb);
    Reservations r;
    r.replace(bench.state);
    EXPECT_FALSE(r.reserve6(kA)) << "registered, nothing reserved";
    EXPECT_FALSE(r.release6(kA));
    bench.reserve(kA, 0xa, type);
    r.replace(bench.state);
    const bool shared = scsi::is_registrants_only(type) || scsi::is_all_registrants(type);
    EXPECT_TRUE(r.reserve6(kA));
    EXPECT_TRUE(r.release6(kA));
    EXPECT_EQ(r.reserve6(kB), shared);
    EXPECT_EQ(r.release6(kB), shared);
    EXPECT_FALSE(r.reserve6(kC));
    EXPECT_FALSE(r.release6(kC));
    r.replace({});
    EXPECT_FALSE(r.held()) << "compatible handling establishes nothing";
  }
}

// --- queued changes

TEST(Reservations, ChangesRunOneAtATimeInOrderAndTheQueueIsBounded) {
  Reservations r;
  std::vector<int> order;
  EXPECT_TRUE(r.begin_change());
  EXPECT_FALSE(r.begin_change());
  for (unsigned i = 0; i < limits::kMaxReservationChanges; ++i) {
    EXPECT_TRUE(r.enqueue_change([&order, i] { order.push_back(static_cast<int>(i)); }));
  }
  EXPECT_FALSE(r.enqueue_change([] {}));
  while (auto change = r.end_change()) {
    EXPECT_FALSE(r.begin_change());
    change();
  }
  EXPECT_TRUE(r.begin_change());
  ASSERT_EQ(order.size(), limits::kMaxReservationChanges);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

// --- power loss

TEST(Reservations, ReservationsSurvivePowerLossOnlyWithAptplAndTheGenerationIsReset) {
  Bench bench;
  PrRequest r = pr_request(PrOutAction::kRegister, 0, 0xa);
  r.list.aptpl = true;
  bench.ask(kA, r);
  bench.reserve(kA, 0xa, kWe);
  ReservationState after = after_power_loss(bench.state);
  EXPECT_EQ(after.registrations, bench.state.registrations);
  EXPECT_EQ(after.type, kWe);
  EXPECT_EQ(after.generation, 0u);
  r = pr_request(PrOutAction::kRegister, 0xa, 0xa);
  bench.ask(kA, r);
  EXPECT_EQ(after_power_loss(bench.state), ReservationState{});
}

}  // namespace
}  // namespace sluice::lun
