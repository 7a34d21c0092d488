// A PERSISTENT RESERVE OUT with an unknown outcome (DESIGN R3), as a host sees it.
#include "simulation/host_fixture.h"
#include "unit/reservations/reservation_contract.h"
#include "unit/unit.h"

namespace sluice::simulation {
namespace {

// Stores what it gets, and answers as the test says.
class UnsureStore final : public lun::ReservationStore {
 public:
  void commit(const std::string&, const lun::ReservationState& state, lun::StoreReply reply,
              CommitDone done) override {
    if (outcome != lun::CommitOutcome::kNotCommitted) kept = state;
    reply.reactors->post(reply.reactor, [done, o = outcome] { done(o, "as the test wants it"); });
  }
  void read(const std::string&, lun::StoreReply reply, ReadDone done) override {
    reply.reactors->post(reply.reactor, [done, state = kept] { done(state); });
  }
  Result<lun::ReservationState> load(const std::string&) override { return kept; }
  void stop() override {}

  lun::CommitOutcome outcome = lun::CommitOutcome::kCommitted;
  lun::ReservationState kept;
};

class DroppedNexusTest : public HostSequence {
 protected:
  void SetUp() override {
    HostSequence::SetUp();
    backend::Spec spec;
    spec.kind = "memory";
    spec.size = 1 << 20;
    lun::UnitIdentity identity;
    identity.uuid.fill(0xcc);
    gateway_.target().set_luns(
        {{0, std::make_shared<lun::Unit>(identity, backend::open(spec).value(), 1, store_)}},
        gateway_);
    gateway_.run();
    host_.clear_attention();
    other_.clear_attention();
  }
  Bytes keys(Initiator& host) {
    const Bytes all = host.execute(hex("5e 00 00 00 00 00 00 00 ff 00"), 255).data;
    return all.size() < 8 ? Bytes() : Bytes(all.begin() + 8, all.end());
  }

  std::shared_ptr<UnsureStore> store_ = std::make_shared<UnsureStore>();
};

TEST_F(DroppedNexusTest, ACommandWithAnUnknownOutcomeIsNotAnsweredAndClosesTheConnection) {
  ASSERT_EQ(reserve_out(host_, 6, 0, 0, 0xa).status, 0);
  store_->outcome = lun::CommitOutcome::kUnknown;
  EXPECT_FALSE(reserve_out(host_, 1, 1, 0xa, 0).answered);
  EXPECT_TRUE(host_.connection().closed());
  EXPECT_TRUE(host_.connection().ended());
  EXPECT_FALSE(other_.connection().closed());
}

TEST_F(DroppedNexusTest, AReturningHostReceivesNexusLossAndFindsTheEffectOfItsCommand) {
  store_->outcome = lun::CommitOutcome::kUnknown;
  EXPECT_FALSE(reserve_out(host_, 6, 0, 0, 0xa).answered);
  Initiator again(gateway_.connect());
  again.isid = host_.isid;
  again.name = host_.name;
  ASSERT_TRUE(again.login());
  expect_sense(again.execute(kTestUnitReady, 0), 6, 0x29, 0x07);
  EXPECT_EQ(keys(again).size(), 8u) << "it did happen";
  EXPECT_EQ(keys(other_).size(), 8u);
}

TEST_F(DroppedNexusTest, ACommandThatWasNotCommittedReturnsBusyAndRetainsItsNexus) {
  store_->outcome = lun::CommitOutcome::kNotCommitted;
  EXPECT_EQ(reserve_out(host_, 6, 0, 0, 0xa).status, 0x08);
  EXPECT_FALSE(host_.connection().closed());
  EXPECT_TRUE(keys(host_).empty());
}

}  // namespace
}  // namespace sluice::simulation
