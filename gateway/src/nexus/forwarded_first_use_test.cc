// The unit attentions of a forwarded host at its first use of a LUN here, although it was connected
// to the other gateway before (gateway/decisions/logical-units.md).
#include "nexus/first_use_fixture.h"
#include "unit/attention_log.h"

namespace sluice::lun {
namespace {

class ForwardedFirstUseTest : public FirstUseTest {};

// The session that forwards begins with the first command, though the host has been at the other
// gateway since before.
TEST_F(ForwardedFirstUseTest,
       APreemptBeforeTheFirstForwardedCommandIsReportedToPreemptedRegistrants) {
  auto far = open_forwarded("far");
  enlist(*far, 2);
  reserve(*far, 2, scsi::PrType::kWriteExclusive);
  far->close(false, [] {});
  reactors.run();
  enlist(*a, 1);
  ASSERT_EQ(out(*a, PrOutAction::kPreempt,
                {.key = 1, .service_action_key = 2, .type = scsi::PrType::kWriteExclusive}),
            Status::kGood);
  EXPECT_EQ(told(*open_forwarded("another")), Told{}) << "it was never registered";
  auto again = open_forwarded("far");
  EXPECT_EQ(told(*again), Told{0x062a05}) << "REGISTRATIONS PREEMPTED";
  again->close(false, [] {});
  reactors.run();
  EXPECT_EQ(told(*open_forwarded("far")), Told{}) << "reported already";
}

TEST_F(ForwardedFirstUseTest, AReleaseBeforeTheFirstForwardedCommandIsReportedToRegistrants) {
  enlist(*a, 1);
  auto far = open_forwarded("far");
  enlist(*far, 2);
  far->close(false, [] {});
  reactors.run();
  const auto release = [this] {
    reserve(*a, 1, scsi::PrType::kWriteExclusiveRegistrantsOnly);
    ASSERT_EQ(out(*a, PrOutAction::kRelease,
                  {.key = 1, .type = scsi::PrType::kWriteExclusiveRegistrantsOnly}),
              Status::kGood);
  };
  release();
  EXPECT_EQ(told(*open_forwarded("far")), Told{0x062a04}) << "RESERVATIONS RELEASED";
  release();
  EXPECT_EQ(told(*open_forwarded("far")), Told{0x062a04}) << "another one";
}

TEST_F(ForwardedFirstUseTest, EachPortOfAnAllTargetPortsRegistrationReceivesThePreemptionOnce) {
  auto first = open_forwarded("far", 1);
  ASSERT_EQ(out(*first, PrOutAction::kRegisterAndIgnoreExistingKey,
                {.service_action_key = 2, .flags = 0x04}),
            Status::kGood);
  first->close(false, [] {});
  reactors.run();
  enlist(*a, 1);
  ASSERT_EQ(out(*a, PrOutAction::kPreempt,
                {.key = 1, .service_action_key = 2, .type = scsi::PrType::kWriteExclusive}),
            Status::kGood);
  for (const uint16_t port : {uint16_t{1}, uint16_t{2}}) {
    EXPECT_EQ(told(*open_forwarded("far", port)), Told{0x062a05});
    EXPECT_EQ(told(*open_forwarded("far", port)), Told{});
  }
}

// Its session may end before it asked again.
TEST_F(ForwardedFirstUseTest, AnAttentionThatAForwardedNexusDidNotFetchIsReportedToTheNext) {
  auto far = open_forwarded("far");
  enlist(*far, 2);
  enlist(*a, 1);
  ASSERT_EQ(out(*a, PrOutAction::kPreempt,
                {.key = 1, .service_action_key = 2, .type = scsi::PrType::kWriteExclusive}),
            Status::kGood);
  for (int time = 0; time < 2; ++time) {
    far->close(false, [] {});
    reactors.run();
    far = open_forwarded("far");
    ASSERT_NE(far->use(0), nullptr);
  }
  EXPECT_EQ(told(*far), Told{0x062a05});
  EXPECT_EQ(told(*open_forwarded("far")), Told{});
}

// As AResetBeforeTheFirstUseIsReportedAsUnitAttention and
// AModeParameterChangeByAnotherNexusIsReportedAtTheFirstUse, of a host that logged in at the other
// gateway before, or after.
TEST_F(ForwardedFirstUseTest, AnAttentionOfTheOwnerIsReportedToForwardedHostsConnectedBeforeIt) {
  now = 1000 * kSecond;
  reset_by(*a);
  now += 10 * kSecond;
  toggle_write_protection(*a);
  now += 10 * kSecond;
  EXPECT_EQ(told(*open_forwarded("before both", 1, 25 * kSecond)),
            (Told{kDeviceReset, kModeChanged}));
  EXPECT_EQ(told(*open_forwarded("at the first", 1, 20 * kSecond)),
            (Told{kDeviceReset, kModeChanged}));
  ASSERT_LT(limits::host_age_slack(11 * kSecond), 9 * kSecond);
  EXPECT_EQ(told(*open_forwarded("between", 1, 11 * kSecond)), Told{kModeChanged});
  EXPECT_EQ(told(*open_forwarded("late", 1, kSecond)), Told{});
}

// The age was measured before the login, with another clock.
TEST_F(ForwardedFirstUseTest, AnAttentionIsReportedIfTheHostsAgeIsWithinTheSlack) {
  now = 1000 * kSecond;
  toggle_write_protection(*a);
  now += 500 * kSecond;
  const Nanos slack = limits::host_age_slack(400 * kSecond);
  EXPECT_EQ(told(*open_forwarded("in doubt", 1, 500 * kSecond - slack)), Told{kModeChanged});
  EXPECT_EQ(told(*open_forwarded("later", 1, 500 * kSecond - slack - kSecond)), Told{});
  EXPECT_GT(slack, limits::kDialBound + limits::kForwardingLogin);
}

TEST_F(ForwardedFirstUseTest, AForwardedHostReceivesAnAttentionOnceHoweverOftenItsSessionRestarts) {
  now = 1000 * kSecond;
  auto idle = open_forwarded("idle", 1, kSecond);
  ASSERT_NE(idle->use(0), nullptr);
  auto far = open_forwarded("far", 1, kSecond);
  ASSERT_NE(far->use(0), nullptr);
  reset_by(*a);
  EXPECT_EQ(told(*far), Told{kDeviceReset});
  leave(*far);
  leave(*idle);
  EXPECT_EQ(told(*open_forwarded("far", 1, kSecond)), Told{});
  EXPECT_EQ(told(*open_forwarded("far", 2, kSecond)), Told{kDeviceReset}) << "another nexus";
  EXPECT_EQ(told(*open_forwarded("idle", 1, kSecond)), Told{kDeviceReset}) << "it never asked";
  reset_by(*a);
  EXPECT_EQ(told(*open_forwarded("far", 1, kSecond)), Told{kDeviceReset}) << "another one";
}

TEST_F(ForwardedFirstUseTest, AForwardedHostReceivesNoAttentionForItsOwnModeParameterChange) {
  auto far = open_forwarded("far", 1, kSecond);
  toggle_write_protection(*far);
  leave(*far);
  EXPECT_EQ(told(*open_forwarded("far", 1, kSecond)), Told{});
  EXPECT_EQ(told(*open_forwarded("another", 1, kSecond)), Told{kModeChanged});
}

// Its own gateway raises it for it.
TEST_F(ForwardedFirstUseTest,
       AnAttentionThatEveryGatewayRaisesItselfIsNotReportedToForwardedHosts) {
  now = 1000 * kSecond;
  ASSERT_TRUE(unit->resize(2 * kBlocks * block).ok());
  unit->attached().raise({0x2a, 0x01}, nullptr);
  EXPECT_EQ(told(*open_forwarded("far", 1, 100 * kSecond)), Told{});
  toggle_write_protection(*a);
  unit->attached().raise({0x2a, 0x01}, nullptr);
  EXPECT_EQ(told(*open_forwarded("far", 1, 100 * kSecond)), Told{kModeChanged})
      << "one doesn't hide the other";
}

TEST_F(ForwardedFirstUseTest, AForwardedNexusBeyondTheRecordLimitReceivesTheAttentionAgain) {
  AttentionLog log;
  const UnitAttention reset{0x29, 0x03};
  log.add_here(reset, kSecond, nullptr);
  const auto port = [&](size_t number) {
    NexusId id = a->id();
    id.relative_target_port = static_cast<uint16_t>(number);
    return id;
  };
  const auto is_told = [&](size_t number) {
    return !log.raised_for_forwarded(AttentionLog::now(), 0, port(number)).empty();
  };
  for (size_t i = 0; i <= limits::kMaxNotifiedNexuses; ++i) {
    EXPECT_TRUE(is_told(i));
    for (int time = 0; time < 2; ++time) log.record_reported(reset, port(i));
  }
  for (size_t i = 0; i < limits::kMaxNotifiedNexuses; ++i) EXPECT_FALSE(is_told(i)) << i;
  EXPECT_TRUE(is_told(limits::kMaxNotifiedNexuses));
}

}  // namespace
}  // namespace sluice::lun
