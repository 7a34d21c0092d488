// A host that may only read under persistent reservations: subject to those of others, and without
// a way to change what others may do (SPC-5 §5.14).
#include <algorithm>
#include <array>

#include "commands/reservations/reservation_commands_fixture.h"
#include "scsi/command_table.h"

namespace sluice::lun {
namespace {

using scsi::PrOutAction;
using scsi::PrType;
using scsi::Status;

constexpr uint32_t kWriteProtected = 0x072700;

class ReadOnlyHostTest : public ReservationCommandsTest {
 protected:
  void SetUp() override {
    ReservationCommandsTest::SetUp();
    reader = open_reader("reader");
  }
  std::shared_ptr<Nexus> open_reader(const std::string& name) {
    read_only = true;
    auto nexus = open(name);
    read_only = false;
    return nexus;
  }
  // What a host keeps that was made one that may only read: it logs in again.
  std::shared_ptr<Nexus> demote(const std::shared_ptr<Nexus>& nexus, const std::string& name) {
    nexus->close(false, [] {});
    reactors.run();
    return open_reader(name);
  }
  uint32_t refusal(Nexus& nexus, PrOutAction action, const Out& what) {
    return run(begin_out(nexus, action, what)).sense();
  }
  std::shared_ptr<Nexus> reader;
};

TEST_F(ReadOnlyHostTest, IsRefusedRegistrationsAndReservations) {
  enlist(*a, 0xa);
  const ReservationState before = state();
  for (const PrOutAction action :
       {PrOutAction::kRegister, PrOutAction::kRegisterAndIgnoreExistingKey}) {
    EXPECT_EQ(refusal(*reader, action, {.service_action_key = 0xa}), kWriteProtected);
  }
  // Names others, who would be registered without knowing.
  EXPECT_EQ(refusal(*reader, PrOutAction::kRegister,
                    {.service_action_key = 1, .flags = 8, .transport_ids = transport_id("x")}),
            kWriteProtected);
  for (const PrOutAction action :
       {PrOutAction::kReserve, PrOutAction::kClear, PrOutAction::kPreempt,
        PrOutAction::kPreemptAndAbort, PrOutAction::kRegisterAndMove}) {
    EXPECT_EQ(
        refusal(*reader, action, {.service_action_key = 0xa, .type = PrType::kWriteExclusive}),
        kWriteProtected);
  }
  EXPECT_EQ(run(start(*reader, {0x16, 0, 0, 0, 0, 0})).sense(), kWriteProtected);
  EXPECT_EQ(state(), before);
  EXPECT_TRUE(writes(*a));
}

TEST_F(ReadOnlyHostTest, MayReleaseAndUnregisterButNotPreemptWithItsEarlierRegistration) {
  enlist(*a, 0xa);
  enlist(*b, 0xb);
  reserve(*b, 0xb, PrType::kWriteExclusiveRegistrantsOnly);
  reader = demote(b, "b");
  EXPECT_EQ(refusal(*reader, PrOutAction::kPreempt,
                    {.key = 0xb, .service_action_key = 0xa, .type = PrType::kWriteExclusive}),
            kWriteProtected);
  EXPECT_EQ(refusal(*reader, PrOutAction::kClear, {.key = 0xb}), kWriteProtected);
  EXPECT_EQ(refusal(*reader, PrOutAction::kRegister, {.key = 0xb, .service_action_key = 0xc}),
            kWriteProtected);
  EXPECT_EQ(out(*reader, PrOutAction::kRelease,
                {.key = 0xb, .type = PrType::kWriteExclusiveRegistrantsOnly}),
            Status::kGood);
  EXPECT_EQ(state().type, PrType::kNone);
  EXPECT_EQ(out(*reader, PrOutAction::kRegister, {.key = 0xb}), Status::kGood);
  EXPECT_EQ(state().registrations.size(), 1u) << "the other one's";
}

TEST_F(ReadOnlyHostTest, IsSubjectToReservationsOfOtherHostsAndMayReadThem) {
  EXPECT_EQ(release6(*reader), Status::kGood) << "RELEASE(6) of what it has not takes nothing";
  enlist(*a, 0xa);
  reserve(*a, 0xa, PrType::kWriteExclusive);
  EXPECT_TRUE(reads(*reader));
  EXPECT_EQ(in(*reader, 0x00).answer().size(), 16u) << "PERSISTENT RESERVE IN(READ KEYS)";
  EXPECT_EQ(out(*a, PrOutAction::kRelease, {.key = 0xa, .type = PrType::kWriteExclusive}),
            Status::kGood);
  reserve(*a, 0xa, PrType::kExclusiveAccess);
  EXPECT_EQ(status_of(*reader, read16(0, 1)), Status::kReservationConflict);
}

// Each command of the table is either refused to a read-only host or changes nothing that other
// hosts notice. This test fails for a new command until it is classified here.
TEST_F(ReadOnlyHostTest, EveryCommandIsRefusedUnlessItIsListedAsHarmless) {
  using Op = scsi::Operation;
  constexpr std::array kHarmless = {
      Op::kTestUnitReady,
      Op::kSendDiagnostic,
      Op::kInquiry,
      Op::kReportLuns,
      Op::kRequestSense,
      Op::kModeSense,
      Op::kLogSense,
      Op::kReadCapacity,
      Op::kRead,
      Op::kVerify,
      Op::kGetLbaStatus,
      Op::kPreFetch,
      Op::kSynchronizeCache,
      Op::kReceiveCopyResults,
      Op::kPopulateToken,
      Op::kReceiveRodTokenInformation,
      Op::kRelease6,  // releases its own reservation
      Op::kPersistentReserveIn,
      Op::kReportTargetPortGroups,
      Op::kSetTargetPortGroups,  // refused to all hosts (DESIGN R11)
      Op::kReportSupportedOperationCodes,
      Op::kReportSupportedTaskManagementFunctions,
      Op::kPassThrough,  // hands on what reads (scsi/pass_through_commands.h)
  };
  for (const scsi::CommandInfo& info : scsi::command_table()) {
    if (std::ranges::find(kHarmless, info.operation) != kHarmless.end()) continue;
    if (!scsi::supported(info, unit->support())) continue;
    const bool decided_by_its_list = info.operation == Op::kPersistentReserveOut &&
                                     (info.service_action == 0 || info.service_action == 6);
    const bool releases = info.operation == Op::kPersistentReserveOut && info.service_action == 2;
    if (decided_by_its_list || releases) continue;  // the tests above
    Bytes cdb(std::max<size_t>(info.cdb_length, 6));
    cdb[0] = info.opcode;
    if (info.service_action != scsi::kNoServiceAction) {
      cdb[1] = static_cast<uint8_t>(info.service_action);
    }
    EXPECT_EQ(run(start(*reader, cdb)).sense(), kWriteProtected) << info.name;
  }
}

}  // namespace
}  // namespace sluice::lun
