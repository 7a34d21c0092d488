#include "iscsi/nexus_claim.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "unit/test_reactors.h"

namespace sluice::iscsi {
namespace {

// Two connections and the directory of their gateway.
class NexusClaims : public testing::Test {
 protected:
  // Claims the nexus as a new session, and returns the TSIH that the directory grants.
  uint16_t tsih_of(NexusClaim& claim, uint16_t cid) {
    claim.take({.key = key_, .tsih = 0, .cid = cid});
    reactors_.run();
    return granted_.empty() ? 0 : granted_.back().second;
  }

  lun::TestReactors reactors_{1};
  std::vector<std::pair<ConnectionHandle, uint16_t>> granted_;
  SessionDirectory directory_{
      reactors_,
      {.end = [](ConnectionHandle) {},
       .granted = [this](ConnectionHandle h, uint16_t tsih) { granted_.emplace_back(h, tsih); }}};
  const SessionKey key_{"iqn.host", {1, 2, 3, 4, 5, 6}, "iqn.target", 1};
  NexusClaim first_{&directory_, {0, 1}};
  NexusClaim second_{&directory_, {0, 2}};
};

TEST_F(NexusClaims, ANewSessionMayAlwaysClaim) {
  EXPECT_FALSE(second_.refusal({.key = key_}));
  ASSERT_NE(tsih_of(first_, 7), 0);
  EXPECT_FALSE(second_.refusal({.key = key_}));
}

TEST_F(NexusClaims, AConnectionReinstatementNeedsTheTsihOfItsSession) {
  const uint16_t tsih = tsih_of(first_, 7);
  const uint16_t wrong = tsih + 1;
  const auto refusal = second_.refusal({.key = key_, .tsih = wrong, .cid = 7});
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->status, LoginStatus::kSessionDoesNotExist);
  EXPECT_FALSE(second_.refusal({.key = key_, .tsih = tsih, .cid = 7}));
}

TEST_F(NexusClaims, ASecondConnectionOfASessionIsRefused) {
  const uint16_t tsih = tsih_of(first_, 7);
  const auto refusal = second_.refusal({.key = key_, .tsih = tsih, .cid = 8});
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->status, LoginStatus::kTooManyConnections);
}

TEST_F(NexusClaims, AForwardedNexusOlderThanTheLatestIsRefused) {
  SessionKey forwarded = key_;
  forwarded.gateway = 2;
  first_.take({.key = forwarded, .nexus = {"process", 5}});
  reactors_.run();
  const auto refusal = second_.refusal({.key = forwarded, .nexus = {"process", 4}});
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->status, LoginStatus::kSessionDoesNotExist);
  EXPECT_FALSE(second_.refusal({.key = forwarded, .nexus = {"process", 6}}));
}

TEST_F(NexusClaims, ReleasingTwiceKeepsTheNextHolder) {
  ASSERT_NE(tsih_of(first_, 7), 0);
  second_.take({.key = key_});
  first_.release();
  reactors_.run();
  ASSERT_EQ(granted_.size(), 2u);
  first_.release();
  EXPECT_TRUE(directory_.matches(key_, granted_.back().second));
}

}  // namespace
}  // namespace sluice::iscsi
