// What a login reveals before it has proven anything: nothing about targets, and of a name only
// whether it may come in without CHAP.
#include <gtest/gtest.h>

#include "iscsi/login/chap.h"
#include "iscsi/login/login_dialogue.h"
#include "iscsi/login/send_targets.h"
#include "iscsi/login/text.h"
#include "iscsi/session_directory.h"
#include "nexus/host_directory.h"

namespace sluice::iscsi {
namespace {

using Outcome = Login::Outcome;

constexpr std::string_view kGuarded = "iqn.2026-11.dev.sluice:guarded";
constexpr std::string_view kForbidden = "iqn.2026-11.dev.sluice:forbidden";
constexpr std::string_view kUnknown = "iqn.2026-11.dev.sluice:unknown";
constexpr std::string_view kChapHost = "iqn.2026-11.example:chap";
constexpr std::string_view kPlainHost = "iqn.2026-11.example:plain";
constexpr std::string_view kStranger = "iqn.2026-11.example:stranger";
constexpr std::string_view kSecret = "a secret of 16 b";

// A gateway of a cluster: a host with mutual CHAP, a host without, and a target of each.
class Disclosure : public testing::Test {
 protected:
  Disclosure() {
    chap_.initiators = {std::string(kChapHost)};
    chap_.chap = {"user", std::string(kSecret)};
    chap_.mutual = {"target", "another secret!!"};
    plain_.initiators = {std::string(kPlainHost)};
    dialogue_.add_target(kGuarded, chap_);
    dialogue_.add_target(kForbidden, plain_);
    set_hosts({chap_, plain_});
    dialogue_.exports.set_discovery_policy(lun::DiscoveryPolicy::kHosts);
  }
  void set_hosts(const std::vector<lun::HostAccess>& hosts) {
    auto directory = std::make_shared<lun::HostDirectory>();
    for (const lun::HostAccess& host : hosts) directory->add(host);
    dialogue_.exports.set_hosts(std::move(directory));
  }
  // The names of a first request; no target: a discovery session.
  static Keys names(std::string_view initiator, std::string_view target) {
    Keys keys = {"InitiatorName=" + std::string(initiator)};
    keys.push_back(target.empty() ? "SessionType=Discovery" : "TargetName=" + std::string(target));
    return keys;
  }
  static std::string proof(std::string_view secret) {
    std::vector<uint8_t> challenge(16);
    for (size_t i = 0; i < 16; ++i) challenge[i] = static_cast<uint8_t>(0xa0 + i);
    return "CHAP_R=" + binary_text(chap_response(ChapAlgorithm::kMd5, 0xa0, secret, challenge));
  }
  // Every answer of a login with CHAP, as far as it gets: what an initiator learns.
  std::vector<std::string> chap_login(std::string_view initiator, std::string_view target,
                                      std::string_view secret, const Keys& more = {}) {
    dialogue_.again();
    Keys first = names(initiator, target);
    first.push_back("AuthMethod=CHAP,None");
    Keys last = {"CHAP_N=user", proof(secret)};
    last.insert(last.end(), more.begin(), more.end());
    std::vector<std::string> seen;
    for (const Keys& keys : {first, Keys{"CHAP_A=5"}, last}) {
      const Reply reply = dialogue_.send(kSecurityToFull, keys);
      seen.push_back(describe(reply));
      if (reply.outcome != Outcome::kContinue) break;
    }
    return seen;
  }
  std::string plain_login(uint8_t flags, std::string_view initiator, std::string_view target,
                          const Keys& more = {}) {
    dialogue_.again();
    Keys keys = names(initiator, target);
    keys.insert(keys.end(), more.begin(), more.end());
    return describe(dialogue_.send(flags, keys));
  }
  static std::string describe(const Reply& reply) {
    char status[8];
    std::snprintf(status, sizeof status, "%04x", reply.status());
    std::string text = std::string(status) + " flags " + std::to_string(reply.flags());
    for (const std::string& key : reply.keys()) text += " " + key;
    return text;
  }
  std::string listed(std::string_view initiator) {
    SendTargets answer;
    Parameters session;
    session.discovery = true;
    session.initiator_name = initiator;
    EXPECT_TRUE(answer.ask(dialogue_.exports, session, "All", "192.0.2.1:3260"));
    std::string text;
    answer.append(&text, 100000);
    return text;
  }

