#include "load/histogram.h"

#include <gtest/gtest.h>

namespace sluice::bench {
namespace {

TEST(Histogram, PercentilesAreWithinOneBucket) {
  Histogram h;
  for (uint64_t v = 1; v <= 100000; ++v) h.record(v);
  EXPECT_NEAR(h.percentile(0.5), 50000, 500);
  EXPECT_NEAR(h.percentile(0.99), 99000, 1000);
  EXPECT_NEAR(h.percentile(0.999), 99900, 1000);
  EXPECT_EQ(h.max(), 100000u);
  EXPECT_DOUBLE_EQ(h.mean(), 50000.5);
}

TEST(Histogram, SmallValuesAreExact) {
  Histogram h;
  for (int i = 0; i < 99; ++i) h.record(10);
  h.record(100);
  EXPECT_EQ(h.percentile(0.5), 10);
  EXPECT_EQ(h.percentile(0.99), 10);
  EXPECT_EQ(h.percentile(1.0), 100);
}

TEST(Histogram, AnEmptyOneAndTheLargestValueAreHarmless) {
  Histogram h;
  EXPECT_EQ(h.percentile(0.5), 0);
  h.record(~uint64_t{0});
  EXPECT_NEAR(h.percentile(0.5) / 18446744073709551615.0, 1.0, 0.01);
}

}  // namespace
}  // namespace sluice::bench
