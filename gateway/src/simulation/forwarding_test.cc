// A link at one gateway against the forwarding port of another (DESIGN R1, R5, R6, R9).
#include <gtest/gtest.h>

#include "simulation/gateway_pair.h"
#include "simulation/initiator.h"
#include "unit/unit.h"

namespace sluice::simulation {
namespace {

using Bytes = std::vector<uint8_t>;

Bytes pattern(size_t n) {
  Bytes bytes(n);
  for (size_t i = 0; i < n; ++i) bytes[i] = static_cast<uint8_t>(i * 7 + i / 509);
  return bytes;
}

iscsi::Settings small_bursts() {
  iscsi::Settings settings;
  settings.offer.first_burst_length = 4096;
  settings.offer.max_burst_length = 8192;
  settings.offer.max_recv_data_segment_length = 2048;
  return settings;
}

class Forwarding : public testing::Test {
 protected:
  void open(iscsi::Settings settings = {}) {
    pair_ = std::make_unique<GatewayPair>(settings);
    nexus_ = pair_->open_nexus();
    link_ = pair_->link(nexus_);
  }
  void SetUp() override { open(); }

  void expect_round_trip(uint32_t blocks, size_t piece) {
    const Bytes data = pattern(size_t{blocks} * 512);
    const auto w = pair_->run(*nexus_, write16(3, blocks), 0, data, 0, piece);
    ASSERT_TRUE(w->ended) << blocks;
    EXPECT_EQ(w->command.status, scsi::Status::kGood);
    const auto r = pair_->run(*nexus_, read16(3, blocks), blocks * 512);
    ASSERT_TRUE(r->ended) << blocks;
    EXPECT_EQ(r->command.status, scsi::Status::kGood);
    EXPECT_EQ(r->command.data_in_size, data.size());
    EXPECT_TRUE(r->data_in() == data) << blocks;
  }

