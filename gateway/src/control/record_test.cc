#include "control/record.h"

#include <gtest/gtest.h>
#include <unistd.h>

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

  // Empty: there is none.
  std::string content(const std::string& end) {
    return read_small_file(directory_.get(), kVolumeUid + end, 1 << 20, "r").value().value_or("");
  }
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

// A process that has the lock, and nothing else new.
Record held_anew() {
  Record record = some_record();
  record.order = 13;
  record.holder = this_process("incarnation-2", "b.sock");
  return record;
}

TEST_F(RecordFileTest, WhoHasTheLockIsReadBeforeTheRecordIsWrittenAnew) {
  ASSERT_TRUE(file_.claim(some_record(), Outlasts::kPowerCut));
  const std::string before = content(".volume");
  ASSERT_TRUE(file_.claim(held_anew(), Outlasts::kProcess));
  EXPECT_EQ(content(".volume"), before);
  EXPECT_EQ(file_.read().value(), held_anew());
  EXPECT_FALSE(file_.update(some_record())) << "it is another gateway's by now";
  Record served = held_anew();
  served.epoch = 8;
  ASSERT_TRUE(file_.claim(served, Outlasts::kPowerCut));
  EXPECT_EQ(file_.read().value(), served);
  EXPECT_EQ(content(".holder"), "");
}

// What else is new has to be there after a power cut as well.
TEST_F(RecordFileTest, AClaimThatChangesMoreThanTheHolderIsARecord) {
  ASSERT_TRUE(file_.claim(some_record(), Outlasts::kProcess)) << "the first";
  EXPECT_EQ(content(".holder"), "");
  for (const bool epoch : {true, false}) {
    Record next = held_anew();
    next.epoch += epoch ? 1 : 0;
    if (!epoch) next.reservations = {};
    ASSERT_TRUE(file_.claim(some_record(), Outlasts::kPowerCut));
    ASSERT_TRUE(file_.claim(next, Outlasts::kProcess));
    EXPECT_EQ(content(".holder"), "");
    EXPECT_EQ(file_.read().value(), next);
    ASSERT_EQ(::unlink((place_.path() + '/' + kVolumeUid + ".volume").c_str()), 0);
  }
}

TEST_F(RecordFileTest, ANoteThatIsDamagedOvertakenOrOfAnotherBootIsAsNone) {
  Record of_another_boot = held_anew();
  of_another_boot.holder.boot_id = "00000000-0000-4000-8000-000000000000";
  Record overtaken = held_anew();
  overtaken.order = some_record().order - 1;
  Record of_another_epoch = held_anew();
  of_another_epoch.epoch -= 1;
  const std::string whole = format_record(held_anew());
  ASSERT_TRUE(file_.claim(some_record(), Outlasts::kPowerCut));
  for (const std::string& text :
       {std::string(), whole.substr(0, whole.size() / 2), format_record(of_another_boot),
        format_record(overtaken), format_record(of_another_epoch)}) {
    ASSERT_TRUE(replace_file(directory_.get(), std::string(kVolumeUid) + ".holder", text, "r"));
    ASSERT_TRUE(file_.read()) << text;
    EXPECT_EQ(file_.read().value(), some_record()) << text;
  }
  ASSERT_TRUE(replace_file(directory_.get(), std::string(kVolumeUid) + ".holder", whole, "r"));
  EXPECT_EQ(file_.read().value(), held_anew());
}

}  // namespace
}  // namespace sluice::control
