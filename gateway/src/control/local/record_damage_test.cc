// Damage to the record of a volume: it stays serviceable, and nothing is guessed.
#include <gtest/gtest.h>
#include <unistd.h>

#include "control/local/record_file.h"
#include "control/local/test_record.h"

namespace sluice::control {
namespace {

class RecordDamageTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(file_.claim(some_record(), Outlasts::kPowerCut)); }

  std::string content(const std::string& end) {
    return read_small_file(directory_.get(), kVolumeUid + end, 1 << 20, "r").value().value_or("");
  }
  void put(const std::string& end, const std::string& text) {
    ASSERT_TRUE(
        replace_file(directory_.get(), kVolumeUid + end, text, "r", nullptr, Outlasts::kProcess));
  }
  void damage(const std::string& end, size_t byte) {
    std::string text = content(end);
    text[byte] = static_cast<char>(text[byte] ^ 0x10);
    put(end, text);
  }
  static Record next() {
    Record record = some_record();
    record.epoch = 8;
    record.order = 20;
    record.holder.incarnation = "incarnation-2";
    return record;
  }

  TestDirectory test_directory_;
  FileDescriptor directory_ = std::move(open_directory(test_directory_.path())).value();
  RecordFile file_{directory_.get(), kVolumeUid, "r"};
};

TEST_F(RecordDamageTest, ARecordIsReadDespiteADamagedByteInAnyOfItsFiles) {
  Record changed = some_record();
  changed.generation += 1;
  ASSERT_TRUE(file_.update(changed)) << "the slots have a record";
  for (const std::string end : {".volume", ".copy", ".holder", ".slots"}) {
    const std::string whole = content(end);
    for (size_t i = 0; i < whole.size(); ++i) {
      // Of each block's padding a few bytes stand for all. In a slot it is not read.
      if (whole[i] == '\0' && (i % 1024 != 1023 || end == ".slots")) continue;
      damage(end, i);
      const Result<std::optional<Record>> found = file_.read();
      ASSERT_TRUE(found) << end << " byte " << i << ": " << found.error();
      ASSERT_EQ(found.value()->epoch, 7u) << end << " byte " << i;
      ASSERT_EQ(found.value()->holder, some_record().holder) << end << " byte " << i;
      ASSERT_EQ(found.value()->reservations, some_record().reservations) << end << " byte " << i;
      const bool known = end != ".volume" && end != ".slots";
      ASSERT_EQ(found.value()->reservations_known, known) << end << " byte " << i;
      put(end, whole);
    }
  }
}

class DamagedFileTest : public RecordDamageTest, public testing::WithParamInterface<const char*> {};

TEST_P(DamagedFileTest, TheNextOwnerWritesBothFilesAgain) {
  damage(GetParam(), 40);
  Record locked = *file_.read().value();
  locked.order = next().order;
  locked.holder = next().holder;
  ASSERT_TRUE(file_.claim(locked, Outlasts::kProcess)) << "it has the lock";
  EXPECT_EQ(file_.read().value()->holder, next().holder);
  ASSERT_TRUE(file_.claim(next(), Outlasts::kPowerCut)) << "it has the store's reservations";
  EXPECT_EQ(content(".volume"), format_record(next()));
  EXPECT_EQ(content(".copy"), format_record(next()));
  EXPECT_EQ(file_.read().value(), next());
}

INSTANTIATE_TEST_SUITE_P(RecordDamage, DamagedFileTest, testing::Values(".volume", ".copy"));

TEST_F(RecordDamageTest, WithBothFilesDamagedTheClaimsYieldTheServedEpoch) {
  ASSERT_TRUE(file_.claim(next(), Outlasts::kPowerCut));
  damage(".volume", 40);
  damage(".copy", 40);
  const Result<std::optional<Record>> found = file_.read();
  ASSERT_TRUE(found) << found.error();
  EXPECT_EQ(found.value()->epoch, 8u);
  EXPECT_EQ(found.value()->holder, next().holder);
  EXPECT_FALSE(found.value()->reservations_known);
  Record older = next();
  older.epoch = 7;
  EXPECT_FALSE(file_.claim(older, Outlasts::kPowerCut)) << "an older epoch is refused still";
  EXPECT_FALSE(file_.claim(*found.value(), Outlasts::kPowerCut)) << "nothing is made up";
  Record changed = next();
  changed.reservations = {};
  ASSERT_TRUE(file_.update(changed)) << "its owner knows all of it";
  EXPECT_EQ(file_.read().value(), changed);
}

TEST_F(RecordDamageTest, ARecordIsRefusedIfBothFilesAreDamagedAndTheClaimsAreMissing) {
  for (const char* end : {".volume", ".copy"}) damage(end, 40);
  ASSERT_EQ(::unlinkat(directory_.get(), (std::string(kVolumeUid) + ".holder").c_str(), 0), 0);
  ASSERT_FALSE(file_.read());
  EXPECT_NE(file_.read().error().find("restore it and its copy"), std::string::npos);
  EXPECT_FALSE(file_.claim(next(), Outlasts::kPowerCut));
}

// A slot may have had the newest record, which only the control plane knows then.
TEST_F(RecordDamageTest, ADamagedSlotIsWrittenAgainByTheNextOwnerWithTheStoresReservations) {
  Record changed = some_record();
  changed.generation += 1;
  ASSERT_TRUE(file_.update(changed));
  damage(".slots", 40);
  EXPECT_FALSE(file_.read().value()->reservations_known);
  Record owner = next();
  owner.generation = changed.generation;
  ASSERT_TRUE(file_.claim(owner, Outlasts::kPowerCut));
  EXPECT_EQ(file_.read().value(), owner);
}

// A gateway of an earlier release does not know the slots, and replaces `.volume` alone.
TEST_F(RecordDamageTest, ARecordOfAnEarlierReleaseTakesPrecedenceOverTheSlots) {
  Record changed = some_record();
  changed.generation += 1;
  ASSERT_TRUE(file_.update(changed));
  Record earlier = next();
  earlier.generation = changed.generation + 1;
  put(".volume", format_record(earlier));
  EXPECT_EQ(file_.read().value(), earlier);
}

// The owner died between the two writes.
TEST_F(RecordDamageTest, ARecordThatIsOnlyInItsSlotTakesPrecedence) {
  const std::string volume = content(".volume");
  const std::string copy = content(".copy");
  Record changed = some_record();
  changed.generation += 1;
  ASSERT_TRUE(file_.update(changed));
  put(".volume", volume);
  EXPECT_EQ(file_.read().value(), changed);
  put(".copy", copy);
  EXPECT_EQ(file_.read().value(), changed);
}

// A gateway of an earlier release writes no copy.
TEST_F(RecordDamageTest, AMissingOrOlderCopyIsReplacedByTheNextOwner) {
  ASSERT_EQ(::unlinkat(directory_.get(), (std::string(kVolumeUid) + ".copy").c_str(), 0), 0);
  EXPECT_EQ(file_.read().value(), some_record());
  ASSERT_TRUE(file_.claim(next(), Outlasts::kPowerCut));
  EXPECT_EQ(content(".copy"), format_record(next()));
  Record newer = next();
  newer.generation = 4;
  put(".volume", format_record(newer));
  EXPECT_EQ(file_.read().value(), newer);
  Record owner = newer;
  owner.epoch = 9;
  ASSERT_TRUE(file_.claim(owner, Outlasts::kPowerCut));
  EXPECT_EQ(content(".copy"), format_record(owner));
  EXPECT_EQ(content(".volume"), format_record(owner));
}

}  // namespace
}  // namespace sluice::control
