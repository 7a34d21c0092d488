#include "control/local/record_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "control/local/test_record.h"

namespace sluice::control {
namespace {

class RecordFileTest : public testing::Test {
 protected:
  TestDirectory test_directory_;
  FileDescriptor directory_ = std::move(open_directory(test_directory_.path())).value();
  RecordFile file_{directory_.get(), kVolumeUid, "r"};

  // Empty: there is none.
  std::string content(const std::string& end) {
    return read_small_file(directory_.get(), kVolumeUid + end, 1 << 20, "r").value().value_or("");
  }
  std::string path(const std::string& end) const {
    return test_directory_.path() + '/' + kVolumeUid + end;
  }
  void put(const std::string& end, const std::string& text) {
    ASSERT_TRUE(replace_file(directory_.get(), kVolumeUid + end, text, "r"));
  }
  void put_note(std::string text) {
    text.resize(4096);
    put(".holder", content(".holder").replace(0, 4096, text));
  }
  void remove(const std::string& end) { ASSERT_EQ(::unlink(path(end).c_str()), 0); }
  ino_t inode(const std::string& end) const {
    struct stat status{};
    EXPECT_EQ(::stat(path(end).c_str(), &status), 0);
    return status.st_ino;
  }
};

TEST_F(RecordFileTest, AMissingRecordIsNoErrorAndAClaimIsReadBack) {
  ASSERT_TRUE(file_.read());
  EXPECT_FALSE(file_.read().value());
  ASSERT_TRUE(file_.claim(some_record(), Outlasts::kPowerCut));
  EXPECT_EQ(file_.read().value(), some_record());
}

TEST_F(RecordFileTest, AnOlderEpochDoesNotReplaceANewerOne) {
  ASSERT_TRUE(file_.claim(some_record(), Outlasts::kPowerCut));
  Record older = some_record();
  older.epoch = 6;
  EXPECT_FALSE(file_.claim(older, Outlasts::kPowerCut));
  EXPECT_EQ(file_.read().value()->epoch, 7u);
}

TEST_F(RecordFileTest, ADelayedWriterDoesNotChangeTheRecordOfItsSuccessor) {
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

Record served_anew(uint64_t epoch) {
  Record record = held_anew();
  record.epoch = epoch;
  record.order += epoch;
  return record;
}

TEST_F(RecordFileTest, TheNewLockHolderIsReadBeforeANewEpochIsClaimed) {
  ASSERT_TRUE(file_.claim(some_record(), Outlasts::kPowerCut));
  const std::string before = content(".volume");
  ASSERT_TRUE(file_.claim(held_anew(), Outlasts::kProcess));
  EXPECT_EQ(content(".volume"), before);
  EXPECT_EQ(file_.read().value(), held_anew());
  EXPECT_FALSE(file_.update(some_record())) << "it is another gateway's by now";
  EXPECT_TRUE(file_.update(held_anew()));
}

// What a failover of hundreds of volumes waits for is syncs: of data alone, not of new files.
TEST_F(RecordFileTest, ANewEpochIsWrittenOverAnOlderOneInPlace) {
  ASSERT_TRUE(file_.claim(some_record(), Outlasts::kPowerCut));
  const std::string record = content(".volume");
  const ino_t slots = inode(".holder");
  for (uint64_t epoch = 8; epoch < 12; ++epoch) {
    ASSERT_TRUE(file_.claim(served_anew(epoch), Outlasts::kPowerCut));
    EXPECT_EQ(file_.read().value(), served_anew(epoch));
    EXPECT_FALSE(file_.claim(served_anew(epoch - 1), Outlasts::kPowerCut));
  }
  EXPECT_EQ(content(".volume"), record);
  EXPECT_EQ(inode(".holder"), slots);
}

TEST_F(RecordFileTest, APowerCutDuringAClaimRetainsThePreviousClaim) {
  ASSERT_TRUE(file_.claim(some_record(), Outlasts::kPowerCut));
  Record before = some_record();
  for (uint64_t epoch = 8; epoch < 12; ++epoch) {
    const std::string old = content(".holder");
    ASSERT_TRUE(file_.claim(served_anew(epoch), Outlasts::kPowerCut));
    const std::string whole = content(".holder");
    size_t differing = 0;
    for (size_t slot = 0; slot < whole.size(); slot += 4096) {
      if (old.compare(slot, 4096, whole, slot, 4096) == 0) continue;
      ++differing;
      std::string torn = whole;
      torn.replace(slot, 100, old, slot, 100);
      put(".holder", torn);
      ASSERT_TRUE(file_.read());
      EXPECT_EQ(file_.read().value(), before);
    }
    EXPECT_EQ(differing, 1u);
    put(".holder", whole);
    before = served_anew(epoch);
  }
}

TEST_F(RecordFileTest, ANoteDoesNotOverwriteASyncedClaim) {
  ASSERT_TRUE(file_.claim(some_record(), Outlasts::kPowerCut));
  ASSERT_TRUE(file_.claim(served_anew(8), Outlasts::kPowerCut));
  ASSERT_TRUE(file_.claim(served_anew(9), Outlasts::kPowerCut));
  const std::string before = content(".holder");
  Record noted = served_anew(9);
  noted.order += 1;
  noted.holder.incarnation = "incarnation-3";
  ASSERT_TRUE(file_.claim(noted, Outlasts::kProcess));
  EXPECT_EQ(content(".holder").substr(4096), before.substr(4096));
  EXPECT_EQ(file_.read().value(), noted);
}

TEST_F(RecordFileTest, DamageToAllSyncedClaimsIsAnError) {
  ASSERT_TRUE(file_.claim(some_record(), Outlasts::kPowerCut));
  ASSERT_TRUE(file_.claim(served_anew(8), Outlasts::kPowerCut));
  ASSERT_TRUE(file_.claim(served_anew(9), Outlasts::kPowerCut));
  std::string damaged = content(".holder");
  damaged[4096 + 20] ^= 1;
  damaged[8192 + 20] ^= 1;
  put(".holder", damaged);
  ASSERT_FALSE(file_.read());
  EXPECT_NE(file_.read().error().find("claims beside it"), std::string::npos);
  EXPECT_FALSE(file_.claim(served_anew(10), Outlasts::kPowerCut));
}

TEST_F(RecordFileTest, UnreadableClaimsAreAnErrorAndNotTreatedAsMissing) {
  ASSERT_TRUE(file_.claim(some_record(), Outlasts::kPowerCut));
  remove(".holder");
  ASSERT_EQ(::mkdir(path(".holder").c_str(), 0700), 0);
  EXPECT_FALSE(file_.read());
  EXPECT_FALSE(file_.claim(served_anew(8), Outlasts::kPowerCut));
}

TEST_F(RecordFileTest, AnOversizedClaimsFileIsAnErrorAndNotTreatedAsMissing) {
  ASSERT_TRUE(file_.claim(some_record(), Outlasts::kPowerCut));
  ASSERT_TRUE(file_.claim(served_anew(8), Outlasts::kPowerCut));
  const std::string more = content(".holder") + '\0';
  put(".holder", more);
  EXPECT_FALSE(file_.read());
  EXPECT_FALSE(file_.claim(served_anew(9), Outlasts::kPowerCut));
  EXPECT_EQ(content(".holder"), more);
}

// What else is new is in the record, and has to be there after a power cut as well.
TEST_F(RecordFileTest, AClaimThatChangesMoreThanASlotContainsIsWrittenAsARecord) {
  for (const Outlasts outlasts : {Outlasts::kProcess, Outlasts::kPowerCut}) {
    ASSERT_TRUE(file_.claim(some_record(), Outlasts::kPowerCut));
    ASSERT_TRUE(file_.claim(served_anew(8), Outlasts::kPowerCut));
    Record next = served_anew(8);
    next.reservations = {};
    ASSERT_TRUE(file_.claim(next, outlasts));
    const Result<Record> record = parse_record(content(".volume"), kVolumeUid, "r");
    ASSERT_TRUE(record);
    EXPECT_EQ(record.value(), next);
    EXPECT_EQ(file_.read().value(), next);
    remove(".volume");
    remove(".copy");
  }
  ASSERT_TRUE(file_.claim(some_record(), Outlasts::kPowerCut));
  ASSERT_TRUE(file_.claim(served_anew(8), Outlasts::kProcess))
      << "an epoch, which a note isn't for";
  EXPECT_EQ(parse_record(content(".volume"), kVolumeUid, "r").value(), served_anew(8));
}

TEST_F(RecordFileTest, ARecordOfTheSameEpochAndOrderNamesTheNewHolder) {
  ASSERT_TRUE(file_.claim(some_record(), Outlasts::kPowerCut));
  ASSERT_TRUE(file_.claim(served_anew(8), Outlasts::kPowerCut));
  Record next = served_anew(8);
  next.holder.incarnation = "incarnation-3";
  next.reservations = {};
  ASSERT_TRUE(file_.claim(next, Outlasts::kPowerCut));
  EXPECT_EQ(file_.read().value(), next);
}

// A control plane that was restored from a backup counts orders on from an older one.
TEST_F(RecordFileTest, AClaimWithALowerOrderAfterARestoreNamesTheNewHolder) {
  ASSERT_TRUE(file_.claim(some_record(), Outlasts::kPowerCut));
  ASSERT_TRUE(file_.claim(served_anew(8), Outlasts::kPowerCut));
  Record next = served_anew(8);
  next.order = 1;
  next.holder.incarnation = "incarnation-3";
  ASSERT_TRUE(file_.claim(next, Outlasts::kPowerCut));
  EXPECT_EQ(file_.read().value(), next);
  EXPECT_TRUE(file_.update(next));
}

TEST_F(RecordFileTest, SlotsOfARemovedRecordAreIgnored) {
  ASSERT_TRUE(file_.claim(some_record(), Outlasts::kPowerCut));
  ASSERT_TRUE(file_.claim(served_anew(8), Outlasts::kPowerCut));
  remove(".volume");
  remove(".copy");
  EXPECT_FALSE(file_.read().value());
  ASSERT_TRUE(file_.claim(some_record(), Outlasts::kPowerCut));
  EXPECT_EQ(file_.read().value(), some_record());
}

TEST_F(RecordFileTest, ANoteThatIsDamagedOutdatedOrOfAnotherBootIsIgnored) {
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
    put_note(text);
    ASSERT_TRUE(file_.read()) << text;
    EXPECT_EQ(file_.read().value(), some_record()) << text;
  }
  put_note(whole);
  EXPECT_EQ(file_.read().value()->holder, held_anew().holder);
}

// As an earlier release left them, or an administrator.
TEST_F(RecordFileTest, SlotsOfAnotherSizeAreIgnoredAndRecreated) {
  ASSERT_TRUE(file_.claim(some_record(), Outlasts::kPowerCut));
  put(".holder", format_record(served_anew(8)));
  EXPECT_EQ(file_.read().value(), some_record());
  for (const uint64_t epoch : {8, 9}) {
    ASSERT_TRUE(file_.claim(served_anew(epoch), Outlasts::kPowerCut));
    EXPECT_EQ(file_.read().value(), served_anew(epoch));
  }
  EXPECT_EQ(parse_record(content(".volume"), kVolumeUid, "r").value(), served_anew(8));
}

}  // namespace
}  // namespace sluice::control
