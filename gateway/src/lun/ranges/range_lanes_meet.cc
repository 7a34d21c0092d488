// What happens between lanes; range_lane.h argues why it is safe.
#include "lun/ranges/range_lane.h"

namespace sluice::lun {
namespace {

constexpr uint64_t kStateMask = 3;
constexpr uint64_t kExclusiveBit = 4;
constexpr unsigned kTicketShift = 3;
constexpr uint64_t kNoTicket = 0;

}  // namespace

void RangeLane::set_word(RangeHold& hold, SlotState state) {
  Chunk& chunk = *chunks_[hold.slot / kChunkSlots].load(std::memory_order_relaxed);
  const uint64_t word = state | (hold.exclusive ? kExclusiveBit : 0) | hold.ticket << kTicketShift;
  chunk.word[hold.slot % kChunkSlots].store(word, std::memory_order_release);
}

// `hold` was published as fresh. true: granted; false: ticketed.
bool RangeLane::grant_among_lanes(RangeHold& hold, Reactors* reactors) {
  hold.ticket = kNoTicket;
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (!lanes_that_stop(hold, kNoTicket)) {
    set_word(hold, kGranted);
    return true;
  }
  hold.ticket = table_.next_ticket_.fetch_add(1, std::memory_order_seq_cst);
  set_word(hold, kTicketed);
  // Fresh, it stopped those with lower tickets; now it doesn't.
  wake_others(reactors);
  if (settle(hold)) return true;
  hold.state = RangeHold::State::kTicketed;
  ticketed_.append(hold);
  ++waiting_count_;
  return false;
}

// Looks whether a ticketed hold's time has come. false: every lane that stops it will wake this
// one.
bool RangeLane::settle(RangeHold& hold) {
  uint64_t told = 0;
  for (;;) {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    const uint64_t stopped_by = lanes_that_stop(hold, hold.ticket);
    if (!stopped_by) {
      set_word(hold, kGranted);
      return true;
    }
    uint64_t untold = stopped_by & ~told;
    if (!untold) return false;
    told |= untold;
    for (; untold; untold &= untold - 1) {
      const auto i = static_cast<unsigned>(__builtin_ctzll(untold));
      RangeLane* other = table_.lanes_[i].load(std::memory_order_acquire);
      other->waiters_.fetch_or(uint64_t{1} << index_, std::memory_order_seq_cst);
    }
  }
}

// Whether this lane, another's, has a slot that stops `hold`. kNoTicket: anything overlapping does.
bool RangeLane::stops(const RangeHold& hold, uint64_t ticket) const {
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

uint64_t RangeLane::lanes_that_stop(const RangeHold& hold, uint64_t ticket) const {
  uint64_t mask = 0;
  for (unsigned i = 0; i < table_.lanes(); ++i) {
    if (i == index_) continue;
    const RangeLane* other = table_.lanes_[i].load(std::memory_order_acquire);
    if (other && other->stops(hold, ticket)) mask |= uint64_t{1} << i;
  }
  return mask;
}

void RangeLane::wake_others(Reactors* reactors) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (!waiters_.load(std::memory_order_relaxed)) return;
  uint64_t mask = waiters_.exchange(0, std::memory_order_seq_cst);
  for (; mask; mask &= mask - 1) {
    const auto i = static_cast<unsigned>(__builtin_ctzll(mask));
    reactors->post(i, [table = table_.shared_from_this(), i] { table->lane(i).examine(); });
  }
}

void RangeLane::examine() {
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
