#include "control/host_access.h"

#include <gtest/gtest.h>

#include <functional>

namespace sluice::control {
namespace {

constexpr const char* kOne = "iqn.2026-11.test:one";
constexpr const char* kTwo = "iqn.2026-11.test:two";
constexpr const char* kSecret = "a secret of 16 b";
constexpr const char* kMutualSecret = "another secret..";

// A host as the control plane sends it: two initiators, each with a name, and mutual CHAP.
struct Sent {
  wire::DesiredHost host;
  wire::DesiredAccess access;

  Sent() {
    host.set_uid("5f0c7a3e-2222-4222-8333-444455556666");
    host.add_initiators(kOne);
    host.add_initiators(kTwo);
    host.add_chap_usernames("first");
    host.add_chap_usernames("second");
    host.mutable_chap()->set_username("first");
    host.mutable_chap()->set_password(kSecret);
    host.mutable_mutual_chap()->set_password(kMutualSecret);
    access.set_host_uid(host.uid());
    access.set_mutual_chap_username("iqn.2026-11.test:target");
  }
};

TEST(HostAccess, EachInitiatorAuthenticatesByItsOwnName) {
  const Sent sent;
  lun::Target target("iqn.2026-11.test:target", "", 1);
  Result<lun::HostAccess> entry = host_access(sent.host, sent.access);
  ASSERT_TRUE(entry) << entry.error();
  target.set_hosts({entry.value()});
  for (const auto& [initiator, name] : {std::pair{kOne, "first"}, {kTwo, "second"}}) {
    lun::HostAccess access;
    ASSERT_TRUE(target.access_for(initiator, &access));
    EXPECT_TRUE(access.chap.configured());
    EXPECT_EQ(access.chap.user, name);
    EXPECT_EQ(access.chap.secret, kSecret);
    EXPECT_EQ(access.mutual.user, "iqn.2026-11.test:target");
    EXPECT_EQ(access.mutual.secret, kMutualSecret);
  }
}

TEST(HostAccess, WithoutASessionLimitTheDocumentedDefaultApplies) {
  Sent sent;
  for (const auto& [given, effective] : {std::pair{0, 64U}, {-1, 64U}, {7, 7U}, {4096, 4096U}}) {
    sent.host.set_max_sessions(given);
    const Result<lun::HostAccess> entry = host_access(sent.host, sent.access);
    ASSERT_TRUE(entry) << entry.error();
    EXPECT_EQ(entry.value().max_sessions, effective) << given;
  }
}

TEST(HostAccess, ChapNamesOfAControlPlaneOfRelease880afa1ApplyToAllInitiators) {
  Sent sent;
  sent.host.clear_chap_usernames();
  sent.host.mutable_mutual_chap()->set_username("store");
  sent.access.clear_mutual_chap_username();
  Result<lun::HostAccess> entry = host_access(sent.host, sent.access);
  ASSERT_TRUE(entry) << entry.error();
  EXPECT_EQ(entry.value().chap.user, "first");
  EXPECT_EQ(entry.value().mutual.user, "store");
}

TEST(HostAccess, AHostWithoutCredentialsNeedsNoAuthentication) {
  Sent sent;
  sent.host.clear_chap();
  sent.host.clear_chap_usernames();
  sent.host.clear_mutual_chap();
  Result<lun::HostAccess> entry = host_access(sent.host, sent.access);
  ASSERT_TRUE(entry) << entry.error();
  EXPECT_FALSE(entry.value().chap.configured());
  EXPECT_FALSE(entry.value().mutual.configured());
}

TEST(HostAccess, AnIncompleteHostIsRefusedWithTheReason) {
  struct Case {
    const char* reason;
    std::function<void(Sent&)> change;
  };
  const std::vector<Case> cases = {
      {"no initiators", [](Sent& s) { s.host.clear_initiators(); }},
      {"CHAP name has 0 bytes",  // the control plane of release 880afa1, user name not given
       [](Sent& s) {
         s.host.clear_chap_usernames();
         s.host.mutable_chap()->clear_username();
       }},
      {"CHAP name has 0 bytes", [](Sent& s) { s.host.set_chap_usernames(1, ""); }},
      {"CHAP name has 256 bytes",
       [](Sent& s) { s.host.set_chap_usernames(0, std::string(256, 'n')); }},
      {"2 initiators and 1 CHAP names",
       [](Sent& s) { s.host.mutable_chap_usernames()->RemoveLast(); }},
      {"CHAP secret has 0 bytes", [](Sent& s) { s.host.mutable_chap()->clear_password(); }},
      {"CHAP secret has 11 bytes",
       [](Sent& s) { s.host.mutable_chap()->set_password("elevenbytes"); }},
      {"CHAP names and no CHAP secret", [](Sent& s) { s.host.clear_chap(); }},
      {"mutual CHAP needs CHAP",
       [](Sent& s) {
         s.host.clear_chap();
         s.host.clear_chap_usernames();
       }},
      {"mutual CHAP name has 0 bytes", [](Sent& s) { s.access.clear_mutual_chap_username(); }},
      {"mutual CHAP secret has 0 bytes",
       [](Sent& s) { s.host.mutable_mutual_chap()->clear_password(); }},
  };
  for (const Case& c : cases) {
    Sent sent;
    c.change(sent);
    const Result<lun::HostAccess> entry = host_access(sent.host, sent.access);
    ASSERT_FALSE(entry) << c.reason;
    EXPECT_NE(entry.error().find(c.reason), std::string::npos) << entry.error();
  }
}

}  // namespace
}  // namespace sluice::control
