// Several reactors, each a thread with a queue, fight over few blocks.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "unit/ranges/range_table.h"
#include "unit/test_threads.h"

namespace sluice::lun {
namespace {

constexpr unsigned kReactors = 4;
constexpr unsigned kInFlight = 8;   // per reactor
constexpr unsigned kHolds = 20000;  // per reactor
constexpr unsigned kBlocks = 24;    // fought over
constexpr unsigned kLongest = 6;    // blocks

// What the holds protect. Plain on purpose: the thread sanitizer proves the exclusion, too.
struct Board {
  std::array<int, kBlocks> written{};
  std::array<std::atomic<int>, kBlocks> readers{};
  std::array<std::atomic<int>, kBlocks> writers{};
  std::atomic<int> violations{0};
  std::atomic<int> shared_readers{0};  // reads seen to overlap
};

class Worker {
 public:
  Worker(unsigned index, RangeTable& table, ThreadedReactors& reactors, Board& board)
      : index_(index), table_(table), reactors_(reactors), board_(board), random_(index + 1) {
    for (auto& slot : slots_) {
      slot.worker = this;
      slot.hold.context = &slot;
      slot.hold.on_grant = [](RangeHold& hold) {
        auto& s = *static_cast<Slot*>(hold.context);
        s.worker->enter(s);
        s.worker->leave_later(s);
      };
    }
  }

  void run() {
    for (auto& slot : slots_) next(slot);
    reactors_.run(index_, [this] { return ended_ == kHolds; });
  }
  unsigned ended() const { return ended_; }

 private:
  struct Slot {
    RangeHold hold;
    Worker* worker = nullptr;
  };

  // Starts holds until one stays. Half of the immediately granted ones are released immediately,
  // which creates the most contention between two shards.
  void next(Slot& slot) {
    while (begun_ < kHolds) {
      ++begun_;
      slot.hold.first = random_() % kBlocks;
      slot.hold.last = std::min<uint64_t>(slot.hold.first + random_() % kLongest, kBlocks - 1);
      slot.hold.exclusive = random_() % 2 == 0;
      if (!table_.acquire(index_, slot.hold, &reactors_)) {
        if (random_() % 16 != 0) return;
        // some are cancelled, as aborted commands are
        table_.cancel(index_, slot.hold, &reactors_);
      } else {
        enter(slot);
        if (random_() % 2 == 0) return leave_later(slot);
        leave(slot);
      }
      ++ended_;
    }
    // Wakes run() once the last hold has ended.
    if (ended_ == kHolds) reactors_.post(index_, [] {});
  }

  void enter(Slot& slot) {
    const RangeHold& hold = slot.hold;
    for (uint64_t b = hold.first; b <= hold.last; ++b) {
      if (board_.writers[b].load(std::memory_order_relaxed) != 0) ++board_.violations;
      if (hold.exclusive) {
        if (board_.readers[b].load(std::memory_order_relaxed) != 0) ++board_.violations;
        board_.writers[b].fetch_add(1, std::memory_order_relaxed);
        ++board_.written[b];
      } else {
        if (board_.readers[b].fetch_add(1, std::memory_order_relaxed) != 0) {
          board_.shared_readers.fetch_add(1, std::memory_order_relaxed);
        }
        sum_ += board_.written[b];
      }
    }
  }

  void leave_later(Slot& slot) {
    reactors_.post(index_, [this, &slot] {
      leave(slot);
      ++ended_;
      next(slot);
    });
  }

  void leave(Slot& slot) {
    const RangeHold& hold = slot.hold;
    for (uint64_t b = hold.first; b <= hold.last; ++b) {
      if (hold.exclusive) {
        ++board_.written[b];
        board_.writers[b].fetch_sub(1, std::memory_order_relaxed);
      } else {
        sum_ += board_.written[b];
        board_.readers[b].fetch_sub(1, std::memory_order_relaxed);
      }
    }
    table_.release(index_, slot.hold, &reactors_);
  }

  const unsigned index_;
  RangeTable& table_;
  ThreadedReactors& reactors_;
  Board& board_;
  std::minstd_rand random_;
  std::array<Slot, kInFlight> slots_;
  unsigned begun_ = 0;
  unsigned ended_ = 0;
  int64_t sum_ = 0;
};

TEST(RangeTableStress, ConflictingHoldsAreExcludedAndEveryHoldEnds) {
  auto table = std::make_shared<RangeTable>(kReactors);
  ThreadedReactors reactors(kReactors);
  Board board;
  std::vector<std::unique_ptr<Worker>> workers;
  for (unsigned i = 0; i < kReactors; ++i) {
    workers.push_back(std::make_unique<Worker>(i, *table, reactors, board));
  }
  std::vector<std::thread> threads;
  for (auto& worker : workers) threads.emplace_back([&worker] { worker->run(); });
  for (auto& thread : threads) thread.join();  // progress for all, or the test never ends
  EXPECT_EQ(board.violations, 0);
  EXPECT_GT(board.shared_readers, 0);
  for (const auto& worker : workers) EXPECT_EQ(worker->ended(), kHolds);
  for (unsigned i = 0; i < kReactors; ++i) {
    EXPECT_EQ(table->holding(i), 0u);
    EXPECT_EQ(table->waiting(i), 0u);
  }
}

}  // namespace
}  // namespace sluice::lun
