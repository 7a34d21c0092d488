#include "iscsi/login/login.h"

#include <gtest/gtest.h>

#include "base/limits.h"
#include "iscsi/login/chap.h"
#include "iscsi/login/login_dialogue.h"
#include "iscsi/login/text.h"

namespace sluice::iscsi {
namespace {

using Outcome = Login::Outcome;

// A login that fails: header as RFC 7143 §11.13.5 wants it, and nothing after it.
void expect_failure(LoginDialogue& d, const Reply& reply, LoginStatus status) {
  EXPECT_EQ(reply.outcome, Outcome::kFailed);
  EXPECT_EQ(reply.status(), static_cast<uint16_t>(status)) << d.login().reason();
  EXPECT_EQ(d.login().status(), status);
  EXPECT_FALSE(d.login().reason().empty());
  EXPECT_EQ(reply.flags(), 0);
  EXPECT_TRUE(reply.answer.text.empty());
  EXPECT_EQ(reply.answer.header.data_length(), 0u);
  EXPECT_EQ(d.send(kSecurityStays, {}).outcome, Outcome::kDrop);
  d.again();
}

TEST(Login, ReportsTheIdentityOfTheSession) {
  LoginDialogue d;
  d.add_target("iqn.2026-11.dev.sluice:named", {}, "my disk");
  Reply reply = d.send(kOperationalToFull,
                       {"InitiatorName=IQN.1994-05.com.RedHat:HOST", "InitiatorAlias=my host",
                        "TargetName=IQN.2026-11.dev.sluice:NAMED"});
  ASSERT_EQ(reply.outcome, Outcome::kSucceeded);
  EXPECT_EQ(reply.keys(), (Keys{"TargetPortalGroupTag=7", "TargetAlias=my disk",
                                "MaxRecvDataSegmentLength=262144"}));
  const Parameters& p = d.login().parameters();
  EXPECT_EQ(p.initiator_name, kHost);
  EXPECT_EQ(p.initiator_alias, "my host");
  EXPECT_EQ(p.target_name, "iqn.2026-11.dev.sluice:named");
  EXPECT_EQ(p.isid, (std::array<uint8_t, 6>{0x40, 0x00, 0x01, 0x37, 0x00, 0x05}));
  EXPECT_EQ(p.tpgt, 7);
  EXPECT_EQ(p.auth_method, "None");
  EXPECT_FALSE(p.discovery);
  EXPECT_FALSE(p.read_only);
  EXPECT_EQ(p.max_recv_data_segment_length, 262144u);
  EXPECT_EQ(d.login().target(), d.exports.find("iqn.2026-11.dev.sluice:named"));
  EXPECT_EQ(d.login().first_cmd_sn(), 0x64u);
  EXPECT_EQ(d.login().cid(), 9);
  EXPECT_EQ(d.login().requested_tsih(), 0);
  EXPECT_EQ(d.login().status(), LoginStatus::kSuccess);
  EXPECT_EQ(d.send(kOperationalToFull, {}).outcome, Outcome::kDrop);
}

TEST(Login, LeavesAnUnknownTsihToTheCaller) {
  LoginDialogue d;
  d.header.put16(14, 0x0bad);
  Reply reply = d.send(kOperationalToFull, LoginDialogue::names(kOpenTarget));
  ASSERT_EQ(reply.outcome, Outcome::kSucceeded);
  EXPECT_EQ(d.login().requested_tsih(), 0x0bad);
  EXPECT_EQ(reply.answer.header.u16(14), 0x0bad);
  Login::fail(&reply.answer, LoginStatus::kSessionDoesNotExist);
  EXPECT_EQ(reply.status(), 0x020a);
  EXPECT_TRUE(reply.answer.text.empty());
  EXPECT_EQ(reply.flags(), 0);
}

TEST(Login, ReadOnlyIsSetByTheHostsEntry) {
  LoginDialogue d;
  Reply reply = d.send(kOperationalToFull, {"InitiatorName=iqn.2026-11.example:other",
                                            "TargetName=" + std::string(kPrivateTarget)});
  ASSERT_EQ(reply.outcome, Outcome::kSucceeded);
  EXPECT_TRUE(d.login().parameters().read_only);
}

TEST(Login, EachFailureHasItsStatus) {
  const std::string open = "TargetName=" + std::string(kOpenTarget);
  const std::string host = "InitiatorName=" + std::string(kHost);
  const struct {
    uint8_t flags;
    Keys keys;
    LoginStatus status;
  } cases[] = {
      {kOperationalToFull, {open}, LoginStatus::kMissingParameter},
      {kOperationalToFull, {}, LoginStatus::kMissingParameter},
      {kOperationalToFull, {host}, LoginStatus::kMissingParameter},
      {kOperationalToFull, {host, "SessionType=Normal"}, LoginStatus::kMissingParameter},
      {kOperationalToFull, {host, "SessionType=Boot", open}, LoginStatus::kSessionTypeNotSupported},
      {kOperationalToFull,
       {host, "SessionType=normal", open},
       LoginStatus::kSessionTypeNotSupported},
      {kOperationalToFull, {"InitiatorName=host", open}, LoginStatus::kInitiatorError},
      {kOperationalToFull, {host, "TargetName=disk"}, LoginStatus::kInitiatorError},
      {kOperationalToFull, {host, "TargetName=iqn.2026-11.dev.sluice:no"}, LoginStatus::kNotFound},
      {kOperationalToFull, LoginDialogue::names(kPrivateTarget), LoginStatus::kNotFound},
      {kOperationalToFull, LoginDialogue::names(kChapTarget), LoginStatus::kAuthenticationFailure},
      {kSecurityToOperational, LoginDialogue::names(kChapTarget),
       LoginStatus::kAuthenticationFailure},
      {kSecurityToFull, LoginDialogue::names(kChapTarget), LoginStatus::kAuthenticationFailure},
      {kSecurityToOperational, LoginDialogue::names(kChapTarget, {"AuthMethod=None"}),
       LoginStatus::kAuthenticationFailure},
      {kSecurityToOperational, LoginDialogue::names(kChapTarget, {"AuthMethod=KRB5,None"}),
       LoginStatus::kAuthenticationFailure},
      {kSecurityToOperational, LoginDialogue::names(kOpenTarget, {"AuthMethod=CHAP"}),
       LoginStatus::kAuthenticationFailure},
      {kSecurityToOperational, LoginDialogue::names(kOpenTarget, {"AuthMethod="}),
       LoginStatus::kAuthenticationFailure},
      {kSecurityStays, LoginDialogue::names(kOpenTarget, {"CHAP_A=5"}),
       LoginStatus::kInitiatorError},
      {kOperationalToFull, LoginDialogue::names(kChapTarget, {"AuthMethod=None"}),
       LoginStatus::kAuthenticationFailure},
      {kOperationalToFull, LoginDialogue::names(kChapTarget, {"AuthMethod=CHAP,None"}),
       LoginStatus::kAuthenticationFailure},
      {kOperationalToFull, LoginDialogue::names(kOpenTarget, {"AuthMethod=CHAP"}),
       LoginStatus::kAuthenticationFailure},
      {kOperationalStays, LoginDialogue::names(kOpenTarget, {"CHAP_A=5"}),
       LoginStatus::kInitiatorError},
      {kOperationalStays, LoginDialogue::names(kOpenTarget, {"MaxRecvDataSegmentLength=1"}),
       LoginStatus::kInitiatorError},
      {kOperationalStays, LoginDialogue::names(kOpenTarget, {"no equals sign"}),
       LoginStatus::kInitiatorError},
      {kOperationalStays, LoginDialogue::names(kOpenTarget, {"InitialR2T=No", "InitialR2T=Yes"}),
       LoginStatus::kInitiatorError},
  };
  LoginDialogue d;
  for (const auto& c : cases) {
    SCOPED_TRACE(c.keys.empty() ? "nothing" : c.keys.back());
    expect_failure(d, d.send(c.flags, c.keys), c.status);
  }
}

TEST(Login, OnlyVersionZeroIsSupported) {
  LoginDialogue d;
  d.header.put8(2, 5);  // Version-max
  EXPECT_EQ(d.send(kSecurityToOperational, LoginDialogue::names(kOpenTarget)).outcome,
            Outcome::kContinue);
  d.again();
  d.header.put8(3, 1);  // Version-min
  expect_failure(d, d.send(kSecurityToOperational, LoginDialogue::names(kOpenTarget)),
                 LoginStatus::kUnsupportedVersion);
}

TEST(Login, InvalidStagesAndFlagsAreRefused) {
  LoginDialogue d;
  for (uint8_t flags : {0x80, 0x82, 0x84, 0x85, 0x86, 0x08, 0x0c, 0x8f, 0xc1, 0xc7}) {
    expect_failure(d, d.send(flags, LoginDialogue::names(kOpenTarget)),
                   LoginStatus::kInitiatorError);
  }
}

TEST(Login, NsgIsIgnoredWithoutTheTransitBit) {
  LoginDialogue d;
  EXPECT_EQ(d.send(0x02, LoginDialogue::names(kOpenTarget)).flags(), kSecurityStays);
}

TEST(Login, ARequestInAnotherStageThanTheCurrentStageIsRefused) {
  LoginDialogue d;
  ASSERT_EQ(d.send(kSecurityToOperational, LoginDialogue::names(kOpenTarget)).flags(),
            kSecurityToOperational);
  expect_failure(d, d.send(kSecurityStays, {}), LoginStatus::kInitiatorError);
  ASSERT_EQ(d.send(kSecurityStays, LoginDialogue::names(kOpenTarget)).outcome, Outcome::kContinue);
  expect_failure(d, d.send(kOperationalToFull, {}), LoginStatus::kInitiatorError);
}

TEST(Login, AChangedIsidTsihCidOrIttIsRefused) {
  for (unsigned at : {8u, 13u, 14u, 16u, 19u, 20u}) {
    LoginDialogue d;
    ASSERT_EQ(d.send(kSecurityToOperational, LoginDialogue::names(kOpenTarget)).outcome,
              Outcome::kContinue);
    d.header.bytes[at] ^= 1;
    expect_failure(d, d.send(kOperationalToFull, {}), LoginStatus::kInitiatorError);
  }
}

TEST(Login, NamesMayBeRepeatedUnchangedButNotChanged) {
  const Keys first = LoginDialogue::names(kOpenTarget, {"InitiatorAlias=host"});
  {
    LoginDialogue d;
    ASSERT_EQ(d.send(kSecurityToOperational, first).outcome, Outcome::kContinue);
    EXPECT_EQ(d.send(kOperationalToFull, first).outcome, Outcome::kSucceeded);
  }
  for (const char* changed :
       {"InitiatorName=iqn.2026-11.example:other", "TargetName=iqn.2026-11.dev.sluice:chap",
        "SessionType=Discovery", "InitiatorName=x"}) {
    LoginDialogue d;
    ASSERT_EQ(d.send(kSecurityToOperational, first).outcome, Outcome::kContinue);
    expect_failure(d, d.send(kOperationalToFull, {changed}), LoginStatus::kInitiatorError);
  }
}

// tgt and SCST continue these logins, too.
TEST(Login, KeysThatHaveNoHarmfulEffectDoNotEndTheLogin) {
  for (const Keys& keys : {Keys{"InitialR2T=No", "InitialR2T=No"}, Keys{"InitialR2T=Reject"},
                           Keys{"OFMarkInt=Irrelevant"}, Keys{"MaxRecvDataSegmentLength=16777216"},
                           Keys{"MaxRecvDataSegmentLength=NotUnderstood"},
                           Keys{"InitiatorAlias=" + std::string(256, 'a')},
                           Keys{"AuthMethod=None", "AuthMethod=None"}}) {
    for (const uint8_t flags : {kSecurityToFull, kOperationalToFull}) {
      LoginDialogue d;
      EXPECT_EQ(d.send(flags, LoginDialogue::names(kOpenTarget, keys)).outcome, Outcome::kSucceeded)
          << keys.back() << ": " << d.login().reason();
    }
  }
}

TEST(Login, TheLatestAliasAppliesAndIsTruncated) {
  LoginDialogue d;
  d.send(kSecurityToOperational, LoginDialogue::names(kOpenTarget, {"InitiatorAlias=host"}));
  ASSERT_EQ(d.send(kOperationalToFull, {"InitiatorAlias=" + std::string(256, 'a')}).outcome,
            Outcome::kSucceeded);
  EXPECT_EQ(d.login().parameters().initiator_alias, std::string(255, 'a'));
}

TEST(Login, AKeyMayBeRepeatedIfThatChangesNothing) {
  LoginDialogue d;
  const Keys first = LoginDialogue::names(kOpenTarget, {"InitialR2T=No"});
  ASSERT_EQ(d.send(kOperationalStays, first).flags(), kOperationalStays);
  Reply again = d.send(kOperationalToFull, {"InitialR2T=No"});
  EXPECT_EQ(again.outcome, Outcome::kSucceeded);
  EXPECT_EQ(again.keys(), Keys{"InitialR2T=No"});
  d.again();
  ASSERT_EQ(d.send(kOperationalStays, first).flags(), kOperationalStays);
  expect_failure(d, d.send(kOperationalToFull, {"InitialR2T=Yes"}), LoginStatus::kInitiatorError);
  ASSERT_EQ(d.send(kSecurityStays, LoginDialogue::names(kOpenTarget, {"AuthMethod=None"})).outcome,
            Outcome::kContinue);
  EXPECT_EQ(d.send(kSecurityToFull, {"AuthMethod=None"}).keys(), Keys{"AuthMethod=None"});
}

TEST(Login, OperationalKeysAreAcceptedInTheSecurityStage) {
  LoginDialogue d;
  Reply early = d.send(kSecurityToOperational,
                       LoginDialogue::names(kOpenTarget, {"AuthMethod=None", "InitialR2T=No",
                                                          "MaxRecvDataSegmentLength=65536"}));
  ASSERT_EQ(early.outcome, Outcome::kContinue);
  EXPECT_EQ(early.keys(), (Keys{"TargetPortalGroupTag=7", "AuthMethod=None", "InitialR2T=No"}));
  ASSERT_EQ(d.send(kOperationalToFull, {}).outcome, Outcome::kSucceeded);
  EXPECT_FALSE(d.login().parameters().initial_r2t);
  EXPECT_EQ(d.login().parameters().max_send_data_segment_length, 65536u);
}

TEST(Login, AuthMethodIsAcceptedInTheOperationalStageIfNoneIsRequired) {
  for (const char* offered : {"AuthMethod=None", "AuthMethod=CHAP,None"}) {
    LoginDialogue d;
    Reply reply = d.send(kOperationalToFull, LoginDialogue::names(kOpenTarget, {offered}));
    ASSERT_EQ(reply.outcome, Outcome::kSucceeded) << d.login().reason();
    EXPECT_EQ(reply.keys().at(1), "AuthMethod=None");
    d.again();
    reply = d.send(kOperationalToFull,
                   {"InitiatorName=" + std::string(kHost), "SessionType=Discovery", offered});
    EXPECT_EQ(reply.outcome, Outcome::kSucceeded) << d.login().reason();
  }
}

TEST(Login, KeysThatAnInitiatorMayNotSendAreNotUnderstood) {
  for (const uint8_t flags : {kSecurityStays, kOperationalStays}) {
    for (const char* key : {"SendTargets", "TargetPortalGroupTag", "TargetAddress"}) {
      LoginDialogue d;
      const std::string pair = std::string(key) + "=1";
      const Reply reply = d.send(flags, LoginDialogue::names(kOpenTarget, {pair}));
      EXPECT_EQ(reply.outcome, Outcome::kContinue) << key << ": " << d.login().reason();
      EXPECT_EQ(reply.keys().front(), std::string(key) + "=NotUnderstood");
    }
  }
}

TEST(Login, TheReasonQuotesAMalformedInitiatorNameUpToALimit) {
  LoginDialogue d;
  d.send(kOperationalToFull, {"InitiatorName=Disk of mine", "SessionType=Discovery"});
  EXPECT_NE(d.login().reason().find("'Disk of mine'"), std::string::npos) << d.login().reason();
  d.again();
  d.send(kOperationalToFull, {"InitiatorName=" + std::string(4000, 'x'), "SessionType=Discovery"});
  EXPECT_LT(d.login().reason().size(), 400u);
}

TEST(Login, NotUnderstoodIsAcceptedAsAnAnswerToAKeyOfTheTarget) {
  LoginDialogue d;
  ASSERT_EQ(d.send(kSecurityToOperational, LoginDialogue::names(kOpenTarget)).outcome,
            Outcome::kContinue);
  EXPECT_EQ(d.send(kOperationalToFull, {"TargetPortalGroupTag=NotUnderstood"}).outcome,
            Outcome::kSucceeded);
}

TEST(Login, TheSecurityStageMayLeadDirectlyToTheFullFeaturePhase) {
  LoginDialogue d;
  Reply reply = d.send(kSecurityToFull, LoginDialogue::names(kOpenTarget, {"AuthMethod=None"}));
  ASSERT_EQ(reply.outcome, Outcome::kSucceeded);
  EXPECT_EQ(reply.flags(), kSecurityToFull);
  EXPECT_EQ(reply.keys(), (Keys{"TargetPortalGroupTag=7", "AuthMethod=None"}));
  EXPECT_EQ(d.login().parameters().max_recv_data_segment_length, 8192u)
      << "there was no operational stage to declare another in";
}

TEST(Login, TheInitiatorDecidesWhenAStageEnds) {
  LoginDialogue d;
  EXPECT_EQ(d.send(kSecurityStays, LoginDialogue::names(kOpenTarget)).flags(), kSecurityStays);
  EXPECT_EQ(d.send(kSecurityStays, {"AuthMethod=CHAP,None"}).keys(), Keys{"AuthMethod=None"});
  EXPECT_EQ(d.send(kSecurityToOperational, {}).flags(), kSecurityToOperational);
  EXPECT_EQ(d.send(kOperationalStays, {}).keys(), Keys{"MaxRecvDataSegmentLength=262144"});
  EXPECT_EQ(d.send(kOperationalStays, {"InitialR2T=No"}).keys(), Keys{"InitialR2T=No"});
  Reply last = d.send(kOperationalToFull, {});
  EXPECT_EQ(last.outcome, Outcome::kSucceeded);
  EXPECT_TRUE(last.keys().empty());
}

TEST(Login, AnOfferOfTheTargetDelaysTheTransitByOneRound) {
  LoginDialogue d;
  d.setup.offer.data_digest = Offer::Digest::kRequire;
  Reply offer = d.send(kOperationalToFull, LoginDialogue::names(kOpenTarget));
  EXPECT_EQ(offer.outcome, Outcome::kContinue);
  EXPECT_EQ(offer.flags(), kOperationalStays);
  EXPECT_EQ(offer.keys().back(), "DataDigest=CRC32C");
  EXPECT_EQ(d.send(kOperationalToFull, {"DataDigest=CRC32C"}).outcome, Outcome::kSucceeded);
  EXPECT_TRUE(d.login().parameters().data_digest);
  d.again();
  d.send(kOperationalToFull, LoginDialogue::names(kOpenTarget));
  expect_failure(d, d.send(kOperationalToFull, {}), LoginStatus::kInitiatorError);
}

TEST(Login, DiscoveryRequiresItsOwnCredentials) {
  LoginDialogue d;
  lun::HostAccess access;
  access.chap = {"finder", "a discovery secret"};
  d.exports.set_discovery_access(access);
  const std::string host = "InitiatorName=" + std::string(kHost);
  expect_failure(d, d.send(kOperationalToFull, {host, "SessionType=Discovery"}),
                 LoginStatus::kAuthenticationFailure);
  d.again();
  EXPECT_EQ(
      d.send(kSecurityToOperational, {host, "SessionType=Discovery", "AuthMethod=CHAP"}).keys(),
      Keys{"AuthMethod=CHAP"});
}

}  // namespace
}  // namespace sluice::iscsi
