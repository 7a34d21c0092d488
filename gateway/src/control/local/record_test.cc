#include "control/local/record.h"

#include <gtest/gtest.h>

#include "control/local/test_record.h"

namespace sluice::control {
namespace {

TEST(Record, IsParsedAsItWasFormatted) {
  const Record record = some_record();
  EXPECT_GT(record.holder.start_time, 0u);
  EXPECT_FALSE(record.holder.boot_id.empty());
  const Result<Record> again = parse_record(format_record(record), kVolumeUid, "r");
  ASSERT_TRUE(again) << again.error();
  EXPECT_EQ(again.value(), record);
}

TEST(Record, DamageOrTruncationIsAnError) {
  const std::string text = format_record(some_record());
  for (size_t size = 0; size < text.size(); ++size) {
    EXPECT_FALSE(parse_record(text.substr(0, size), kVolumeUid, "r")) << size;
  }
  for (size_t bit = 0; bit < text.size() * 8; ++bit) {
    std::string flipped = text;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ 1 << bit % 8);
    EXPECT_FALSE(parse_record(flipped, kVolumeUid, "r")) << bit;
  }
  EXPECT_FALSE(parse_record(text, "00000000-0000-4000-8000-000000000000", "r"));
}

}  // namespace
}  // namespace sluice::control
