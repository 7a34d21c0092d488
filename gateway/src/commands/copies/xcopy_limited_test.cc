// EXTENDED COPY between units that are limited.
#include "commands/copies/xcopy_fixture.h"
#include "unit/bandwidth.h"

namespace sluice::lun {
namespace {

TEST_F(XcopyTest, ACopyConsumesOneCommandOfTheQosLimitOfTheUnitItIsSentTo) {
  unit->set_qos({.iops = 10, .iops_burst = 1});
  EXPECT_EQ(copy({{0, 1, 8, 0, 0}}), 0u);
  Task& second = begin_copy(*a, both({{0, 1, 8, 0, 0}}, 2));
  a->tick();
  reactors.run();
  EXPECT_EQ(second.completions, 0);
  now += 100 * kMillisecond;
  a->tick();
  run(second);
}

TEST_F(XcopyTest, ACopyWaitsForBytesOfBothUnitsPieceByPiece) {
  constexpr uint64_t kPiece = limits::kCopyChunkBytes;
  constexpr auto kBlocks4 = static_cast<uint16_t>(4 * kPiece / 512);
  for (const bool source : {true, false}) {
    (source ? unit : other)->set_qos({.bytes_per_second = kPiece});
    (source ? other : unit)->set_qos({});
    const Bytes before = backend->data;
    Task& task = begin_copy(*a, both({{0, 1, kBlocks4, 0, 0}}, source ? 1 : 2));
    for (int piece = 1; piece < 4; ++piece) {
      reactors.run();
      EXPECT_EQ(task.completions, 0) << piece;
      Task& read = start(*b, read16(0, 8), {}, uint64_t{source ? 1u : 0u} << 48);
      EXPECT_TRUE(read.done()) << "blocks that wait for bandwidth are not held";
      now += kSecond;
      a->tick();
    }
    EXPECT_EQ(run(task).sense(), 0u);
    EXPECT_TRUE(same(*other_backend, 0, before, 0, 4 * kPiece));
    now += 10 * kSecond;
  }
}

TEST_F(XcopyTest, AnAbortEndsACopyThatWaitsForBandwidth) {
  other->set_qos({.bytes_per_second = limits::kCopyChunkBytes});
  Task& task = begin_copy(*a, both({{0, 1, 8192, 0, 0}}));
  reactors.run();
  ASSERT_EQ(task.completions, 0);
  a->abort(task.command);
  a->tick();
  EXPECT_TRUE(run(task).command.aborted());
  Task& last = begin_copy(*a, both({{0, 1, 8192, 0, 0}}, 2));
  reactors.run();
  ASSERT_EQ(last.completions, 0);
  a->close(false, [] {});
  run(last);
}

}  // namespace
}  // namespace sluice::lun
