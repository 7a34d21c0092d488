#include "control/record.h"

#include <gtest/gtest.h>

#include "control/test_objects.h"

namespace sluice::control {
namespace {

Record some_record() {
  Record record;
  record.volume = kVolumeUid;
  record.epoch = 7;
  record.order = 12;
  record.generation = 3;
  record.holder = this_process("incarnation-1", "a.sock");
  record.reservations.generation = 9;
  lun::Registration registration;
  registration.key = 0x1234;
  registration.nexus.initiator_name = "iqn.2026-11.test:host";
  record.reservations.registrations.push_back(registration);
  return record;
}

TEST(Record, ComesBackAsItWasWritten) {
  const Record record = some_record();
  EXPECT_GT(record.holder.start_time, 0u);
  EXPECT_FALSE(record.holder.boot_id.empty());
  const Result<Record> again = parse_record(format_record(record), kVolumeUid, "r");
  ASSERT_TRUE(again) << again.error();
  EXPECT_EQ(again.value(), record);
}

TEST(Record, DamageIsAnErrorAndNeverAnEmptyRecord) {
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

class RecordFileTest : public testing::Test {
 protected:
  TestDirectory place_;
  FileDescriptor directory_ = std::move(open_directory(place_.path())).value();
  RecordFile file_{directory_.get(), kVolumeUid, "r"};
};

TEST_F(RecordFileTest, NoneIsNotAnErrorAndAClaimIsRead) {
  ASSERT_TRUE(file_.read());
  EXPECT_FALSE(file_.read().value());
  ASSERT_TRUE(file_.claim(some_record(), Outlasts::kPowerCut));
  EXPECT_EQ(file_.read().value(), some_record());
}

TEST_F(RecordFileTest, AnOlderEpochNeverReplacesANewerOne) {
  ASSERT_TRUE(file_.claim(some_record(), Outlasts::kPowerCut));
  Record older = some_record();
  older.epoch = 6;
  EXPECT_FALSE(file_.claim(older, Outlasts::kPowerCut));
  EXPECT_EQ(file_.read().value()->epoch, 7u);
}

TEST_F(RecordFileTest, AWriterThatWasHeldUpChangesNothingOfItsSuccessors) {
  ASSERT_TRUE(file_.claim(some_record(), Outlasts::kPowerCut));
  Record late = some_record();
  late.reservations = {};
  Record successor = some_record();
  successor.holder.incarnation = "incarnation-2";
  ASSERT_TRUE(file_.claim(successor, Outlasts::kPowerCut));
  EXPECT_FALSE(file_.update(late));
  EXPECT_EQ(file_.read().value(), successor);
  EXPECT_TRUE(file_.update(successor));
}

}  // namespace
}  // namespace sluice::control
