#include "iscsi/write_memory.h"

#include <algorithm>

#include "base/limits.h"
#include "iscsi/session.h"
#include "lun/statistics.h"
#include "lun/unit.h"

namespace sluice::iscsi {
namespace {

// Woken in one go; the others are next.
constexpr size_t kWokenAtOnce = 8;

size_t above(size_t bytes, size_t reserve) { return bytes > reserve ? bytes - reserve : 0; }

}  // namespace

// What was asked for and has not come is in no buffer yet, and what is in buffers may keep more of
// them than its bytes, beside the data of reads.
size_t WriteMemory::free() const {
  return std::min(above(lane_.buffers->budget(), held_), lane_.buffers->available());
}

size_t& WriteMemory::held_by(lun::Itl& itl) const {
  return itl.unit().statistics().lane(lane_.reactor).data_out_held;
}

bool WriteMemory::admits(lun::Itl& itl, size_t bytes) const {
  const size_t budget = lane_.buffers->budget();
  const size_t room = above(free(), budget / limits::kReceiveReserve);
  const size_t held = held_by(itl);
  // The first of a unit needs not fit: memory may be small, and a transfer large.
  if (held == 0) return room != 0;
  // Nor that of a nexus: others that write to the same unit would keep it out for ever.
  if (itl.asked_for == 0 && free() > budget / limits::kFirstWriteReserve) return true;
  return held + 2 * bytes <= room;
}

bool WriteMemory::full(lun::Itl& itl) const {
  return held_by(itl) > limits::kUnaskedShare * free();
}

void WriteMemory::hold(lun::Itl& itl, size_t bytes) {
  held_ += bytes;
  held_by(itl) += bytes;
}

void WriteMemory::release(lun::Itl& itl, size_t bytes) {
  held_ -= bytes;
  held_by(itl) -= bytes;
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
