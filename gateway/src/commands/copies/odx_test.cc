// POPULATE TOKEN, WRITE USING TOKEN and RECEIVE ROD TOKEN INFORMATION as Windows uses them.
#include <gtest/gtest.h>

#include "commands/copies/copy_fixture.h"
#include "commands/copies/tokens.h"
#include "scsi/rod_token.h"
#include "unit/bandwidth.h"

namespace sluice::lun {
namespace {

using scsi::BlockExtent;
using scsi::Status;

constexpr uint64_t kOther = uint64_t{1} << 48;  // LUN 1

class OdxTest : public CopyTest {
 protected:
  using CopyTest::CopyTest;

  static void append(Bytes& list, size_t length_at, const std::vector<BlockExtent>& ranges) {
    put_be(list, length_at, 2, ranges.size() * 16);
    for (const BlockExtent& r : ranges) {
      Bytes d(16);
      put_be(d, 0, 8, r.lba);
      put_be(d, 8, 4, r.blocks);
      list.insert(list.end(), d.begin(), d.end());
    }
    put_be(list, 0, 2, list.size() - 2);
  }
  static Bytes cdb(uint8_t opcode, uint8_t action, uint32_t id, size_t id_at, size_t length) {
    Bytes out(16);
    out[0] = opcode;
    out[1] = action;
    put_be(out, id_at, 4, id);
    put_be(out, 10, 4, length);
    return out;
  }
  Task& begin_populate(Nexus& nexus, const std::vector<BlockExtent>& ranges, uint32_t id = 1,
                       uint32_t seconds = 0) {
    Bytes data(16);
    put_be(data, 4, 4, seconds);
    append(data, 14, ranges);
    return start(nexus, cdb(0x83, 0x10, id, 6, data.size()), data);
  }
  Task& begin_write(Nexus& nexus, const Bytes& token, const std::vector<BlockExtent>& ranges,
                    uint64_t lun = kOther, uint64_t offset = 0, uint8_t flags = 0,
                    uint32_t id = 2) {
    Bytes data(536);
    data[2] = flags;
    put_be(data, 8, 8, offset);
    std::copy(token.begin(), token.end(), data.begin() + 16);
    append(data, 534, ranges);
    return start(nexus, cdb(0x83, 0x11, id, 6, data.size()), data, lun);
  }
  Task& information(Nexus& nexus, uint32_t id, uint64_t lun = 0) {
    return run(start(nexus, cdb(0x84, 0x07, id, 2, 1024), {}, lun));
  }
  Bytes populate(const std::vector<BlockExtent>& ranges, uint32_t id = 1, uint32_t seconds = 0) {
    EXPECT_EQ(run(begin_populate(*a, ranges, id, seconds)).command.status, Status::kGood);
    const Bytes answer = information(*a, id).answer();
    EXPECT_EQ(answer.size(), 36u + 2 + 512);
    return Bytes(answer.begin() + 38, answer.end());
  }
  uint32_t write(const Bytes& token, const std::vector<BlockExtent>& ranges, uint64_t offset = 0,
                 uint8_t flags = 0) {
    return run(begin_write(*a, token, ranges, kOther, offset, flags)).sense();
  }
};

TEST_F(OdxTest, AWindowsOffloadedCopySucceeds) {
  EXPECT_EQ(run(begin_populate(*a, {{100, 3000}}, 77)).command.status, Status::kGood);
  const Bytes made = information(*a, 77).answer();
  ASSERT_EQ(made.size(), 36u + 2 + 512);
  EXPECT_EQ(made[4], 0x10) << "response to POPULATE TOKEN";
  EXPECT_EQ(made[5], 0x01) << "completed without errors";
  EXPECT_EQ(load_be64(&made[16]), 3000u) << "blocks represented";
  EXPECT_EQ(load_be32(&made[32]), 514u);
  const Bytes token(made.begin() + 38, made.end());

  // Another host, another LUN.
  EXPECT_EQ(run(begin_write(*b, token, {{5, 1000}, {9000, 2000}}, kOther, 0, 0, 78)).sense(), 0u);
  const Bytes written = information(*b, 78, kOther).answer();
  EXPECT_EQ(written[4], 0x11);
  EXPECT_EQ(written[5], 0x01);
  EXPECT_EQ(load_be64(&written[16]), 3000u);
  EXPECT_EQ(load_be32(&written[32]), 0u) << "no token";
  EXPECT_TRUE(same(*other_backend, 5 * 512, backend->data, 100 * 512, 1000 * 512));
  EXPECT_TRUE(same(*other_backend, 9000 * 512, backend->data, 1100 * 512, 2000 * 512));
}

TEST_F(OdxTest, ATokenOfSeveralRangesIsReadFromAnOffset) {
  const Bytes token = populate({{0, 10}, {5000, 4000}, {100, 1}});
  EXPECT_EQ(write(token, {{0, 3}, {50, 4003}}, 5), 0u);
  EXPECT_TRUE(same(*other_backend, 0, backend->data, 5 * 512, 3 * 512));
  EXPECT_TRUE(same(*other_backend, 50 * 512, backend->data, 8 * 512, 2 * 512));
  EXPECT_TRUE(same(*other_backend, 52 * 512, backend->data, 5000 * 512, 4000 * 512));
  EXPECT_TRUE(same(*other_backend, 4052 * 512, backend->data, 100 * 512, 512));
}

TEST_F(OdxTest, AWriteUsingTokenThatAFencedBackendRefusesDropsItsNexus) {
  const Bytes token = populate({{0, 3000}});
  other_backend->fail_with = -ESHUTDOWN;
  EXPECT_EQ(run(begin_write(*a, token, {{0, 3000}})).command.outcome, Outcome::kUnknown);
}

TEST_F(OdxTest, ACopyWithinOneLunSucceedsUnlessItsRangesOverlap) {
  const Bytes token = populate({{0, 100}});
  EXPECT_EQ(run(begin_write(*a, token, {{99, 50}}, 0)).sense(), 0x052600u);
  EXPECT_EQ(run(begin_write(*a, token, {{100, 100}}, 0)).sense(), 0u);
  EXPECT_TRUE(same(*backend, 100 * 512, backend->data, 0, 100 * 512));
}

TEST_F(OdxTest, TheZeroTokenWritesZeros) {
  Bytes zero(512);
  put_be(zero, 0, 4, scsi::kRodTypeZero);
  put_be(zero, 6, 2, 504);
  EXPECT_EQ(write(zero, {{7, 9000}, {16000, 1}}), 0u);
  EXPECT_TRUE(other_backend->all(7 * 512, 9000 * 512, 0));
  EXPECT_TRUE(other_backend->all(16000 * 512, 512, 0));
  EXPECT_FALSE(other_backend->all(6 * 512, 512, 0));
  EXPECT_EQ(load_be64(&information(*a, 2, kOther).answer()[16]), 9001u);
}

TEST_F(OdxTest, AWriteBeyondTheTokensBlocksIsRefusedBeforeAnyBlockIsWritten) {
  const Bytes token = populate({{0, 10}});
  EXPECT_EQ(write(token, {{0, 11}}), 0x052600u);
  EXPECT_EQ(write(token, {{0, 5}}, 6), 0x052600u);
  EXPECT_EQ(write(token, {{0, 1}}, UINT64_MAX), 0x052600u);
  EXPECT_TRUE(other_backend->submitted.empty());
  EXPECT_EQ(write(token, {{0, 4}}, 6), 0u);
}

// --- tokens that are none, or no more

TEST_F(OdxTest, ForgedAndUnknownTokensAreRefused) {
  const Bytes token = populate({{0, 10}});
  for (size_t at = 256; at < 288; ++at) {
    Bytes forged = token;
    forged[at] ^= 1;
    EXPECT_EQ(write(forged, {{0, 10}}), 0x052305u) << at;
  }
  Bytes larger = token;
  put_be(larger, 56, 8, 1 << 20);
  EXPECT_EQ(write(larger, {{0, 10}}), 0x052305u);
  Bytes unknown = token;
  unknown[8] = 9;
  EXPECT_EQ(write(unknown, {{0, 10}}), 0x052304u);
  Bytes other_length = token;
  other_length[7] = 0;
  EXPECT_EQ(write(other_length, {{0, 10}}), 0x05230au);
  Bytes other_type = token;
  other_type[0] = 0x7f;
  EXPECT_EQ(write(other_type, {{0, 10}}), 0x052301u);
  EXPECT_TRUE(other_backend->submitted.empty());
  EXPECT_EQ(write(token, {{0, 10}}), 0u);
}

TEST_F(OdxTest, TwoTokensForTheSameBlocksShareNoSecret) {
  const Bytes one = populate({{0, 10}}, 1);
  const Bytes two = populate({{0, 10}}, 2);
  int equal = 0;
  for (size_t i = 256; i < 288; ++i) equal += one[i] == two[i];
  EXPECT_LT(equal, 8);
}

TEST_F(OdxTest, AnUnusedTokenExpiresAndAUseExtendsIt) {
  const Bytes token = populate({{0, 10}}, 1, 10);
  now += 9 * kSecond;
  EXPECT_EQ(write(token, {{0, 10}}), 0u);
  now += 9 * kSecond;
  EXPECT_EQ(write(token, {{0, 10}}), 0u) << "use gave it new time";
  now += 10 * kSecond;
  EXPECT_EQ(write(token, {{0, 10}}), 0x052307u);
}

TEST_F(OdxTest, ATokenIsRevokedWhenItsBlocksAreWritten) {
  const Bytes token = populate({{100, 10}, {200, 10}});
  run(start(*b, write16(110, 90), Bytes(90 * 512)));
  EXPECT_EQ(write(token, {{0, 20}}), 0u) << "the blocks between don't count";
  run(start(*b, write16(209, 1), Bytes(512)));
  EXPECT_EQ(write(token, {{0, 20}}), 0x052306u);
}

TEST_F(OdxTest, ReadsAndWritesToOtherUnitsDoNotRevokeAToken) {
  const Bytes token = populate({{100, 10}});
  run(start(*b, read16(100, 10)));
  run(start(*b, write16(100, 10), Bytes(10 * 512), kOther));
  EXPECT_EQ(write(token, {{0, 10}}), 0u);
}

TEST_F(OdxTest, ACopyThatWritesTheBlocksRevokesTheToken) {
  const Bytes token = populate({{100, 10}}, 1);
  const Bytes source = populate({{500, 1}}, 2);
  EXPECT_EQ(run(begin_write(*a, source, {{105, 1}}, 0)).sense(), 0u);
  EXPECT_EQ(write(token, {{0, 10}}), 0x052306u);
}

TEST_F(OdxTest, AWriteToTheSourceDuringACopyStopsTheCopy) {
  const Bytes token = populate({{0, 16000}});
  other_backend->holds = true;
  Task& copying = begin_write(*a, token, {{0, 16000}});
  reactors.run();
  ASSERT_FALSE(other_backend->held.empty());
  run(start(*b, write16(15999, 1), Bytes(512)));
  other_backend->holds = false;
  other_backend->release_all();
  EXPECT_EQ(run(copying).sense(), 0x0a2306u);
  const Bytes answer = information(*a, 2, kOther).answer();
  EXPECT_EQ(answer[5], 0x02) << "completed with errors";
  const uint64_t blocks = load_be64(&answer[16]);
  EXPECT_GT(blocks, 0u);
  EXPECT_LT(blocks, 16000u);
  EXPECT_TRUE(same(*other_backend, 0, backend->data, 0, blocks * 512)) << "what it claims is there";
}

TEST_F(OdxTest, PopulateTokenWaitsForWritesInProgress) {
  backend->holds = true;
  Task& writing = start(*b, write16(5, 1), Bytes(512, 0xcc));
  Task& making = begin_populate(*a, {{0, 10}});
  reactors.run();
  EXPECT_FALSE(making.done());
  EXPECT_EQ(information(*a, 1).answer()[5], 0x11) << "in progress";
  EXPECT_EQ(run(begin_populate(*a, {{0, 1}})).sense(), 0x050016u) << "list id in use";
  backend->holds = false;
  backend->release_all();
  EXPECT_TRUE(writing.done());
  EXPECT_EQ(run(making).command.status, Status::kGood);
  const Bytes answer = information(*a, 1).answer();
  EXPECT_EQ(write(Bytes(answer.begin() + 38, answer.end()), {{0, 10}}), 0u);
  EXPECT_TRUE(other_backend->all(5 * 512, 512, 0xcc));
}

TEST_F(OdxTest, PopulateTokenAbortedWhileWaitingForWritesLeavesNoToken) {
  backend->holds = true;
  start(*b, write16(5, 1), Bytes(512));
  Task& making = begin_populate(*a, {{0, 10}});
  reactors.run();
  a->abort(making.command);
  EXPECT_TRUE(making.done());
  EXPECT_EQ(information(*a, 1).answer()[5], 0x60) << "terminated";
  EXPECT_EQ(target->tokens().size(), 0u);
}

TEST_F(OdxTest, TheChangeWatchIsDisarmedAfterTheTokensExpire) {
  populate({{0, 10}}, 1, 5);
  EXPECT_TRUE(unit->changes().armed());
  EXPECT_FALSE(other->changes().armed());
  now += 6 * kSecond;
  run(start(*b, write16(1000, 1), Bytes(512)));
  EXPECT_FALSE(unit->changes().armed());
}

TEST_F(OdxTest, DelTknDeletesTheToken) {
  const Bytes token = populate({{0, 10}});
  EXPECT_EQ(write(token, {{0, 10}}, 0, 0x02), 0u);
  EXPECT_EQ(write(token, {{0, 10}}), 0x052304u);
}

TEST_F(OdxTest, TheNumberOfTokensIsBoundedAndTheLeastRecentlyUsedIsDropped) {
  const Bytes first = populate({{0, 1}}, 1);
  const Bytes second = populate({{0, 1}}, 2);
  EXPECT_EQ(write(first, {{0, 1}}), 0u);
  for (unsigned i = 2; i <= limits::kMaxRodTokens; ++i) populate({{0, 1}}, 3);
  EXPECT_EQ(target->tokens().size(), limits::kMaxRodTokens);
  EXPECT_EQ(write(first, {{0, 1}}), 0u);
  EXPECT_EQ(write(second, {{0, 1}}), 0x052304u);
}

// --- requests that make no sense

TEST_F(OdxTest, RangesAreCheckedAgainstTheirLimits) {
  EXPECT_EQ(run(begin_populate(*a, {{kBytes / 512, 1}})).sense(), 0x052100u);
  EXPECT_EQ(run(begin_populate(*a, {{0, 10}, {9, 1}})).sense(), 0x052600u) << "overlap";
  EXPECT_EQ(run(begin_populate(*a, std::vector<BlockExtent>(65, {0, 0}))).sense(), 0x052608u);
  EXPECT_EQ(run(begin_populate(*a, {{0, 1}}, 1, 100000)).sense(), 0x052600u) << "timeout";
  EXPECT_EQ(run(start(*a, cdb(0x83, 0x10, 1, 6, 8), Bytes(8))).sense(), 0x051a00u);
  EXPECT_EQ(run(start(*a, cdb(0x83, 0x10, 1, 6, 0))).command.status, Status::kGood);
  EXPECT_EQ(run(start(*a, cdb(0x83, 0x11, 1, 6, 0))).command.status, Status::kGood);
}

TEST_F(OdxTest, InformationIsReturnedOnlyToTheNexusAndListIdOfTheOperation) {
  populate({{0, 10}}, 5);
  EXPECT_EQ(information(*a, 6).sense(), 0x052400u);
  EXPECT_EQ(information(*b, 5).sense(), 0x052400u);
  EXPECT_EQ(information(*a, 5).sense(), 0u);
}

TEST_F(OdxTest, ADestinationErrorIsReportedAsItsOwnAndASourceErrorAsCopyAborted) {
  const Bytes token = populate({{0, 10}});
  other_backend->fail_with = -ENOSPC;
  EXPECT_EQ(write(token, {{0, 10}}), 0x072707u);
  other_backend->fail_with = 0;
  backend->fail_with = -EIO;
  EXPECT_EQ(write(token, {{0, 10}}), 0x0a1100u) << "the source's: COPY ABORTED";
}

class MixedOdxTest : public OdxTest {
 protected:
  MixedOdxTest() : OdxTest(4096) {}
};

TEST_F(MixedOdxTest, BlockSizesMayDifferIfWholeBlocksMatch) {
  const Bytes token = populate({{8, 16}, {800, 16}});
  EXPECT_EQ(write(token, {{3, 4}}), 0u);
  EXPECT_TRUE(same(*other_backend, 3 * 4096, backend->data, 8 * 512, 16 * 512));
  EXPECT_TRUE(same(*other_backend, 5 * 4096, backend->data, 800 * 512, 16 * 512));
  const Bytes ragged = populate({{0, 4}, {100, 4}}, 2);
  EXPECT_EQ(write(ragged, {{0, 1}}), 0x052600u);
}

TEST_F(OdxTest, ATokenIsCopiedWithinTheQosLimitsOfTheDestination) {
  const Bytes token = populate({{0, 8192}});
  other->set_qos({.iops = 10, .iops_burst = 1, .bytes_per_second = limits::kCopyChunkBytes});
  Task& task = begin_write(*a, token, {{0, 8192}});
  for (int piece = 1; piece < 4; ++piece) {
    reactors.run();
    EXPECT_EQ(task.completions, 0) << piece;
    now += kSecond;
    a->tick();
  }
  EXPECT_EQ(run(task).sense(), 0u);
  now += kSecond;
  EXPECT_EQ(write(token, {{0, 8}}), 0u);
  Task& next = begin_write(*a, token, {{0, 8}}, kOther, 0, 0, 3);
  reactors.run();
  EXPECT_EQ(next.completions, 0) << "one command at a time";
  now += kSecond;
  a->tick();
  run(next);
}

}  // namespace
}  // namespace sluice::lun
