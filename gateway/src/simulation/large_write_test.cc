// Transfers that find no memory, or that of the session: when they are let in (DESIGN R14).
#include "simulation/write_buffer_quota_fixture.h"

namespace sluice::simulation {
namespace {

TEST_F(WriteBufferQuotaTest, TwoFirstWritesThatDoNotFitTogetherRunOneAfterTheOther) {
  grow(kHung);
  grow(kLive);
  // What a reactor of 64 MiB has beside its receive ring.
  occupy(pool().available() - (size_t{63} << 20));
  Writer& one = log_in();
  Writer& two = log_in();
  one.start(kHung, kLarge);
  two.start(kLive, kLarge);
  one.look();
  two.look();
  EXPECT_GT(one.asked_for, 0u);
  EXPECT_EQ(two.asked_for, 0u);
  answer_all();
  EXPECT_EQ(one.good, 1u);
  EXPECT_EQ(two.good, 1u) << "it is notified when memory came back";
}

TEST_F(WriteBufferQuotaTest, ASingleWriteIsAdmittedEvenIfItDoesNotFit) {
  grow(kHung);
  occupy(pool().available() - kLarge);  // its last bytes would take the reserve
  Writer& w = log_in();
  w.start(kHung, kLarge);
  w.look();
  EXPECT_GT(w.asked_for, 0u);
}

TEST_F(WriteBufferQuotaTest, ASingleWriteWaitsWhileOtherUsersOccupyTheMemory) {
  grow(kHung);
  occupy(pool().available() - kLarge / 4 * 3);  // more than the reserve is free
  Writer& w = log_in();
  w.start(kHung, kLarge);
  w.look();
  EXPECT_EQ(w.asked_for, 0u) << "no write's data would find memory";
  occupied_.clear();
  gateway_.advance(limits::kTick);
  w.look();
  EXPECT_GT(w.asked_for, 0u);
}

// Three hosts write to one LUN without a pause; what becomes of a large write of another host?
class LargeWrite : public WriteBufferQuotaTest, public testing::WithParamInterface<uint64_t> {};

TEST_P(LargeWrite, IsAdmittedAfterTheMemoryPatienceDespiteConcurrentWrites) {
  grow(static_cast<unsigned>(GetParam()));
  occupy(size_t{72} << 20);  // beside what one unit takes, it does not fit
  for (unsigned i = 0; i < 3; ++i) {
    Writer& w = log_in();
    for (unsigned n = 0; n < 60; ++n) w.start(kHung, kBytes);
  }
  Writer& large = log_in();
  large.start(GetParam(), kLarge);
  const auto busy_for = [&](Nanos span) {
    for (Nanos t = 0; t < span; t += limits::kTick) {
      for (unsigned i = 0; i < 12; ++i) writers_[i % 3]->answer();
      gateway_.advance(limits::kTick);
    }
    large.look();
  };
  busy_for(limits::kMemoryPatience / 2);
  EXPECT_EQ(large.asked_for, 0u);
  busy_for(limits::kMemoryPatience / 2 + limits::kMemorySlice);
  EXPECT_GT(large.asked_for, 0u);
  EXPECT_LT(writers_[0]->good, 60u) << "others were not done";
  answer_all();
  EXPECT_EQ(large.good, 1u);
  for (unsigned i = 0; i < 3; ++i) EXPECT_EQ(writers_[i]->good, 60u);
}

INSTANTIATE_TEST_SUITE_P(OfAnotherUnit, LargeWrite, testing::Values(kLive));
INSTANTIATE_TEST_SUITE_P(OfAUnitThatAlwaysHoldsSomething, LargeWrite, testing::Values(kHung));

TEST_F(WriteBufferQuotaTest, ALargeWriteIsAdmittedInTimeDespiteOtherWritesOfItsSession) {
  grow(kLive);
  Writer& w = log_in();
  for (unsigned n = 0; n < 120; ++n) w.start(kHung, kBytes);
  const uint32_t large = w.start(kLive, kLarge);
  const auto busy_for = [&](Nanos span) {
    for (Nanos t = 0; t < span; t += limits::kTick) {
      for (unsigned i = 0; i < 60; ++i) w.answer();
      gateway_.advance(limits::kTick);
    }
    w.look();
  };
  busy_for(limits::kMemoryPatience / 2);
  EXPECT_FALSE(w.asked_tasks.contains(large));
  busy_for(limits::kMemoryPatience / 2 + limits::kMemorySlice);
  EXPECT_TRUE(w.asked_tasks.contains(large));
  EXPECT_LT(w.asked_tasks.size(), 121u) << "others were not done";
  answer_all();
  EXPECT_EQ(w.good, 121u);
}

TEST_F(WriteBufferQuotaTest, ALargeWriteToAHangingUnitDoesNotDelayReadsOfOtherUnits) {
  grow(kHung);
  occupy(size_t{72} << 20);
  gateway_.disk(kHung).hold(true);
  Writer& hung = log_in();
  for (unsigned n = 0; n < 8; ++n) hung.start(kHung, kBytes);
  answer_all();
  Writer& large = log_in();
  large.start(kHung, kLarge);
  Initiator& reader = log_in().host;
  for (Nanos t = 0; t < 3 * limits::kMemoryPatience; t += limits::kTick) {
    gateway_.advance(limits::kTick);
    ASSERT_EQ(reader.execute(read16(0, 8), 4096, {}, kLive).status, 0);
  }
  large.look();
  EXPECT_EQ(large.asked_for, 0u);
}

TEST_F(WriteBufferQuotaTest, AnUnusedSliceDelaysOthersOnlyBriefly) {
  grow(kLive);
  occupy(size_t{72} << 20);
  gateway_.disk(kHung).hold(true);
  Writer& hung = log_in();
  for (unsigned n = 0; n < 8; ++n) hung.start(kHung, kBytes);
  answer_all();
  Writer& large = log_in();
  large.start(kLive, kLarge);
  Initiator& reader = log_in().host;
  const auto reads = [&] {
    reader.send(reader.command(read16(0, 8), pdu::kFlagFinal | pdu::kFlagRead | 1, 4096, kLive));
    return reader.answers().size();
  };
  EXPECT_EQ(reads(), 1u);
  gateway_.advance(limits::kMemoryPatience + limits::kTick);
  reader.answers();  // pings
  EXPECT_EQ(reads(), 0u);
  gateway_.advance(limits::kMemorySlice + limits::kTick);
  EXPECT_GT(reader.answers().size(), 0u);
  EXPECT_EQ(reads(), 1u);
  large.look();
  EXPECT_EQ(large.asked_for, 0u);
}

}  // namespace
}  // namespace sluice::simulation
