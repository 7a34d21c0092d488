// VPD page B0h (SBC-4 §6.6.4): a command at a reported limit is accepted, and one block, or one
// descriptor, beyond it is refused.
#include <gtest/gtest.h>

#include <cerrno>
#include <functional>
#include <string>

#include "nexus/lun_fixture.h"

namespace sluice::lun {
namespace {

constexpr uint32_t kInvalidFieldInCdb = 0x052400;
constexpr uint32_t kInvalidFieldInParameterList = 0x052600;

class ReportedLimits : public LunTest {
 protected:
  void prepare_backend(TestBackend& made) override {
    made.claimed_size = uint64_t{64} << 30;
    made.information.atomic_write_bytes = 16384;
    made.holds = true;  // what is accepted waits, because the backend has less data than it claims
  }
  void SetUp() override {
    LunTest::SetUp();
    nexus = open("a");
    page = start(*nexus, {0x12, 1, 0xb0, 0, 64, 0}).answer();
    ASSERT_EQ(page.size(), 64u);
  }
  void TearDown() override {
    backend->fail_with = -EIO;
    LunTest::TearDown();
  }
  uint64_t reported(size_t at, size_t width) const {
    uint64_t value = 0;
    for (size_t i = 0; i < width; ++i) value = value << 8 | page[at + i];
    return value;
  }
  // The sense of a command that is refused before its data is requested; 0: it is accepted.
  uint32_t refusal(Bytes cdb, uint32_t data_out) {
    Task& task = make(std::move(cdb));
    task.command.expected_data_out = data_out;
    return begin(*nexus, task) || !task.done() ? 0 : task.sense();
  }
  uint32_t refusal_of_unmap(uint32_t descriptors, uint32_t blocks) {
    Bytes list(8 + 16 * size_t{descriptors});
    put_be(list, 0, 2, list.size() - 2);
    put_be(list, 2, 2, list.size() - 8);
    for (size_t i = 0; i < descriptors; ++i) {
      put_be(list, 8 + 16 * i, 8, i * uint64_t{blocks});
      put_be(list, 16 + 16 * i, 4, blocks);
    }
    Bytes cdb(10);
    cdb[0] = 0x42;
    put_be(cdb, 7, 2, list.size());
    return start(*nexus, cdb, std::move(list)).sense();
  }

  std::shared_ptr<Nexus> nexus;
  Bytes page;
};

TEST_F(ReportedLimits, AreEnforced) {
  struct Limit {
    std::string name;
    uint64_t value;
    uint32_t sense;  // of one more
    std::function<uint32_t(uint64_t)> refusal;
  };
  const auto moves = [this](uint8_t opcode) {
    return [this, opcode](uint64_t blocks) {
      const auto n = static_cast<uint32_t>(blocks);
      return refusal(cdb16(opcode, 0, n), opcode == 0x88 ? 0 : n * 512);
    };
  };
  const auto compare = [this](uint64_t blocks) {
    Bytes cdb = cdb16(0x89, 0, 0);
    cdb[13] = static_cast<uint8_t>(blocks);
    return refusal(cdb, static_cast<uint32_t>(blocks) * 1024);
  };
  const auto atomic = [this](uint64_t blocks) {
    Bytes cdb(16);
    cdb[0] = 0x9c;
    put_be(cdb, 12, 2, blocks);
    return refusal(cdb, static_cast<uint32_t>(blocks) * 512);
  };
  const auto same = [this](uint64_t blocks) {
    return refusal(cdb16(0x93, 0, static_cast<uint32_t>(blocks)), 512);
  };
  const uint64_t transfer = reported(8, 4);
  const Limit limits_of_page[] = {
      {"READ", transfer, kInvalidFieldInCdb, moves(0x88)},
      {"WRITE", transfer, kInvalidFieldInCdb, moves(0x8a)},
      {"ORWRITE", transfer, kInvalidFieldInCdb, moves(0x8b)},
      {"WRITE AND VERIFY", transfer, kInvalidFieldInCdb, moves(0x8e)},
      {"VERIFY", transfer, kInvalidFieldInCdb, moves(0x8f)},
      {"WRITE SAME", reported(36, 8), kInvalidFieldInCdb, same},
      {"WRITE ATOMIC", reported(44, 4), kInvalidFieldInCdb, atomic},
      {"UNMAP blocks", reported(20, 4), kInvalidFieldInParameterList,
       [this](uint64_t blocks) { return refusal_of_unmap(1, static_cast<uint32_t>(blocks)); }},
      {"UNMAP descriptors", reported(24, 4), kInvalidFieldInParameterList,
       [this](uint64_t count) { return refusal_of_unmap(static_cast<uint32_t>(count), 1); }},
  };
  for (const Limit& limit : limits_of_page) {
    ASSERT_NE(limit.value, 0u) << limit.name << " has no limit";
    EXPECT_EQ(limit.refusal(limit.value), 0u) << limit.name;
    EXPECT_EQ(limit.refusal(limit.value + 1), limit.sense) << limit.name;
  }
  // One byte has the number of blocks of COMPARE AND WRITE, so no more than the limit can be sent.
  EXPECT_EQ(reported(5, 1), 255u);
  EXPECT_EQ(compare(255), 0u);
  EXPECT_EQ(page[4] & 1, 1) << "WSNZ";
  EXPECT_EQ(same(0), kInvalidFieldInCdb);
}

}  // namespace
}  // namespace sluice::lun
