// The parts of the protocol between gateways (forwarding_wire.h, ping_tokens.h).
#include <gtest/gtest.h>

#include "base/limits.h"
#include "iscsi/forwarding_wire.h"
#include "iscsi/login/forwarding_access.h"
#include "iscsi/login/login_dialogue.h"
#include "iscsi/ping_tokens.h"

namespace sluice::iscsi {
namespace {

Origin some_origin() {
  return {.gateway = 7,
          .incarnation = "3f2a",
          .tpgt = 12,
          .relative_port = 900,
          .nexus = uint64_t{1} << 40,
          .read_only = true,
          .owner = 65535,
          .owner_incarnation = "9c"};
}

TEST(ForwardingWire, AnOriginIsParsedAsItWasWritten) {
  const Result<Origin> read = parse_origin(origin_text(some_origin()));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read.value(), some_origin());
}

TEST(ForwardingWire, MalformedOriginsAreRefused) {
  for (const char* text :
       {"", "1", "1,1,a,1,1,1,rw,2", "1,1,a,1,1,1,rw,2,b,c", "1,0,a,1,1,1,rw,2,b",
        "1,65536,a,1,1,1,rw,2,b", "1,1,,1,1,1,rw,2,b", "1,1,a,1,0,1,rw,2,b", "1,1,a,1,1,1,wr,2,b",
        "1,1,a,1,1,1,rw,0,b", "1,1,a,1,1,-1,rw,2,b", "x,1,a,1,1,1,rw,2,b"}) {
    EXPECT_FALSE(parse_origin(text).ok()) << text;
  }
  const std::string long_name(kMaxIncarnation + 1, 'a');
  EXPECT_FALSE(parse_origin("1,1," + long_name + ",1,1,1,rw,2,b").ok());
}

TEST(ForwardingWire, TheErrorForAnUnsupportedVersionNamesIt) {
  const Result<Origin> read = parse_origin("2,whatever,is,in,there");
  ASSERT_FALSE(read.ok());
  EXPECT_NE(read.error().find("version 2"), std::string::npos);
}

TEST(ForwardingWire, AHostAgeIsRoundedUpToMillisecondsAndClamped) {
  for (const Nanos age : {Nanos{0}, kMillisecond, 3 * kSecond, kMaxHostAge}) {
    EXPECT_EQ(parse_host_age(host_age_text(age)).value(), age);
  }
  EXPECT_EQ(parse_host_age(host_age_text(1)).value(), kMillisecond);
  EXPECT_EQ(parse_host_age(host_age_text(-kSecond)).value(), 0);
  EXPECT_EQ(parse_host_age(host_age_text(INT64_MAX)).value(), kMaxHostAge);
  EXPECT_EQ(parse_host_age("18446744073709551615").value(), kMaxHostAge);
  for (const char* text : {"", "-1", "1s", "18446744073709551616"}) {
    EXPECT_FALSE(parse_host_age(text).ok()) << text;
  }
}

TEST(ForwardingWire, TheAdditionalHeaderHasOneFormOnly) {
  std::array<uint8_t, kForwardedAhsSize> ahs;
  store_forwarded({0x1122334455667788, 42}, ahs.data());
  Forwarded read;
  ASSERT_TRUE(load_forwarded(ahs, load_be16(ahs.data()), &read));
  EXPECT_EQ(read.token, 0x1122334455667788u);
  EXPECT_EQ(read.epoch, 42u);
  EXPECT_FALSE(load_forwarded(ahs, 16, &read));
  EXPECT_FALSE(load_forwarded(ByteView(ahs).first(16), 17, &read));
  store_forwarded({1, 0}, ahs.data());
  EXPECT_FALSE(load_forwarded(ahs, 17, &read)) << "a command without an epoch isn't forwarded";
}

TEST(PingTokens, ATokensLifetimeBeginsWhenItIsSent) {
  PingTokens tokens;
  tokens.issue(11, 100 * kSecond);
  tokens.issue(12, 101 * kSecond);
  EXPECT_EQ(tokens.fresh_until(11), 100 * kSecond + limits::kTokenLife);
  EXPECT_EQ(tokens.fresh_until(12), 101 * kSecond + limits::kTokenLife);
  EXPECT_EQ(tokens.fresh_until(13), 1) << "never sent";
  EXPECT_EQ(tokens.fresh_until(0), 1);
}

TEST(PingTokens, AllTokensWithinTheirLifetimeAreKnown) {
  PingTokens tokens;
  const auto alive = static_cast<uint64_t>(limits::kTokenLife / limits::kTokenInterval);
  for (uint64_t i = 1; i <= 100; ++i) {
    tokens.issue(i, static_cast<Nanos>(i) * limits::kTokenInterval);
  }
  for (uint64_t i = 100 - alive; i <= 100; ++i) EXPECT_NE(tokens.fresh_until(i), 1) << i;
  EXPECT_EQ(tokens.fresh_until(1), 1);
}

TEST(ForwardingAccess, EachDirectionHasItsOwnSecret) {
  ForwardingAccess access;
  access.set_peers({{7, "a", {{"new", "0123456789abcdef"}, {"old", "fedcba9876543210"}}, {}}});
  const std::vector<ChapPair> pairs = access.credentials_of(7, "a");
  ASSERT_EQ(pairs.size(), 2u);
  EXPECT_EQ(pairs[0].expected.user, "new");
  EXPECT_NE(pairs[0].expected.secret, pairs[0].mutual.secret);
  EXPECT_NE(pairs[0].expected.secret, "0123456789abcdef");
  access.set_keys(std::vector<ForwardingKey>(limits::kMaxForwardingKeys + 1, {"k", "s"}));
  EXPECT_EQ(access.credentials_of(7, "a").size(), 2u + limits::kMaxForwardingKeys);
}

TEST(ForwardingAccess, AKeyIsValidForOnePeerIncarnationAndDirection) {
  ForwardingAccess access;
  access.set_peers({{7, "a", {{"of-7", "0123456789abcdef"}}, {{"to-7", "fedcba9876543210"}}},
                    {8, "b", {{"of-8", "0123456789abcdee"}}, {}}});
  EXPECT_EQ(access.credentials_of(7, "a").at(0).expected.user, "of-7");
  EXPECT_EQ(access.credentials_of(7, "a").size(), 1u);
  EXPECT_EQ(access.credentials_for(7, "a").at(0).expected.user, "to-7");
  EXPECT_TRUE(access.credentials_of(7, "b").empty()) << "another incarnation";
  EXPECT_TRUE(access.credentials_of(9, "a").empty()) << "no peer";
  EXPECT_FALSE(access.knows(9, "a"));
  EXPECT_TRUE(access.replaced(7, "b"));
  access.set_peers({{8, "b", {}, {}}});
  EXPECT_EQ(access.take_revoked(), std::vector<uint16_t>{7});
  EXPECT_TRUE(access.take_revoked().empty());
  EXPECT_FALSE(access.knows(7, "a"));
}

TEST(ForwardingAccess, AFencedIncarnationStaysFenced) {
  ForwardingAccess access;
  EXPECT_TRUE(access.fence(3, "a"));
  EXPECT_FALSE(access.fence(3, "a"));
  EXPECT_TRUE(access.fenced(3, "a"));
  EXPECT_FALSE(access.fenced(3, "b"));
  EXPECT_FALSE(access.fenced(4, "a"));
}

class ForwardingLogin : public testing::Test, public LoginDialogue {
 protected:
  void SetUp() override {
    access_.set_identity({65535, "9c"});
    access_.set_peers(
        {{some_origin().gateway, some_origin().incarnation, {{"k", "a key of sixteen"}}, {}}});
    setup.forwarding = &access_;
  }
  Keys first(const std::string& method) {
    Keys keys = {std::string(kOriginKey) + "=" + origin_text(some_origin()),
                 "AuthMethod=" + method};
    if (!age_.empty()) keys.push_back(std::string(kHostAgeKey) + "=" + age_);
    return names(kPrivateTarget, keys);
  }
  // Up to the proof; `mutual`: keys that ask for the target's.
  Reply prove(const Keys& mutual) {
    send(kSecurityStays, first("CHAP"));
    send(kSecurityStays, {"CHAP_A=7"});
    const ChapPair pair = access_.credentials_of(7, some_origin().incarnation).at(0);
    std::vector<uint8_t> challenge(32);
    setup.random(challenge.data(), challenge.size());
    const std::vector<uint8_t> proof =
        chap_response(ChapAlgorithm::kSha256, 0xa0, pair.expected.secret, challenge);
    Keys keys = {"CHAP_N=k", "CHAP_R=" + binary_text(proof)};
    keys.insert(keys.end(), mutual.begin(), mutual.end());
    return send(kSecurityToOperational, keys);
  }
  ForwardingAccess access_;
  std::string age_;  // as the forwarder says it
};

TEST_F(ForwardingLogin, ADeclaredHostAgeIsAcceptedAndAMalformedOneIsRefused) {
  const Keys proof = {"CHAP_I=1", "CHAP_C=0x00112233445566778899aabbccddeeff"};
  for (const auto& [said, age] : {std::pair("", Nanos{0}), std::pair("1500", 3 * kSecond / 2)}) {
    again();
    age_ = said;
    const Reply asked = send(kSecurityStays, first("CHAP"));
    EXPECT_EQ(asked.answer.text.find(kHostAgeKey), std::string::npos) << "declared, not negotiated";
    again();
    EXPECT_EQ(prove(proof).status(), 0);
    EXPECT_EQ(send(kOperationalToFull, {}).outcome, Login::Outcome::kSucceeded);
    EXPECT_EQ(login().parameters().host_age, age);
  }
  again();
  age_ = "a while";
  EXPECT_EQ(send(kSecurityStays, first("CHAP")).status(), 0x0200);
}

// An older gateway that is the owner knows no key of a newer forwarder's.
TEST_F(ForwardingLogin, KeysOfALaterReleaseAreNotUnderstoodAndDoNotEndTheLogin) {
  Keys keys = first("CHAP");
  keys.push_back("X-dev.sluice.Later=1");
  const Reply reply = send(kSecurityStays, keys);
  EXPECT_EQ(reply.status(), 0);
  EXPECT_NE(reply.answer.text.find("X-dev.sluice.Later=NotUnderstood"), std::string::npos);
  EXPECT_NE(reply.answer.text.find("AuthMethod=CHAP"), std::string::npos);
}

TEST_F(ForwardingLogin, AProvenOriginSetsTheParametersOfTheForwardedSession) {
  const Reply reply = prove({"CHAP_I=1", "CHAP_C=0x00112233445566778899aabbccddeeff"});
  EXPECT_EQ(reply.status(), 0);
  EXPECT_EQ(send(kOperationalToFull, {}).outcome, Login::Outcome::kSucceeded);
  EXPECT_EQ(login().origin(), some_origin());
  EXPECT_EQ(login().parameters().tpgt, 12);
  EXPECT_EQ(login().parameters().forwarded_by, 7);
  EXPECT_TRUE(login().parameters().read_only);
}

TEST_F(ForwardingLogin, AForwarderMustRequestMutualChap) { EXPECT_EQ(prove({}).status(), 0x0201); }

TEST_F(ForwardingLogin, OnlySha256IsAccepted) {
  send(kSecurityStays, first("CHAP"));
  EXPECT_EQ(send(kSecurityStays, {"CHAP_A=5,6,8"}).status(), 0x0201);
}

TEST_F(ForwardingLogin, AForwarderWithoutAProofIsRefused) {
  EXPECT_EQ(send(kSecurityStays, first("None")).status(), 0x0201);
  again();
  const std::string origin = std::string(kOriginKey) + "=" + origin_text(some_origin());
  EXPECT_EQ(send(kOperationalToFull, names(kOpenTarget, {origin})).status(), 0x0201);
  again();
  EXPECT_EQ(send(kSecurityStays, names(kOpenTarget)).status(), 0x0207);
  again();
  access_.set_peers({});
  EXPECT_EQ(send(kSecurityStays, first("CHAP")).status(), 0x0201) << "no peer";
  access_.set_keys({{"k", "a key of sixteen"}});
  again();
  EXPECT_EQ(send(kSecurityStays, first("CHAP")).status(), 0x0201) << "no peer, with a shared key";
  again();
  access_.set_identity({});
  EXPECT_EQ(send(kSecurityStays, first("CHAP")).status(), 0x0204);
}

TEST_F(ForwardingLogin, APortalForHostsRefusesTheOriginKey) {
  setup.forwarding = nullptr;
  EXPECT_EQ(send(kSecurityStays, first("None")).status(), 0x0200);
}

}  // namespace
}  // namespace sluice::iscsi
