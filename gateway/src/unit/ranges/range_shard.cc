#include "unit/ranges/range_shard.h"

#include <algorithm>
#include <cstring>

namespace sluice::lun {
namespace {

bool overlap(const RangeHold& a, const RangeHold& b) {
  return a.first <= b.last && b.first <= a.last && (a.exclusive || b.exclusive);
}

// Changes an atomic that has a single writer, without a locked instruction.
void put(std::atomic<uint64_t>& cell, uint64_t value) {
  cell.store(value, std::memory_order_release);
}
uint64_t get(const std::atomic<uint64_t>& cell) { return cell.load(std::memory_order_relaxed); }

constexpr uint64_t kOneExclusive = uint64_t{1} << 32;

constexpr uint64_t kStateMask = 3;
constexpr uint64_t kExclusiveBit = 4;
constexpr unsigned kTicketShift = 3;
constexpr uint64_t kNoTicket = 0;

}  // namespace

RangeShards::RangeShards(unsigned reactors, unsigned coarse_shift)
    : coarse_shift_(coarse_shift), shards_(reactors ? reactors : 1) {}

RangeShards::~RangeShards() {
  for (auto& shard : shards_) delete shard.load(std::memory_order_relaxed);
}

RangeShard& RangeShards::make_shard(unsigned reactor) {
  auto* shard = new RangeShard(*this, reactor);
  shards_[reactor].store(shard, std::memory_order_release);
  return *shard;
}

RangeShard::Chunk::Chunk() {
  coarse_first.fill(INT32_MAX);
  coarse_last.fill(-1);
  for (unsigned i = 0; i < kChunkSlots; ++i) {
    put(first[i], UINT64_MAX);
    put(last[i], 0);
    put(word[i], kEmpty);
  }
}

RangeShard::~RangeShard() {
  for (auto& chunk : chunks_) delete chunk.load(std::memory_order_relaxed);
}

void RangeShard::List::append(RangeHold& hold) {
  hold.previous = tail;
  hold.next = nullptr;
  (tail ? tail->next : head) = &hold;
  tail = &hold;
}

void RangeShard::List::remove(RangeHold& hold) {
  (hold.previous ? hold.previous->next : head) = hold.next;
  (hold.next ? hold.next->previous : tail) = hold.previous;
  hold.previous = hold.next = nullptr;
}

bool RangeShard::acquire(RangeHold& hold, Reactors* reactors) {
  hold.granted = false;
  if (waiting_.head) {
    if (RangeHold* blocker = waiting_obstacle(hold, nullptr)) {
      wait(hold, blocker);
      return false;
    }
  }
  return try_grant(hold, reactors);
}

// The common part of the first attempt and retries; `hold` is in no list.
bool RangeShard::try_grant(RangeHold& hold, Reactors* reactors) {
  if (RangeHold* blocker = own_obstacle(hold)) {
    wait(hold, blocker);
    return false;
  }
  if (!take_slot(hold)) {
    wait(hold, nullptr);
    return false;
  }
  if (shared_with_others() && !grant_among_shards(hold, reactors)) return false;
  hold.state = RangeHold::State::kGranted;
  hold.granted = true;
  return true;
}

// Monotonic in `block`, so overlapping ranges also overlap in coarse units. Very large blocks share
// one unit.
int32_t RangeShard::coarse(uint64_t block) const {
  return static_cast<int32_t>(std::min<uint64_t>(block >> all_.coarse_shift_, INT32_MAX));
}

// Usually nothing overlaps; this finds that out without a branch per slot.
bool RangeShard::may_overlap(const Chunk& chunk, const RangeHold& hold) const {
  using Four = int32_t __attribute__((vector_size(16)));
  const int32_t first = coarse(hold.first);
  const int32_t last = coarse(hold.last);
  const unsigned end = 64u - static_cast<unsigned>(__builtin_clzll(get(chunk.used)));
  Four hit = {};
  for (unsigned i = 0; i < end; i += 4) {
    Four slot_first;
    Four slot_last;
    std::memcpy(&slot_first, &chunk.coarse_first[i], sizeof slot_first);
    std::memcpy(&slot_last, &chunk.coarse_last[i], sizeof slot_last);
    hit |= (slot_first <= last) & (slot_last >= first);
  }
  return (hit[0] | hit[1] | hit[2] | hit[3]) != 0;
}

RangeHold* RangeShard::obstacle_in(const Chunk& chunk, const RangeHold& hold) const {
  const uint64_t used = get(chunk.used);
  uint64_t candidates = hold.exclusive ? used : used & get(chunk.exclusive);
  if (!candidates || !may_overlap(chunk, hold)) return nullptr;
  for (; candidates; candidates &= candidates - 1) {
    RangeHold* other = chunk.hold[static_cast<unsigned>(__builtin_ctzll(candidates))];
    if (overlap(*other, hold)) return other;
  }
  return nullptr;
}

RangeHold* RangeShard::own_obstacle(const RangeHold& hold) const {
  if (!holding_) return nullptr;
  for (unsigned c = 0; c < chunks_used_; ++c) {
    if (RangeHold* other = obstacle_in(*chunks_[c].load(std::memory_order_relaxed), hold)) {
      return other;
    }
  }
  return nullptr;
}

// The first waiting hold, before `until`, that overlaps.
RangeHold* RangeShard::waiting_obstacle(const RangeHold& hold, const RangeHold* until) const {
  for (RangeHold* w = waiting_.head; w && w != until; w = w->next) {
    if (overlap(*w, hold)) return w;
  }
  return nullptr;
}

bool RangeShard::take_slot(RangeHold& hold) {
  for (unsigned c = 0; c < kChunks; ++c) {
    Chunk* chunk = chunks_[c].load(std::memory_order_relaxed);
    if (!chunk) {
      chunk = new Chunk;
      chunks_[c].store(chunk, std::memory_order_release);
      chunks_used_ = c + 1;
    }
    const uint64_t used = get(chunk->used);
    if (used == UINT64_MAX) continue;
    const auto i = static_cast<unsigned>(__builtin_ctzll(~used));
    const uint64_t bit = uint64_t{1} << i;
    hold.slot = static_cast<uint16_t>(c * kChunkSlots + i);
    chunk->hold[i] = &hold;
    chunk->coarse_first[i] = coarse(hold.first);
    chunk->coarse_last[i] = coarse(hold.last);
    if (shared_with_others()) {
      put(chunk->first[i], hold.first);
      put(chunk->last[i], hold.last);
      put(chunk->word[i], kFresh | (hold.exclusive ? 4 : 0));
      put(counts_, get(counts_) + 1 + (hold.exclusive ? kOneExclusive : 0));
    }
    if (hold.exclusive) put(chunk->exclusive, get(chunk->exclusive) | bit);
    put(chunk->used, used | bit);
    ++holding_;
    return true;
  }
  return false;
}

void RangeShard::leave_slot(RangeHold& hold, Reactors* reactors) {
  Chunk& chunk = *chunks_[hold.slot / kChunkSlots].load(std::memory_order_relaxed);
  const unsigned i = hold.slot % kChunkSlots;
  const uint64_t bit = uint64_t{1} << i;
  chunk.hold[i] = nullptr;
  chunk.coarse_first[i] = INT32_MAX;
  chunk.coarse_last[i] = -1;
  if (shared_with_others()) {
    put(chunk.first[i], UINT64_MAX);
    put(chunk.last[i], 0);
    put(chunk.word[i], kEmpty);
    put(counts_, get(counts_) - 1 - (hold.exclusive ? kOneExclusive : 0));
  }
  if (hold.exclusive) put(chunk.exclusive, get(chunk.exclusive) & ~bit);
  put(chunk.used, get(chunk.used) & ~bit);
  --holding_;
  if (shared_with_others()) wake_others(reactors);
}

void RangeShard::wait(RangeHold& hold, RangeHold* blocker) {
  hold.state = RangeHold::State::kWaiting;
  hold.blocker = blocker;
  waiting_.append(hold);
  ++waiting_count_;
}

void RangeShard::release(RangeHold& hold, Reactors* reactors) {
  if (hold.state == RangeHold::State::kReady) ready_.remove(hold);
  hold.state = RangeHold::State::kIdle;
  hold.granted = false;
  leave_slot(hold, reactors);
  if (waiting_.head) retry_waiting(&hold, reactors);
  if (ready_.head) run_ready();
}

void RangeShard::cancel(RangeHold& hold, Reactors* reactors) {
  switch (hold.state) {
    case RangeHold::State::kIdle:
      return;
    case RangeHold::State::kReady:
    case RangeHold::State::kGranted:
      release(hold, reactors);
      return;
    case RangeHold::State::kWaiting:
      waiting_.remove(hold);
      --waiting_count_;
      break;
    case RangeHold::State::kTicketed:
      ticketed_.remove(hold);
      --waiting_count_;
      leave_slot(hold, reactors);
      break;
  }
  hold.state = RangeHold::State::kIdle;
  if (waiting_.head) retry_waiting(&hold, reactors);
  if (ready_.head) run_ready();
}

// `gone` is no obstacle any more; its slot, if any, is free.
void RangeShard::retry_waiting(const RangeHold* gone, Reactors* reactors) {
  RangeHold* next = nullptr;
  for (RangeHold* w = waiting_.head; w; w = next) {
    next = w->next;
    if (w->blocker && w->blocker != gone) continue;
    if (RangeHold* blocker = own_obstacle(*w)) {
      w->blocker = blocker;
      continue;
    }
    if (RangeHold* blocker = waiting_obstacle(*w, w)) {
      w->blocker = blocker;
      continue;
    }
    if (!take_slot(*w)) {
      w->blocker = nullptr;
      continue;
    }
    waiting_.remove(*w);
    --waiting_count_;
    if (shared_with_others() && !grant_among_shards(*w, reactors)) continue;
    w->state = RangeHold::State::kReady;
    w->granted = true;
    ready_.append(*w);
  }
}

// Only the outermost caller calls on_grant. Otherwise a chain of commands, each waiting for the
// previous one's block, would nest as deeply as it is long.
void RangeShard::run_ready() {
  if (running_ready_) return;
  running_ready_ = true;
  while (RangeHold* hold = ready_.head) {
    ready_.remove(*hold);
    hold->state = RangeHold::State::kGranted;
    hold->on_grant(*hold);
  }
  running_ready_ = false;
}

// --- between shards; range_shard.h proves that it is safe

void RangeShard::set_word(RangeHold& hold, SlotState state) {
  Chunk& chunk = *chunks_[hold.slot / kChunkSlots].load(std::memory_order_relaxed);
  const uint64_t word = state | (hold.exclusive ? kExclusiveBit : 0) | hold.ticket << kTicketShift;
  chunk.word[hold.slot % kChunkSlots].store(word, std::memory_order_release);
}

// `hold` was published as fresh. True: granted; false: ticketed.
bool RangeShard::grant_among_shards(RangeHold& hold, Reactors* reactors) {
  hold.ticket = kNoTicket;
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (!shards_that_stop(hold, kNoTicket)) {
    set_word(hold, kGranted);
    return true;
  }
  hold.ticket = all_.next_ticket_.fetch_add(1, std::memory_order_seq_cst);
  set_word(hold, kTicketed);
  // While fresh it blocked holds with lower tickets; now it does not.
  wake_others(reactors);
  if (settle(hold)) return true;
  hold.state = RangeHold::State::kTicketed;
  ticketed_.append(hold);
  ++waiting_count_;
  return false;
}

// Checks whether a ticketed hold can be granted. False: every shard that blocks it will wake this
// one.
bool RangeShard::settle(RangeHold& hold) {
  uint64_t registered = 0;
  for (;;) {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    const uint64_t stopped_by = shards_that_stop(hold, hold.ticket);
    if (!stopped_by) {
      set_word(hold, kGranted);
      return true;
    }
    uint64_t missing = stopped_by & ~registered;
    if (!missing) return false;
    registered |= missing;
    for (; missing; missing &= missing - 1) {
      const auto i = static_cast<unsigned>(__builtin_ctzll(missing));
      RangeShard* other = all_.shards_[i].load(std::memory_order_acquire);
      other->waiters_.fetch_or(uint64_t{1} << index_, std::memory_order_seq_cst);
    }
  }
}

// Whether this other shard has a slot that blocks `hold`. kNoTicket: any overlapping slot does.
bool RangeShard::stops(const RangeHold& hold, uint64_t ticket) const {
  const uint64_t counts = counts_.load(std::memory_order_acquire);
  if (hold.exclusive ? counts == 0 : counts >> 32 == 0) return false;
  for (const auto& pointer : chunks_) {
    const Chunk* chunk = pointer.load(std::memory_order_acquire);
    if (!chunk) break;
    const uint64_t used = chunk->used.load(std::memory_order_acquire);
    uint64_t candidates =
        hold.exclusive ? used : used & chunk->exclusive.load(std::memory_order_acquire);
    for (; candidates; candidates &= candidates - 1) {
      const auto i = static_cast<unsigned>(__builtin_ctzll(candidates));
      const uint64_t word = chunk->word[i].load(std::memory_order_acquire);
      const uint64_t state = word & kStateMask;
      if (state == kEmpty || !(hold.exclusive || (word & kExclusiveBit))) continue;
      if (state == kTicketed && ticket != kNoTicket && word >> kTicketShift > ticket) continue;
      if (chunk->first[i].load(std::memory_order_acquire) <= hold.last &&
          chunk->last[i].load(std::memory_order_acquire) >= hold.first) {
        return true;
      }
    }
  }
  return false;
}

uint64_t RangeShard::shards_that_stop(const RangeHold& hold, uint64_t ticket) const {
  uint64_t mask = 0;
  for (unsigned i = 0; i < all_.count(); ++i) {
    if (i == index_) continue;
    const RangeShard* other = all_.shards_[i].load(std::memory_order_acquire);
    if (other && other->stops(hold, ticket)) mask |= uint64_t{1} << i;
  }
  return mask;
}

void RangeShard::wake_others(Reactors* reactors) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (!waiters_.load(std::memory_order_relaxed)) return;
  uint64_t mask = waiters_.exchange(0, std::memory_order_seq_cst);
  for (; mask; mask &= mask - 1) {
    const auto i = static_cast<unsigned>(__builtin_ctzll(mask));
    reactors->post(i, [all = all_.shared_from_this(), i] { all->shard(i).examine(); });
  }
}

void RangeShard::examine() {
  RangeHold* next = nullptr;
  for (RangeHold* hold = ticketed_.head; hold; hold = next) {
    next = hold->next;
    if (!settle(*hold)) continue;
    ticketed_.remove(*hold);
    --waiting_count_;
    hold->state = RangeHold::State::kReady;
    hold->granted = true;
    ready_.append(*hold);
  }
  if (ready_.head) run_ready();
}

}  // namespace sluice::lun
