#include "iscsi/write_buffer_quota.h"

#include <algorithm>
#include <utility>

#include "base/limits.h"
#include "base/safety_mutation.h"
#include "unit/statistics.h"
#include "unit/unit.h"

namespace sluice::iscsi {
namespace {

// Waiters that are notified at once. The others are notified next.
constexpr size_t kNotifiedAtOnce = 8;

// Data that finds no other memory may stay in the receive buffers.
constexpr size_t kReceiveRing = size_t{limits::kReceiveBuffers} * limits::kReceiveBufferSize;

size_t above(size_t bytes, size_t reserve) { return bytes > reserve ? bytes - reserve : 0; }

}  // namespace

lun::UnitStatistics::Shard& WriteBufferQuota::unit_shard(lun::CommandContext& itl) const {
  return itl.unit().statistics().shard(context_.reactor);
}

size_t& WriteBufferQuota::held_by(lun::CommandContext& itl) const {
  return unit_shard(itl).data_out_held;
}

bool WriteBufferQuota::admits(lun::CommandContext& itl, size_t bytes, size_t own, Nanos& since) {
  if (mutation_disables(Guard::kMemoryShare)) return true;
  const size_t budget = context_.buffers->budget();
  const size_t reserve = budget / limits::kReceiveReserve;
  const size_t room = above(free(), reserve);
  const size_t held = held_by(itl) - own;
  const bool fits = bytes <= above(free(), reserve / 2);
  // A command that is alone need not leave a reserve. With two, each would wait for the other.
  if (held == 0) {
    const bool alone = held_ == own && room != 0 && bytes <= free() + kReceiveRing;
    return admits_first(since, fits || alone, true);
  }
  const bool shares = held + 2 * bytes <= room;
  if (itl.asked_for != 0) return !slice_of_another(since) && shares;
  // The first command of a nexus: other writers of the same unit could starve it. It gets a slice
  // only if the unit gives memory back; a unit that hangs would delay the others for nothing.
  const bool first = fits && free() > budget / limits::kFirstWriteReserve;
  const Nanos given_back = unit_shard(itl).data_out_given_back;
  return admits_first(since, shares || first, since != 0 && given_back > since);
}

// Reads, like writes, hold at most as many bytes as are free. Otherwise many peers that read slowly
// would leave the reactor no memory to receive into.
bool WriteBufferQuota::admits_read(size_t bytes, size_t waiting, Nanos& since) {
  const size_t budget = context_.buffers->budget();
  const size_t reserve = budget / limits::kReceiveReserve;
  if (waiting == 0) {
    // A first read may be larger, but not at the cost of data that others were asked for.
    const size_t most = reserved_ != 0 ? limits::kMaxTransferBytes : budget / 4;
    return admits_first(since, free() >= reserve / 2 + std::min(bytes, most), true);
  }
  if (slice_of_another(since)) return false;
  return waiting + bytes <= std::min<size_t>(limits::kMaxOutputBytes, above(free(), reserve));
}

// Without time slices a large command would starve while small ones take all returned memory.
bool WriteBufferQuota::admits_first(Nanos& since, bool fits, bool may_have_slice) {
  if (slice_of_another(since)) return false;
  if (fits) {
    if (late_ == &since) late_ = nullptr;
    return true;
  }
  const Nanos now = *context_.now;
  if (since == 0 || had_slice_ == &since) since = now;
  if (had_slice_ == &since) had_slice_ = nullptr;
  if (may_have_slice && (!late_ || since < late_since_)) {
    late_ = &since;
    late_since_ = since;
  }
  if (late_ == &since) late_seen_ = now;
  return false;
}

// A command that was refused for kMemoryPatience has a time slice of kMemorySlice, in which no
// other is admitted. The slices are short and rare, because a unit that hangs gives nothing back.
bool WriteBufferQuota::slice_of_another(const Nanos& since) {
  if (!late_) [[likely]]
    return false;
  const Nanos now = *context_.now;
  const Nanos begins = std::max(late_since_, last_slice_) + limits::kMemoryPatience;
  if (now >= begins + limits::kMemorySlice) {
    had_slice_ = std::exchange(late_, nullptr);
    last_slice_ = now;
  } else if (now - late_seen_ > limits::kMemorySlice / 2) {
    late_ = nullptr;  // it no longer asks
  }
  return late_ && late_ != &since && now >= begins;
}

bool WriteBufferQuota::full(lun::CommandContext& itl) const {
  return held_by(itl) > limits::kUnaskedShare * free();
}

void WriteBufferQuota::hold(lun::CommandContext& itl, size_t bytes) {
  held_ += bytes;
  held_by(itl) += bytes;
}

void WriteBufferQuota::release(lun::CommandContext& itl, size_t bytes, size_t reserved) {
  held_ -= bytes;
  reserved_ -= reserved;
  held_by(itl) -= bytes;
  if (bytes != 0) unit_shard(itl).data_out_given_back = *context_.now;
  if (waiting_.empty() || notifies_) return;
  notifies_ = true;
  // Later, because the event that ended this command may be about to end other commands, too.
  context_.reactors->post(context_.reactor, [this] { notify_waiters(); });
}

void WriteBufferQuota::wait(Waiter& waiter) { waiting_.push_back(&waiter); }

void WriteBufferQuota::leave(const Waiter& waiter) {
  waiting_.remove_if([&](const Waiter* w) { return w == &waiter; });
}

// In rotation, so that no session gets all memory that comes back.
void WriteBufferQuota::notify_waiters() {
  notifies_ = false;
  const size_t count = std::min(kNotifiedAtOnce, waiting_.size());
  for (size_t i = 0; i < count && !waiting_.empty(); ++i) {
    Waiter* waiter = waiting_.front();
    waiting_.splice(waiting_.end(), waiting_, waiting_.begin());
    waiter->memory_came_back();
  }
}

}  // namespace sluice::iscsi
