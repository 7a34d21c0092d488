// One reactor's part of a unit's range table, and what all parts share. Used by range_table.h only.
//
// A hold that overlaps no other one in its own shard is published in a slot, as *fresh*. Then its
// shard checks the slots of the other shards. Without an obstacle the hold is *granted*. Otherwise
// it draws a *ticket* from a counter shared by all shards and waits for
// - granted and fresh slots that overlap it, and
// - ticketed slots that overlap it and have a lower ticket.
//
// Two overlapping holds are never both granted. Let A and B overlap, and let B be published second
// in the single order of the sequentially consistent fences. All checks of B come after A's
// publication, so B finds A fresh, granted or ticketed. Fresh and granted block B. If A is ticketed
// when B, still fresh, checks, then B draws its ticket after A and A's lower ticket blocks it. If
// both were fresh when they checked, both have drawn. The one with the lower ticket ignores the
// other. The checks of the other come after its own draw and so after the first one's publication,
// so it is blocked until the first is released.
//
// A slot that is reused while another shard reads it may show a mixture of the old hold and the new
// one. That reader's fence came before the fence of the new hold, which therefore sees the reader's
// hold and yields.
//
// No hold waits without end: granted holds are released by their commands, fresh ones end within
// one call, and among ticketed ones the lowest waits for none. A waiting hold sets its shard's bit
// in `waiters_` of every shard that blocks it and checks once more. A shard whose slot stops being
// an obstacle checks for bits after a fence. So one of the two sees the other. Within a shard, only
// holds that do not overlap a waiting one overtake it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/limits.h"
#include "base/reactors.h"
#include "unit/ranges/range_hold.h"

namespace sluice::lun {

class RangeShard;

// The shards of one table.
class RangeShards : public std::enable_shared_from_this<RangeShards> {
 public:
  // coarse_shift: log2 of a number of blocks; most commands begin and end at multiples of it.
  RangeShards(unsigned reactors, unsigned coarse_shift);
  ~RangeShards();
  RangeShards(const RangeShards&) = delete;
  RangeShards& operator=(const RangeShards&) = delete;

  unsigned count() const { return static_cast<unsigned>(shards_.size()); }
  // Only that reactor's thread may call it.
  RangeShard& shard(unsigned reactor) {
    RangeShard* shard = shards_[reactor].load(std::memory_order_relaxed);
    return shard ? *shard : make_shard(reactor);
  }
  const RangeShard* existing(unsigned reactor) const {  // nullptr: not used yet
    return shards_[reactor].load(std::memory_order_relaxed);
  }

 private:
  friend class RangeShard;
  RangeShard& make_shard(unsigned reactor);

  const unsigned coarse_shift_;
  std::vector<std::atomic<RangeShard*>> shards_;  // created at a reactor's first acquire
  std::atomic<uint64_t> next_ticket_{1};
};

class RangeShard {
 public:
  RangeShard(RangeShards& all, unsigned index) : all_(all), index_(index) {}
  ~RangeShard();
  RangeShard(const RangeShard&) = delete;
  RangeShard& operator=(const RangeShard&) = delete;

  bool acquire(RangeHold& hold, Reactors* reactors);
  void release(RangeHold& hold, Reactors* reactors);
  void cancel(RangeHold& hold, Reactors* reactors);
  // Another shard released a hold: checks the ticketed holds again.
  void examine();

  size_t holding() const { return holding_; }
  size_t waiting() const { return waiting_count_; }

 private:
  enum SlotState : uint64_t { kEmpty = 0, kFresh = 1, kTicketed = 2, kGranted = 3 };
  static constexpr unsigned kChunkSlots = 64;
  static constexpr unsigned kChunks = limits::kMaxInFlightPerUnit / kChunkSlots;
  static_assert(limits::kMaxInFlightPerUnit % kChunkSlots == 0);

  // Written by this shard's reactor, read by all. The range of an empty slot overlaps nothing.
  struct Chunk {
    std::atomic<uint64_t> used{0};       // bit per slot
    std::atomic<uint64_t> exclusive{0};  // bit per slot
    std::array<std::atomic<uint64_t>, kChunkSlots> first;
    std::array<std::atomic<uint64_t>, kChunkSlots> last;
    // SlotState, and the ticket in the bits above
    std::array<std::atomic<uint64_t>, kChunkSlots> word;
    // Used by this reactor only: the hold of a slot, and its range in coarse units. Comparing four
    // at a time quickly shows that none overlaps.
    std::array<RangeHold*, kChunkSlots> hold{};
    alignas(16) std::array<int32_t, kChunkSlots> coarse_first;
    alignas(16) std::array<int32_t, kChunkSlots> coarse_last;
    Chunk();
  };

  struct List {
    RangeHold* head = nullptr;
    RangeHold* tail = nullptr;
    void append(RangeHold& hold);
    void remove(RangeHold& hold);
  };

  bool shared_with_others() const { return all_.count() > 1; }
  // --- within the shard
  int32_t coarse(uint64_t block) const;
  bool may_overlap(const Chunk& chunk, const RangeHold& hold) const;
  RangeHold* obstacle_in(const Chunk& chunk, const RangeHold& hold) const;
  RangeHold* own_obstacle(const RangeHold& hold) const;
  RangeHold* waiting_obstacle(const RangeHold& hold, const RangeHold* until) const;
  bool take_slot(RangeHold& hold);
  void leave_slot(RangeHold& hold, Reactors* reactors);
  void wait(RangeHold& hold, RangeHold* blocker);
  bool try_grant(RangeHold& hold, Reactors* reactors);
  void retry_waiting(const RangeHold* gone, Reactors* reactors);
  void run_ready();
  // --- between shards
  void set_word(RangeHold& hold, SlotState state);
  bool grant_among_shards(RangeHold& hold, Reactors* reactors);
  bool settle(RangeHold& hold);
  bool stops(const RangeHold& hold, uint64_t ticket) const;
  uint64_t shards_that_stop(const RangeHold& hold, uint64_t ticket) const;
  void wake_others(Reactors* reactors);

  RangeShards& all_;
  const unsigned index_;
  size_t holding_ = 0;        // slots in use
  size_t waiting_count_ = 0;  // in waiting_ and ticketed_
  List waiting_;              // for holds of this shard or for a slot; they have no slot
  List ticketed_;             // for holds of other shards
  List ready_;                // granted, on_grant not called yet
  bool running_ready_ = false;
  unsigned chunks_used_ = 0;
  std::array<std::atomic<Chunk*>, kChunks> chunks_{};
  // Number of slots in use, and 32 bits above the number of exclusive ones; zeros spare others a
  // search.
  alignas(64) std::atomic<uint64_t> counts_{0};
  alignas(64) std::atomic<uint64_t> waiters_{0};  // bit per shard
};

}  // namespace sluice::lun