  lun::HostAccess chap_;
  lun::HostAccess plain_;
  LoginDialogue dialogue_;
};

TEST_F(Disclosure, DiscoveryByTheNameOfAChapHostIsRefusedWithoutItsProof) {
  EXPECT_EQ(plain_login(kOperationalToFull, kChapHost, "").substr(0, 4), "0201");
  EXPECT_EQ(plain_login(kSecurityToFull, kChapHost, "", {"AuthMethod=None"}).substr(0, 4), "0201");
  EXPECT_EQ(chap_login(kChapHost, "", "a wrong secret..").back().substr(0, 4), "0201");
}

TEST_F(Disclosure, DiscoveryWithTheHostsProofIsMutualAndListsOnlyItsTargets) {
  const std::string theirs = "0x00112233445566778899aabbccddeeff";
  const std::vector<std::string> seen =
      chap_login(kChapHost, "", kSecret, {"CHAP_I=7", "CHAP_C=" + theirs});
  EXPECT_EQ(seen.back().substr(0, 4), "0000");
  EXPECT_NE(seen.back().find("CHAP_N=target CHAP_R="), std::string::npos);
  const Parameters& agreed = dialogue_.login().parameters();
  EXPECT_TRUE(agreed.discovery && agreed.mutual_auth);
  EXPECT_EQ(listed(kChapHost).find(kForbidden), std::string::npos);
  EXPECT_NE(listed(kChapHost).find(kGuarded), std::string::npos);
}

TEST_F(Disclosure, DiscoveryOfAHostWithoutChapNeedsNoProof) {
  EXPECT_EQ(plain_login(kOperationalToFull, kPlainHost, "").substr(0, 4), "0000");
  EXPECT_EQ(listed(kPlainHost).find(kGuarded), std::string::npos);
  EXPECT_NE(listed(kPlainHost).find(kForbidden), std::string::npos) << "its own";
}

TEST_F(Disclosure, AnUnknownInitiatorReceivesTheSameAnswersAsAWrongSecret) {
  for (const std::string_view target : {std::string_view(), kGuarded, kForbidden, kUnknown}) {
    const auto wrong = chap_login(kChapHost, target, "a wrong secret..");
    ASSERT_EQ(wrong.size(), 3u);
    EXPECT_EQ(wrong.back().substr(0, 4), "0201");
    EXPECT_EQ(chap_login(kStranger, target, "a wrong secret.."), wrong);
    EXPECT_EQ(chap_login(kStranger, target, kSecret), wrong) << "no secret fits";
    EXPECT_EQ(chap_login(kStranger, target, ""), wrong);
    for (const uint8_t flags : {kOperationalToFull, kSecurityToFull}) {
      EXPECT_EQ(plain_login(flags, kStranger, target), plain_login(flags, kChapHost, target));
    }
  }
}

TEST_F(Disclosure, TheLoggedReasonStatesTheCauseWithheldFromTheInitiator) {
  chap_login(kStranger, "", "a wrong secret..");
  EXPECT_NE(dialogue_.login().reason().find("is no host of any target"), std::string::npos);
  chap_login(kStranger, kUnknown, "a wrong secret..");
  EXPECT_NE(dialogue_.login().reason().find("there is no target"), std::string::npos);
}

TEST_F(Disclosure, AForbiddenTargetIsAnsweredAsUnknownBeforeAndAfterTheProof) {
  for (const std::string_view secret : {std::string_view("a wrong secret.."), kSecret}) {
    const auto unknown = chap_login(kChapHost, kUnknown, secret);
    EXPECT_EQ(chap_login(kChapHost, kForbidden, secret), unknown);
    EXPECT_EQ(unknown.back().substr(0, 4), secret == kSecret ? "0203" : "0201");
  }
  const auto wrong = chap_login(kChapHost, kGuarded, "a wrong secret..");
  EXPECT_EQ(chap_login(kChapHost, kUnknown, "a wrong secret.."), wrong);
  for (const uint8_t flags : {kOperationalToFull, kSecurityToFull}) {
    const std::string unknown = plain_login(flags, kPlainHost, kUnknown);
    EXPECT_EQ(plain_login(flags, kPlainHost, kGuarded), unknown);
    EXPECT_EQ(unknown.substr(0, 4), "0203");
  }
}

TEST_F(Disclosure, ARedirectionIsDisclosedOnlyAfterTheProof) {
  chap_.redirect = true;
  chap_.portals = {"198.51.100.9:3260,31"};
  dialogue_.add_target(kGuarded, chap_);
  EXPECT_EQ(chap_login(kChapHost, kGuarded, "a wrong secret..").back().substr(0, 4), "0201");
  EXPECT_EQ(plain_login(kOperationalToFull, kChapHost, kGuarded).substr(0, 4), "0201");
  EXPECT_EQ(chap_login(kChapHost, kGuarded, kSecret).back(),
            "0101 flags 0 TargetAddress=198.51.100.9:3260");
}

TEST_F(Disclosure, ASessionLimitIsDisclosedOnlyAfterTheProof) {
  IdleReactors reactors;
  SessionDirectory sessions(reactors, {[](auto) {}, [](auto, auto) {}, [](auto) {}});
  sessions.claim({std::string(kChapHost), {0x40, 0, 0, 0, 0, 9}, std::string(kGuarded), 1}, {0, 1},
                 0);
  dialogue_.setup.sessions = &sessions;
  chap_.max_sessions = 1;
  dialogue_.add_target(kGuarded, chap_);
  EXPECT_EQ(chap_login(kChapHost, kGuarded, "a wrong secret..").back().substr(0, 4), "0201");
  EXPECT_EQ(plain_login(kOperationalToFull, kChapHost, kGuarded).substr(0, 4), "0201");
  EXPECT_EQ(chap_login(kChapHost, kGuarded, kSecret).back().substr(0, 4), "0302");
}

TEST_F(Disclosure, IfNoHostHasASecretAnUnknownInitiatorIsRefusedImmediately) {
  set_hosts({plain_});
  EXPECT_EQ(plain_login(kOperationalToFull, kStranger, "").substr(0, 4), "0202");
  EXPECT_EQ(plain_login(kOperationalToFull, kStranger, kForbidden).substr(0, 4), "0203");
  EXPECT_EQ(plain_login(kOperationalToFull, kStranger, kUnknown).substr(0, 4), "0203");
}

// The entries that a configuration file may have for one initiator.
TEST(HostDirectory, AnEntryWithChapPrecedesAnEntryWithoutChap) {
  lun::HostAccess plain;
  plain.initiators = {std::string(kChapHost), std::string(kPlainHost)};
  lun::HostAccess chap;
  chap.initiators = {std::string(kChapHost)};
  chap.chap = {"user", std::string(kSecret)};
  lun::HostDirectory hosts;
  hosts.add(plain);
  EXPECT_FALSE(hosts.asks_chap());
  EXPECT_EQ(hosts.find(kStranger), nullptr);
  hosts.add(chap);
  hosts.add(plain);
  EXPECT_TRUE(hosts.asks_chap());
  EXPECT_EQ(hosts.find(kChapHost)->chap.user, "user");
  EXPECT_FALSE(hosts.find(kPlainHost)->chap.configured());
  hosts.add({});
  ASSERT_NE(hosts.find(kStranger), nullptr) << "any initiator";
  EXPECT_FALSE(hosts.find(kStranger)->chap.configured());
}

}  // namespace
}  // namespace sluice::iscsi
