// Counts what the whole test program allocates. Not under the thread sanitizer, which has an
// operator new of its own that can't be replaced.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SLUICE_THREAD_SANITIZER
#endif
#endif
#ifndef SLUICE_THREAD_SANITIZER
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "nexus/lun_fixture.h"

namespace {
std::atomic<uint64_t> allocations{0};
}

// Not inlined: g++ would take the pair for a mismatch.
[[gnu::noinline]] void* operator new(size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* p = std::malloc(size ? size : 1)) return p;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, size_t) noexcept { std::free(p); }

namespace sluice::lun {
namespace {

class AllocationTest : public LunTest {
 protected:
  void SetUp() override {
    LunTest::SetUp();
    nexus = open("a");
    backend->submitted.reserve(10000);
  }
  // What one more round allocates once everything has its size.
  template <class Round>
  uint64_t steady(Round round) {
    for (int i = 0; i < 10; ++i) round();
    const uint64_t before = allocations.load();
    for (int i = 0; i < 100; ++i) round();
    return allocations.load() - before;
  }

  std::shared_ptr<Nexus> nexus;
};

TEST_F(AllocationTest, AReadAllocatesNothing) {
  Task& task = make(read16(0, 8));
  EXPECT_EQ(steady([&] {
              begin(*nexus, task);
              task.command.data_in.clear();
            }),
            0u);
  EXPECT_EQ(task.command.status, scsi::Status::kGood);
}

TEST_F(AllocationTest, AReadOfLentMemoryAllocatesNothing) {
  backend->lends = true;
  Task& task = make(read16(0, 8));
  EXPECT_EQ(steady([&] { begin(*nexus, task); }), 0u);
  EXPECT_EQ(task.command.status, scsi::Status::kGood);
  EXPECT_EQ(task.command.data_in.front().data, backend->data.data());
}

TEST_F(AllocationTest, AWriteAllocatesNothing) {
  Task& task = make(write16(0, 8), Bytes(4096));
  EXPECT_EQ(steady([&] {
              begin(*nexus, task);
              task.command.data_out.clear();
              send_data(*nexus, task);
            }),
            0u);
  EXPECT_EQ(task.command.status, scsi::Status::kGood);
}

TEST_F(AllocationTest, TestUnitReadyAndACompareAndWriteAllocateNothing) {
  Task& ready = make(test_unit_ready());
  EXPECT_EQ(steady([&] { begin(*nexus, ready); }), 0u);
  EXPECT_EQ(ready.command.status, scsi::Status::kGood);
  Bytes cdb(16);
  cdb[0] = 0x89;
  cdb[13] = 1;
  Task& caw = make(cdb, Bytes(1024));
  EXPECT_EQ(steady([&] {
              begin(*nexus, caw);
              caw.command.data_out.clear();
              send_data(*nexus, caw);
            }),
            0u);
  EXPECT_EQ(caw.command.status, scsi::Status::kGood);
}

}  // namespace
}  // namespace sluice::lun
#endif
