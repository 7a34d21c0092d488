#include "iscsi/write_memory.h"

#include <algorithm>
#include <utility>

#include "base/limits.h"
#include "iscsi/session.h"
#include "lun/statistics.h"
#include "lun/unit.h"

namespace sluice::iscsi {
namespace {

// Woken in one go; the others are next.
constexpr size_t kWokenAtOnce = 8;

// Data that finds no other memory may stay in these.
constexpr size_t kReceiveRing = size_t{limits::kReceiveBuffers} * limits::kReceiveBufferSize;

size_t above(size_t bytes, size_t reserve) { return bytes > reserve ? bytes - reserve : 0; }

}  // namespace

lun::UnitStatistics::Lane& WriteMemory::unit_lane(lun::Itl& itl) const {
  return itl.unit().statistics().lane(lane_.reactor);
}

size_t& WriteMemory::held_by(lun::Itl& itl) const { return unit_lane(itl).data_out_held; }

bool WriteMemory::admits(lun::Itl& itl, size_t bytes, size_t own, Nanos& since) {
  const size_t budget = lane_.buffers->budget();
  const size_t reserve = budget / limits::kReceiveReserve;
  const size_t room = above(free(), reserve);
  const size_t held = held_by(itl) - own;
  const bool fits = bytes <= above(free(), reserve / 2);
  // One that is alone needs not leave a reserve. Two of them would wait for each other.
  if (held == 0) {
    const bool alone = held_ == own && room != 0 && bytes <= free() + kReceiveRing;
    return admits_first(since, fits || alone, true);
  }
  const bool shares = held + 2 * bytes <= room;
  if (itl.asked_for != 0) return !turn_of_another(since) && shares;
  // The first of a nexus: others that write to the same unit would keep it out for ever. A turn it
  // has in a unit that gives memory back; what hangs would hold up the others for nothing.
  const bool first = fits && free() > budget / limits::kFirstWriteReserve;
  const Nanos given_back = unit_lane(itl).data_out_given_back;
  return admits_first(since, shares || first, since != 0 && given_back > since);
}

// As much as is free, as for writes: many peers that read slowly would otherwise leave the reactor
// nothing to receive into.
bool WriteMemory::admits_read(size_t bytes, size_t waiting, Nanos& since) {
  const size_t budget = lane_.buffers->budget();
  const size_t reserve = budget / limits::kReceiveReserve;
  if (waiting == 0) {
    // A first read may be larger than that, but not at the cost of what others will send.
    const size_t most = promised_ != 0 ? limits::kMaxTransferBytes : budget / 4;
    return admits_first(since, free() >= reserve / 2 + std::min(bytes, most), true);
  }
  if (turn_of_another(since)) return false;
  return waiting + bytes <= std::min<size_t>(limits::kMaxOutputBytes, above(free(), reserve));
}

// A large one would never find room while others, small ones, take all that comes back.
bool WriteMemory::admits_first(Nanos& since, bool fits, bool may_have_turn) {
  if (turn_of_another(since)) return false;
  if (fits) {
    if (late_ == &since) late_ = nullptr;
    return true;
  }
  const Nanos now = *lane_.now;
  if (since == 0 || had_turn_ == &since) since = now;
  if (had_turn_ == &since) had_turn_ = nullptr;
  if (may_have_turn && (!late_ || since < late_since_)) {
    late_ = &since;
    late_since_ = since;
  }
  if (late_ == &since) late_seen_ = now;
  return false;
}

// Who was late long enough has a turn, in which nobody else is let in. It is short, and the next is
// long in coming: what hangs gives nothing back, and the others would hang with it.
bool WriteMemory::turn_of_another(const Nanos& since) {
  if (!late_) [[likely]]
    return false;
  const Nanos now = *lane_.now;
  const Nanos begins = std::max(late_since_, last_turn_) + limits::kMemoryPatience;
  if (now >= begins + limits::kMemoryTurn) {
    had_turn_ = std::exchange(late_, nullptr);
    last_turn_ = now;
  } else if (now - late_seen_ > limits::kMemoryTurn / 2) {
    late_ = nullptr;  // it asks no more
  }
  return late_ && late_ != &since && now >= begins;
}

bool WriteMemory::full(lun::Itl& itl) const {
  return held_by(itl) > limits::kUnaskedShare * free();
}

void WriteMemory::hold(lun::Itl& itl, size_t bytes) {
  held_ += bytes;
  held_by(itl) += bytes;
}

void WriteMemory::release(lun::Itl& itl, size_t bytes, size_t promised) {
  held_ -= bytes;
  promised_ -= promised;
  held_by(itl) -= bytes;
  if (bytes != 0) unit_lane(itl).data_out_given_back = *lane_.now;
  if (waiting_.empty() || wakes_) return;
  wakes_ = true;
  // Later: whatever ended this command may be about to end others, and sessions.
  lane_.reactors->post(lane_.reactor, [this] { wake(); });
}

void WriteMemory::wait(Session& session) { waiting_.push_back(&session); }

void WriteMemory::leave(const Session& session) {
  waiting_.remove_if([&](const Session* s) { return s == &session; });
}

// In turn, so that none has all that comes back.
void WriteMemory::wake() {
  wakes_ = false;
  const size_t turns = std::min(kWokenAtOnce, waiting_.size());
  for (size_t i = 0; i < turns && !waiting_.empty(); ++i) {
    Session* session = waiting_.front();
    waiting_.splice(waiting_.end(), waiting_, waiting_.begin());
    session->memory_came_back();
  }
}

}  // namespace sluice::iscsi
