#include "control/local/record_slots.h"

#include <gtest/gtest.h>

#include "base/limits.h"
#include "base/record_text.h"
#include "control/local/files.h"
#include "control/local/test_record.h"

namespace sluice::control {
namespace {

constexpr const char* kReplaces = "12345678";

class RecordSlotsTest : public testing::Test {
 protected:
  static Record numbered(uint64_t generation) {
    Record record = some_record();
    record.generation = generation;
    return record;
  }
  std::optional<RecordSlots::Found> find() { return std::move(slots_.find()).value(); }
  // The generation in the newest slot; 0: none.
  uint64_t newest() {
    const auto found = find();
    const RecordSlots::Slot* slot = found ? found->newest() : nullptr;
    return slot ? slot->record.generation : 0;
  }
  void write(uint64_t generation) {
    const Result<bool> written =
        slots_.write(format_record(numbered(generation)), kReplaces, find());
    ASSERT_TRUE(written) << written.error();
    ASSERT_TRUE(written.value());
  }
  std::string content() {
    return read_small_file(directory_.get(), name_, 4 << 20, "r").value().value();
  }
  void put(const std::string& bytes) {
    ASSERT_TRUE(replace_file(directory_.get(), name_, bytes, "r", nullptr, Outlasts::kProcess));
  }

  TestDirectory test_directory_;
  FileDescriptor directory_ = std::move(open_directory(test_directory_.path())).value();
  const std::string name_ = std::string(kVolumeUid) + ".slots";
  RecordSlots slots_{directory_.get(), kVolumeUid, "r"};
};

TEST_F(RecordSlotsTest, WithoutAFileThereAreNoSlotsAndNothingIsWritten) {
  EXPECT_FALSE(find());
  const Result<bool> written = slots_.write(format_record(some_record()), kReplaces, find());
  ASSERT_TRUE(written);
  EXPECT_FALSE(written.value());
}

TEST_F(RecordSlotsTest, TheSlotsAreOverwrittenInTurnAndTheNewestCounts) {
  ASSERT_TRUE(slots_.reserve(1000, find()).value());
  EXPECT_EQ(newest(), 0u);
  EXPECT_FALSE(find()->damaged);
  const size_t size = content().size();
  for (uint64_t generation = 1; generation < 6; ++generation) {
    write(generation);
    EXPECT_EQ(newest(), generation);
    EXPECT_EQ(find()->newest()->record, numbered(generation));
    EXPECT_EQ(find()->newest()->replaces, kReplaces);
    EXPECT_EQ(content().size(), size);
  }
  const auto found = find();
  EXPECT_EQ(found->slots[0]->record.generation + found->slots[1]->record.generation, 4u + 5u);
}

TEST_F(RecordSlotsTest, AWriteThatAPowerFailureInterruptsLeavesTheRecordBefore) {
  ASSERT_TRUE(slots_.reserve(1000, find()).value());
  write(1);
  for (uint64_t generation = 2; generation < 6; ++generation) {
    const std::string before = content();
    write(generation);
    const std::string whole = content();
    size_t interruptions = 0;
    for (size_t bytes = 0; bytes < whole.size(); ++bytes) {
      if (whole[bytes] == before[bytes]) continue;
      put(whole.substr(0, bytes) + before.substr(bytes));
      EXPECT_EQ(newest(), generation - 1) << "interrupted at byte " << bytes;
      ++interruptions;
    }
    EXPECT_GT(interruptions, 0u);
    put(whole);
  }
}

TEST_F(RecordSlotsTest, ADamagedByteOfASlotIsDetected) {
  ASSERT_TRUE(slots_.reserve(1000, find()).value());
  write(1);
  const std::string whole = content();
  for (size_t i = 0; i < whole.size() / 2; ++i) {
    if (whole[i] == '\0') continue;
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
    put(damaged);
    EXPECT_TRUE(find()->damaged) << "byte " << i;
    EXPECT_EQ(newest(), 0u) << "byte " << i;
  }
}

TEST_F(RecordSlotsTest, AShorterTextIsReadDespiteTheRestOfALongerOne) {
  ASSERT_TRUE(slots_.reserve(4000, find()).value());
  Record longer = numbered(1);
  longer.reservations.registrations[0].nexus.initiator_name += std::string(200, 'x');
  for (int times = 0; times < 2; ++times) {
    ASSERT_TRUE(slots_.write(format_record(longer), kReplaces, find()).value());
  }
  write(2);
  EXPECT_EQ(newest(), 2u);
  EXPECT_FALSE(find()->damaged);
}

TEST_F(RecordSlotsTest, LargerSlotsKeepTheNewestRecordAndSmallerOnesAreNotMade) {
  ASSERT_TRUE(slots_.reserve(1000, find()).value());
  write(1);
  write(2);
  const std::string large(20000, 'x');
  EXPECT_FALSE(slots_.write(large, kReplaces, find()).value()) << "it does not fit";
  ASSERT_TRUE(slots_.reserve(large.size(), find()).value());
  EXPECT_EQ(newest(), 2u);
  EXPECT_GE(find()->slot_bytes, large.size());
  const size_t size = content().size();
  ASSERT_TRUE(slots_.reserve(10, find()).value());
  EXPECT_EQ(content().size(), size);
  write(3);
  write(4);
  EXPECT_EQ(newest(), 4u);
}

TEST_F(RecordSlotsTest, AStateAboveTheLimitOfACommitGetsNoSlot) {
  EXPECT_TRUE(slots_.reserve(limits::kMaxReservationState, find()));
  EXPECT_FALSE(slots_.reserve(2 * limits::kMaxReservationState, find()));
}

TEST_F(RecordSlotsTest, AFileOfAnImpossibleSizeIsReportedAsDamagedAndReplaced) {
  for (const size_t size : {size_t{0}, size_t{100}, size_t{4096}, size_t{3} * 4096}) {
    put(std::string(size, '\0'));
    ASSERT_TRUE(find());
    EXPECT_TRUE(find()->damaged) << size;
    EXPECT_FALSE(slots_.write(format_record(some_record()), kReplaces, find()).value()) << size;
    ASSERT_TRUE(slots_.reserve(1000, find()).value());
    EXPECT_FALSE(find()->damaged) << size;
  }
}

}  // namespace
}  // namespace sluice::control
