// Two units in one target for copies between them.
#pragma once

#include <gtest/gtest.h>

#include <numeric>

#include "nexus/lun_fixture.h"
#include "scsi/identity.h"

namespace sluice::lun {

class CopyTest : public LunTest {
 protected:
  explicit CopyTest(uint32_t other_block_size = 512) : LunTest(2), other_block(other_block_size) {}

  static constexpr uint64_t kBytes = uint64_t{8} << 20;  // many chunks

  void SetUp() override {
    unit = make_disk(1, 512, &backend);
    other = make_disk(2, other_block, &other_backend);
    target = std::make_shared<Target>("iqn.2026-11.dev.sluice:test", "", 1);
    target->set_luns({{0, unit}, {1, other}}, reactors);
    a = open("a");
    b = open("b", 1);
  }
  void TearDown() override {
    other_backend->release_all();
    LunTest::TearDown();
  }

  std::shared_ptr<Unit> make_disk(uint8_t number, uint32_t block_size, TestBackend** out) {
    auto memory = std::make_unique<TestBackend>(kBytes);
    uint32_t v = number;
    for (uint8_t& byte : memory->data)
      byte = static_cast<uint8_t>((v = v * 1664525 + 1013904223) >> 24);
    *out = memory.get();
    UnitIdentity identity;
    identity.uuid = {number, number, number, number, number, number, 7, number};
    identity.serial = "serial" + std::to_string(number);
    identity.block_size = block_size;
    return std::make_shared<Unit>(identity, std::move(memory), reactors.count(), nullptr);
  }

  Task& run(Task& task) {
    reactors.run();
    EXPECT_TRUE(task.done());
    return task;
  }
  static bool same(const TestBackend& x, uint64_t x_at, const Bytes& y, uint64_t y_at,
                   uint64_t bytes) {
    return std::equal(x.data.begin() + static_cast<ptrdiff_t>(x_at),
                      x.data.begin() + static_cast<ptrdiff_t>(x_at + bytes),
                      y.begin() + static_cast<ptrdiff_t>(y_at));
  }

  uint32_t other_block;
  std::shared_ptr<Unit> other;
  TestBackend* other_backend = nullptr;
  std::shared_ptr<Nexus> a, b;
};

}  // namespace sluice::lun