  std::unique_ptr<GatewayPair> pair_;
  std::shared_ptr<lun::Nexus> nexus_;
  std::shared_ptr<lun::Link> link_;
};

TEST_F(Forwarding, WrittenDataIsReadBackThroughTheLink) {
  for (const uint32_t blocks : {1u, 8u, 511u, 512u, 513u, 4096u}) expect_round_trip(blocks, 65536);
}

// What the owner asks for with an R2T costs a way there and back.
TEST_F(Forwarding, AWriteOfOneFirstBurstIsOnePduWithoutR2T) {
  ASSERT_EQ(pair_->run(*nexus_, kTestUnitReady, 0)->command.status, scsi::Status::kGood);
  for (const uint32_t blocks : {8u, 256u, 512u}) {
    const uint64_t before = pair_->sent();
    const auto w = pair_->run(*nexus_, write16(0, blocks), 0, pattern(size_t{blocks} * 512));
    EXPECT_EQ(w->command.status, scsi::Status::kGood);
    const uint64_t data = uint64_t{blocks} * 512;
    EXPECT_EQ(pair_->sent() - before, pdu::kBhsSize + iscsi::kForwardedAhsSize + data) << blocks;
  }
}

TEST_F(Forwarding, DataBeyondTheFirstBurstIsTransferredIntact) {
  open(small_bursts());
  for (const uint32_t blocks : {1u, 8u, 9u, 16u, 33u, 100u}) expect_round_trip(blocks, 1000);
}

TEST_F(Forwarding, DigestsCoverTheAdditionalHeader) {
  iscsi::Settings settings = small_bursts();
  settings.offer.header_digest = settings.offer.data_digest = iscsi::Offer::Digest::kRequire;
  open(settings);
  expect_round_trip(33, 1000);
}

TEST_F(Forwarding, CdbsLongerThan16BytesArriveComplete) {
  Bytes read32(32, 0);
  read32[0] = 0x7f;
  read32[7] = 0x18;
  read32[9] = 0x09;  // READ(32)
  read32[31] = 2;    // blocks
  const auto r = pair_->run(*nexus_, read32, 1024);
  ASSERT_TRUE(r->ended);
  if (r->command.status == scsi::Status::kGood) {
    EXPECT_EQ(r->command.data_in_size, 1024u);
  } else {
    EXPECT_EQ(r->asc(), 0x20);  // an unknown command, not a malformed one
  }
}

// SPC-5, PREEMPT: a unit attention for every I_T nexus that lost its registration. The host was at
// the other gateway all the time, its session with the owner begins with its command.
TEST_F(Forwarding, ARegistrationPreemptedBeforeTheFirstForwardedCommandIsReported) {
  const Bytes reserve_out = {0x5f, 6, 0, 0, 0, 0, 0, 0, 24, 0};
  Bytes list(24);
  list[15] = 0x0a;  // SERVICE ACTION RESERVATION KEY
  const auto registered = pair_->run(*nexus_, reserve_out, 0, list);
  ASSERT_EQ(registered->command.status, scsi::Status::kGood);
  nexus_->close(false, [] {});
  pair_->settle();
  nexus_ = pair_->open_nexus();

  Initiator other(pair_->owner.connect());
  ASSERT_TRUE(other.login());
  other.clear_attention();
  list[15] = 0x0b;
  ASSERT_EQ(other.execute(reserve_out, 0, list).status, 0);
  list[7] = 0x0b;
  list[15] = 0x0a;
  const Bytes preempt = {0x5f, 4, 1, 0, 0, 0, 0, 0, 24, 0};
  ASSERT_EQ(other.execute(preempt, 0, list).status, 0);

  const auto first = pair_->run(*nexus_, kTestUnitReady, 0);
  EXPECT_EQ(first->sense_key(), 6);
  EXPECT_EQ(first->asc(), 0x2a);
  EXPECT_EQ(first->ascq(), 0x05) << "REGISTRATIONS PREEMPTED";
  EXPECT_EQ(pair_->run(*nexus_, kTestUnitReady, 0)->command.status, scsi::Status::kGood);
}

// A host at the owner sees the unit attentions at its first use of the LUN. So does a host whose
// first command opens the forwarding session, if it was logged in already.
TEST_F(Forwarding, ResetsAndModeParameterChangesBeforeAHostsFirstCommandAreReported) {
  pair_->advance(kSecond);
  Initiator other(pair_->owner.connect());
  ASSERT_TRUE(other.login());
  other.clear_attention();
  pdu::Bhs h = other.request(pdu::Opcode::kTaskManagementRequest, true);
  h.set_flags(pdu::kFlagFinal | static_cast<uint8_t>(pdu::TaskFunction::kLogicalUnitReset));
  other.send(h);
  ASSERT_TRUE(other.answer());
  other.clear_attention();
  Bytes page =
      other.execute(Bytes{0x1a, 0x08, 0x0a, 0, 252, 0}, 252).data;  // MODE SENSE(6): control
  ASSERT_GE(page.size(), 16u);
  page[0] = page[2] = 0;
  page[4 + 4] |= 0x08;  // SWP
  const Bytes select = {0x15, 0x10, 0, 0, static_cast<uint8_t>(page.size()), 0};
  ASSERT_EQ(other.execute(select, 0, page).status, 0);

  pair_->advance(limits::host_age_slack(0) + kSecond);
  const auto late = pair_->open_nexus(2);
  const auto told = [this](const std::shared_ptr<lun::Nexus>& nexus) {
    const auto c = pair_->run(*nexus, kTestUnitReady, 0);
    EXPECT_TRUE(c->ended);
    return c->sense_key() << 16 | c->asc() << 8 | c->ascq();
  };
  EXPECT_EQ(told(nexus_), 0x062903) << "BUS DEVICE RESET FUNCTION OCCURRED";
  EXPECT_EQ(told(nexus_), 0x062a01) << "MODE PARAMETERS CHANGED";
  EXPECT_EQ(told(nexus_), 0);
  EXPECT_EQ(told(late), 0) << "it came after both";

  pair_->reset_connections();
  pair_->advance(limits::kRedial + limits::kTick);
  EXPECT_EQ(told(nexus_), 0x062907) << "the session by which it is forwarded was lost";
  EXPECT_EQ(told(nexus_), 0) << "the others were reported already";
}

TEST_F(Forwarding, ResidualCountsArePassedFromTheOwner) {
  const auto less = pair_->run(*nexus_, kInquiry, 4096);
  EXPECT_EQ(less->command.status, scsi::Status::kGood);
  EXPECT_EQ(less->command.data_in_size, less->data_in().size());
  EXPECT_LT(less->command.data_in_size, 256u);
  const auto more = pair_->run(*nexus_, read16(0, 4), 512);
  EXPECT_EQ(more->data_in().size(), 512u);
  EXPECT_EQ(more->command.data_in_size, 4 * 512u);
  const auto nothing = pair_->run(*nexus_, kTestUnitReady, 0);
  EXPECT_EQ(nothing->command.status, scsi::Status::kGood);
  const auto too_much = pair_->run(*nexus_, write16(0, 1), 0, Bytes(1024, 7));
  EXPECT_EQ(too_much->command.status, scsi::Status::kGood);
  EXPECT_EQ(too_much->command.data_out_wanted, 512u);
}

TEST_F(Forwarding, SenseDataIsPassedFromTheOwner) {
  const auto r = pair_->run(*nexus_, read16(uint64_t{1} << 40, 1), 512);
  EXPECT_EQ(r->command.status, scsi::Status::kCheckCondition);
  EXPECT_EQ(r->sense_key(), 5);
  EXPECT_EQ(r->asc(), 0x21);
}

TEST_F(Forwarding, TheOwnerReportsNoPowerOnAttentionForAForwardedNexus) {
  EXPECT_EQ(pair_->run(*nexus_, kTestUnitReady, 0)->command.status, scsi::Status::kGood);
}

TEST_F(Forwarding, AReadOnlyHostCannotWriteThroughForwarding) {
  const auto reader = pair_->open_nexus(2, true);
  const auto w = pair_->run(*reader, write16(0, 1), 0, pattern(512));
  EXPECT_EQ(w->sense_key(), 7);
  EXPECT_EQ(pair_->run(*reader, read16(0, 1), 512)->command.status, scsi::Status::kGood);
}

TEST_F(Forwarding, AForwardedNexusDoesNotReplaceADirectNexusOfTheSameName) {
  Initiator direct(pair_->owner.connect(0, 11));
  direct.name = nexus_->id().initiator_name;
  direct.isid = nexus_->id().isid;
  ASSERT_TRUE(direct.login());
  direct.clear_attention();
  EXPECT_EQ(pair_->run(*nexus_, kTestUnitReady, 0)->command.status, scsi::Status::kGood);
  EXPECT_EQ(direct.execute(kTestUnitReady, 0).status, 0);
  EXPECT_EQ(pair_->owner.target().nexuses().size(), 2u);
}

TEST_F(Forwarding, CommandsBeyondTheOwnersWindowWaitAndAllEnd) {
  iscsi::Settings settings;
  settings.command_window = 4;
  open(settings);
  pair_->owner.disk().hold(true);
  std::vector<std::shared_ptr<ForwardedCommand>> all;
  for (unsigned i = 0; i < 40; ++i) all.push_back(pair_->run(*nexus_, read16(i, 1), 512));
  EXPECT_EQ(pair_->owner.disk().waiting(), 4u);
  pair_->owner.disk().hold(false);
  pair_->owner.disk().release_all();
  pair_->settle();
  for (const auto& c : all) EXPECT_TRUE(c->ended);
}

TEST_F(Forwarding, ALinkReturnsBusyBeyondItsCommandLimit) {
  pair_->network = GatewayPair::Network::kSilent;
  std::vector<std::shared_ptr<ForwardedCommand>> all;
  for (unsigned i = 0; i < limits::kMaxLinkCommands; ++i) {
    all.push_back(pair_->command(kTestUnitReady, 0));
    pair_->begin(*nexus_, *all.back());
  }
  const auto one_more = pair_->run(*nexus_, kTestUnitReady, 0);
  EXPECT_EQ(one_more->command.status, scsi::Status::kBusy);
  pair_->advance(2 * kSecond);
  for (const auto& c : all) EXPECT_TRUE(c->unavailable());
}

TEST_F(Forwarding, AnAbortedCommandEndsWhenTheBackendCompletesIt) {
  pair_->owner.disk().hold(true);
  const auto r = pair_->run(*nexus_, read16(0, 1), 512);
  nexus_->abort(r->command);
  pair_->settle();
  EXPECT_FALSE(r->ended);
  pair_->owner.disk().release_all();
  pair_->settle();
  EXPECT_TRUE(r->ended);
  EXPECT_TRUE(r->command.aborted());
}

TEST_F(Forwarding, EachAbortReachesTheOwnerRegardlessOfEndedCommands) {
  pair_->owner.disk().hold(true);
  for (unsigned i = 0; i < 3; ++i) {
    const auto first = pair_->run(*nexus_, read16(0, 1), 512);
    const auto second = pair_->run(*nexus_, read16(8, 1), 512);
    const uint64_t before = pair_->sent();
    nexus_->abort(second->command);
    nexus_->abort(first->command);
    pair_->settle();
    EXPECT_EQ(pair_->sent() - before, 2 * pdu::kBhsSize) << i;
    pair_->owner.disk().release_all();
    pair_->settle();
    EXPECT_TRUE(first->ended && first->command.aborted()) << i;
    EXPECT_TRUE(second->ended && second->command.aborted()) << i;
  }
}

TEST_F(Forwarding, AnAbortEndsAnUnsentCommandImmediately) {
  pair_->network = GatewayPair::Network::kSilent;
  const auto r = pair_->run(*nexus_, read16(0, 1), 512);
  EXPECT_FALSE(r->ended);
  nexus_->abort(r->command);
  EXPECT_TRUE(r->ended);
}

TEST_F(Forwarding, AResetIsAnsweredAfterTheCommandsOfItsLunHaveEnded) {
  pair_->owner.disk().hold(true);
  const auto r = pair_->run(*nexus_, read16(0, 1), 512);
  bool done = false;
  link_->function(lun::LinkFunction::kLogicalUnitReset, 0, [&](bool answered) {
    done = answered;
    EXPECT_TRUE(r->ended);
  });
  pair_->settle();
  EXPECT_FALSE(done);
  pair_->owner.disk().release_all();
  pair_->settle();
  EXPECT_TRUE(done);
  EXPECT_TRUE(r->command.aborted());
  const auto told = pair_->run(*nexus_, kTestUnitReady, 0);
  EXPECT_EQ(told->asc(), 0x29);
  EXPECT_EQ(told->ascq(), 0x03);
}

TEST_F(Forwarding, ACommandEndedByAnotherHostsResetReturnsTaskAborted) {
  pair_->owner.disk().hold(true);
  const auto r = pair_->run(*nexus_, read16(0, 1), 512);
  Initiator direct(pair_->owner.connect());
  ASSERT_TRUE(direct.login());
  pdu::Bhs h = direct.request(pdu::Opcode::kTaskManagementRequest, true);
  h.set_flags(pdu::kFlagFinal | static_cast<uint8_t>(pdu::TaskFunction::kLogicalUnitReset));
  direct.send(h);
  pair_->owner.disk().release_all();
  pair_->settle();
  EXPECT_TRUE(r->ended);
  EXPECT_EQ(r->command.status, scsi::Status::kTaskAborted);
}

TEST_F(Forwarding, ClosingALinkEndsTheNexusAtTheOwnerAfterItsCommands) {
  pair_->owner.disk().hold(true);
  const auto r = pair_->run(*nexus_, read16(0, 1), 512);
  bool done = false;
  link_->close(false, [&] { done = true; });
  pair_->settle();
  EXPECT_FALSE(done);
  EXPECT_FALSE(r->ended);
  pair_->owner.disk().release_all();
  pair_->settle();
  EXPECT_TRUE(done);
  EXPECT_TRUE(r->ended);
  EXPECT_TRUE(pair_->owner.target().nexuses().empty());
}

TEST_F(Forwarding, TheOwnerOpensAnItlNexusOnlyForUsedLuns) {
  pair_->run(*nexus_, read16(0, 1), 512, {}, 1);
  const auto sessions = pair_->owner.target().nexuses();
  ASSERT_EQ(sessions.size(), 1u);
  EXPECT_EQ(sessions[0]->lun_numbers().size(), 2u);
  ASSERT_EQ(sessions[0]->itls().size(), 1u);
  EXPECT_EQ(sessions[0]->itls()[0]->lun(), 1u);
}

TEST_F(Forwarding, AUnitAttentionBeforeTheFirstUseOfALunIsReportedAtItsFirstUse) {
  pair_->run(*nexus_, read16(0, 1), 512, {}, 1);
  pair_->owner.unit(0)->attached().raise(lun::kCapacityChanged, nullptr);
  const auto told = pair_->run(*nexus_, read16(0, 1), 512);
  EXPECT_EQ(told->command.status, scsi::Status::kCheckCondition);
  EXPECT_EQ(told->command.sense[2] & 0x0f, 0x06);
  EXPECT_EQ(told->command.sense[12], 0x2a);
  EXPECT_EQ(told->command.sense[13], 0x09);
  EXPECT_EQ(pair_->run(*nexus_, read16(0, 1), 512)->command.status, scsi::Status::kGood);
}

TEST_F(Forwarding, ClosingAnUnusedLinkCompletesImmediatelyButNotInsideTheCall) {
  bool done = false;
  link_->close(true, [&] { done = true; });
  EXPECT_FALSE(done);
  pair_->settle();
  EXPECT_TRUE(done);
  EXPECT_EQ(pair_->dialled(), 0u);
}

}  // namespace
}  // namespace sluice::simulation
