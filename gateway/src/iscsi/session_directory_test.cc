#include "iscsi/session_directory.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "unit/test_reactors.h"

namespace sluice::iscsi {
namespace {

class Directory : public testing::Test {
 protected:
  void run() { reactors_.run(); }

  lun::TestReactors reactors_{2};
  std::vector<ConnectionHandle> ended_;
  std::vector<std::pair<ConnectionHandle, uint16_t>> granted_;
  std::vector<ConnectionHandle> reviewed_;
  SessionDirectory directory_{
      reactors_,
      {[this](ConnectionHandle h) { ended_.push_back(h); },
       [this](ConnectionHandle h, uint16_t tsih) { granted_.emplace_back(h, tsih); },
       [this](ConnectionHandle h) { reviewed_.push_back(h); }}};
  const SessionKey key_{"iqn.host", {1, 2, 3, 4, 5, 6}, "iqn.target", 1};
  const ConnectionHandle a_{0, 1};
  const ConnectionHandle b_{1, 2};
  const ConnectionHandle c_{0, 3};
};

TEST_F(Directory, GrantsAFreeNexusImmediately) {
  directory_.claim(key_, a_, 0);
  run();
  ASSERT_EQ(granted_.size(), 1u);
  EXPECT_EQ(granted_[0].first, a_);
  EXPECT_NE(granted_[0].second, 0);
  EXPECT_TRUE(directory_.matches(key_, granted_[0].second));
}

TEST_F(Directory, GrantsAHeldNexusOnlyAfterItsHolderReleasesIt) {
  directory_.claim(key_, a_, 0);
  directory_.claim(key_, b_, 0);
  run();
  EXPECT_EQ(granted_.size(), 1u);
  ASSERT_EQ(ended_, std::vector{a_});
  directory_.release(key_, a_);
  run();
  ASSERT_EQ(granted_.size(), 2u);
  EXPECT_EQ(granted_[1].first, b_);
}

TEST_F(Directory, ServesWaitingClaimsInOrderAndEndsEachHolderForTheNext) {
  directory_.claim(key_, a_, 0);
  directory_.claim(key_, b_, 0);
  directory_.claim(key_, c_, 0);
  run();
  directory_.release(key_, a_);
  run();
  EXPECT_EQ(granted_.back().first, b_);
  EXPECT_EQ(ended_, (std::vector{a_, b_}));
  directory_.release(key_, b_);
  run();
  EXPECT_EQ(granted_.back().first, c_);
}

TEST_F(Directory, DropsAClaimThatIsReleasedWhileItWaits) {
  directory_.claim(key_, a_, 0);
  directory_.claim(key_, b_, 0);
  directory_.release(key_, b_);
  directory_.release(key_, a_);
  run();
  ASSERT_EQ(granted_.size(), 1u);
  EXPECT_EQ(granted_[0].first, a_);
  EXPECT_FALSE(directory_.matches(key_, granted_[0].second));
}

TEST_F(Directory, RetainsTheTsihOfAReinstatedConnection) {
  directory_.claim(key_, a_, 0);
  run();
  const uint16_t tsih = granted_[0].second;
  directory_.claim(key_, b_, tsih);
  directory_.release(key_, a_);
  run();
  EXPECT_EQ(granted_[1].second, tsih);
}

TEST_F(Directory, AssignsEachSessionAUniqueNonzeroTsih) {
  std::set<uint16_t> seen;
  for (uint64_t i = 0; i < 200; ++i) {
    SessionKey key = key_;
    key.isid[5] = static_cast<uint8_t>(i);
    directory_.claim(key, {0, i}, 0);
  }
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(seen.insert(directory_.take_tsih()).second);
  run();
  for (const auto& [who, tsih] : granted_) EXPECT_TRUE(seen.insert(tsih).second);
  EXPECT_EQ(seen.count(0), 0u);
}

TEST_F(Directory, EndsEverySessionOfATarget) {
  SessionKey other = key_;
  other.target = "iqn.other";
  directory_.claim(key_, a_, 0);
  directory_.claim(other, b_, 0);
  run();
  directory_.end_all("iqn.target");
  run();
  EXPECT_EQ(ended_, std::vector{a_});
}

TEST_F(Directory, ReviewsEverySessionOfATargetAndNoWaitingClaim) {
  SessionKey other = key_;
  other.target = "iqn.other";
  directory_.claim(key_, a_, 0);
  directory_.claim(other, b_, 0);
  directory_.claim(key_, c_, 0);
  run();
  directory_.review_all("iqn.target");
  run();
  EXPECT_EQ(reviewed_, std::vector{a_});
}

}  // namespace
}  // namespace sluice::iscsi
