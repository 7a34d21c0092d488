#include "unit/request_ages.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace sluice::lun {
namespace {

constexpr Nanos kStart = 100 * kSecond;

class RequestAgesTest : public testing::Test {
 protected:
  void SetUp() override { EXPECT_FALSE(poll(0)); }
  bool poll(Nanos after) {
    now_ += after;
    return ages_.poll(in_progress_, now_);
  }
  uint8_t begin() {
    ++in_progress_[ages_.current()];
    return ages_.current();
  }
  void end(uint8_t period) { --in_progress_[period]; }

  RequestAges ages_;
  Nanos now_ = kStart;
  std::array<uint64_t, RequestAges::kPeriods> in_progress_{};
};

TEST_F(RequestAgesTest, ARequestIsFoundAfterItsLimitAmongOthersThatComplete) {
  const uint8_t hung = begin();
  const Nanos begun = now_;
  while (!poll(kSecond / 4)) {
    ASSERT_LE(now_ - begun, limits::kRequestHung + RequestAges::kPeriod);
    end(begin());
  }
  EXPECT_GE(now_ - begun, limits::kRequestHung);
  EXPECT_TRUE(poll(60 * kSecond));
  end(hung);
  EXPECT_FALSE(poll(0));
}

TEST_F(RequestAgesTest, RequestsThatCompleteWithinTheLimitAreNotFound) {
  uint8_t before = begin();
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(poll(limits::kRequestHung / 2)) << i;
    const uint8_t next = begin();
    end(before);
    before = next;
  }
}

TEST_F(RequestAgesTest, ManyHungRequestsOfDifferentAgesAreFoundUntilTheLastCompletes) {
  std::vector<uint8_t> hung;
  for (unsigned i = 0; i < 2 * RequestAges::kPeriods; ++i) {
    hung.push_back(begin());
    poll(RequestAges::kPeriod);
  }
  for (const uint8_t period : hung) {
    EXPECT_TRUE(poll(limits::kRequestHung));
    end(period);
  }
  EXPECT_FALSE(poll(0));
  EXPECT_FALSE(poll(limits::kRequestHung));
}

}  // namespace
}  // namespace sluice::lun
