// Where a host is sent and shown, and how often it may be here.
#include <gtest/gtest.h>

#include "iscsi/login/login_dialogue.h"
#include "iscsi/login/send_targets.h"
#include "iscsi/session_directory.h"

namespace sluice::iscsi {
namespace {

using Outcome = Login::Outcome;

constexpr std::string_view kBalanced = "iqn.2026-11.dev.sluice:balanced";

class LoginPortals : public testing::Test {
 protected:
  LoginPortals() {
    access_.initiators = {std::string(kHost)};
    access_.host = "the-host";
    access_.portals = {"198.51.100.9:3260,31", "192.0.2.1:3260,32"};
    access_.redirect = true;
    dialogue_.setup.sessions = &directory_;
  }
  Reply login(uint16_t tpgt) {
    dialogue_.add_target(kBalanced, access_);
    dialogue_.setup.tpgt = tpgt;
    dialogue_.again();
    return dialogue_.send(kOperationalToFull, LoginDialogue::names(kBalanced));
  }
  // A session of this initiator port, or with `last` another, by a portal.
  void open_session(uint16_t tpgt, uint8_t last = 0x05) {
    directory_.claim(
        {std::string(kHost), {0x40, 0x00, 0x01, 0x37, 0x00, last}, std::string(kBalanced), tpgt},
        {0, next_++}, 0);
  }

  IdleReactors reactors_;
  SessionDirectory directory_{reactors_, {[](auto) {}, [](auto, auto) {}, [](auto) {}}};
  uint64_t next_ = 1;
  lun::HostAccess access_;
  LoginDialogue dialogue_;
};

TEST_F(LoginPortals, ALoginAtAnotherPortalIsRedirectedToTheFirstPortalOfTheList) {
  const Reply reply = login(33);
  EXPECT_EQ(reply.outcome, Outcome::kFailed);
  EXPECT_EQ(reply.status(), 0x0101);
  // RFC 7143 §13.8: without the portal group tag.
  EXPECT_EQ(reply.keys(), Keys{"TargetAddress=198.51.100.9:3260"});
  EXPECT_EQ(reply.answer.header.data_length(), reply.answer.text.size());
}

TEST_F(LoginPortals, ALoginAtAnyPortalOfTheListSucceeds) {
  EXPECT_EQ(login(31).outcome, Outcome::kSucceeded);
  EXPECT_EQ(login(32).outcome, Outcome::kSucceeded);
}

TEST_F(LoginPortals, AnEmptyListRedirectsNoLogin) {
  access_.portals.clear();
  EXPECT_EQ(login(33).outcome, Outcome::kSucceeded);
}

TEST_F(LoginPortals, WithoutRedirectionALoginAtAnotherPortalSucceeds) {
  access_.redirect = false;
  EXPECT_EQ(login(33).outcome, Outcome::kSucceeded);
}

TEST_F(LoginPortals, AnInitiatorPortWithASessionAtThePortalIsNotRedirected) {
  open_session(33);
  EXPECT_EQ(login(33).outcome, Outcome::kSucceeded);
}

TEST_F(LoginPortals, AHostAtItsSessionLimitIsRefusedButMayReinstateASession) {
  access_.max_sessions = 1;
  open_session(31, 0x06);
  const Reply reply = login(31);
  EXPECT_EQ(reply.outcome, Outcome::kFailed);
  EXPECT_EQ(reply.status(), 0x0302);
  EXPECT_EQ(dialogue_.login().reason(),
            "host the-host has 1 sessions at this gateway already, and may have 1");
  access_.max_sessions = 2;
  open_session(31);
  EXPECT_EQ(login(31).outcome, Outcome::kSucceeded) << "its own session doesn't count";
}

TEST_F(LoginPortals, AGatewayAtTheSessionLimitOfItsPoolRefusesAnotherSession) {
  open_session(31, 0x06);
  directory_.claim({"iqn.2026-11.test:forwarded", {}, std::string(kBalanced), 31, 2}, {0, 99}, 0);
  directory_.limit_sessions(2);
  EXPECT_EQ(login(31).outcome, Outcome::kSucceeded) << "what a gateway forwards is no session here";
  directory_.limit_sessions(1);
  const Reply reply = login(31);
  EXPECT_EQ(reply.outcome, Outcome::kFailed);
  EXPECT_EQ(reply.status(), 0x0302);
  EXPECT_EQ(dialogue_.login().reason(),
            "this gateway has 1 sessions, as many as its GatewayPool permits "
            "(max_sessions_per_gateway)");
  directory_.limit_sessions(2);
  open_session(31);
  EXPECT_EQ(login(31).outcome, Outcome::kSucceeded) << "its own session does not count";
  directory_.limit_sessions(0);
  open_session(31, 0x07);
  EXPECT_EQ(login(31).outcome, Outcome::kSucceeded) << "0: no limit";
}

TEST_F(LoginPortals, SendTargetsListsThePortalsConfiguredForTheHost) {
  dialogue_.add_target(kBalanced, access_);
  SendTargets answer;
  Parameters session;
  session.discovery = true;
  session.initiator_name = kHost;
  ASSERT_TRUE(answer.ask(dialogue_.exports, session, "All", "192.0.2.1:3260"));
  std::string text;
  answer.append(&text, 100000);
  const Keys keys = keys_of(text);
  const auto at = std::find(keys.begin(), keys.end(), "TargetName=" + std::string(kBalanced));
  ASSERT_GE(keys.end() - at, 3);
  EXPECT_EQ(at[1], "TargetAddress=198.51.100.9:3260,31");
  EXPECT_EQ(at[2], "TargetAddress=192.0.2.1:3260,32");
  EXPECT_NE(std::find(keys.begin(), keys.end(), "TargetAddress=192.0.2.1:3260,1"), keys.end())
      << "a target without a list is shown by all portals";
}

}  // namespace
}  // namespace sluice::iscsi
