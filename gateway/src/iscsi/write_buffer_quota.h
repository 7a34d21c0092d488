// Limits how much of a reactor's memory the writes of each logical unit hold (DESIGN R14, R15). A
// unit that completes no commands keeps the data of its writes. Without a limit it could occupy all
// memory, and no connection of the reactor could receive anything.
//
// A unit may hold as many bytes as are free. So a single unit gets half of the memory, n units get
// 1/(n+1) each, and the same amount stays free for the next one. Bytes that are reserved for one
// command are available neither to other commands nor to reads
// (gateway/decisions/reactor-and-memory.md).
//
// Threads: one reactor.
#pragma once

#include <cstddef>
#include <list>

#include "base/buffer.h"
#include "base/clock.h"
#include "nexus/nexus.h"
#include "unit/statistics.h"

namespace sluice::iscsi {

class WriteBufferQuota {
 public:
  // A session with writes that were not admitted.
  class Waiter {
   public:
    virtual ~Waiter() = default;
    virtual void memory_came_back() = 0;
  };
  explicit WriteBufferQuota(const lun::ReactorContext& context) : context_(context) {}

  // Bytes that are neither in use nor reserved.
  size_t free() const {
    const size_t available = context_.buffers->available();
    return available > reserved_ ? available - reserved_ : 0;
  }
  // Whether `bytes` may be requested for a command of `itl` now. It holds `own` bytes of
  // unsolicited data. `since`: when the command was first refused, 0 if never; its address
  // identifies the command.
  bool admits(lun::CommandContext& itl, size_t bytes, size_t own, Nanos& since);
  // Whether a read may begin. `waiting`: bytes that its session is reading or has yet to send.
  bool admits_read(size_t bytes, size_t waiting, Nanos& since);
  // Whether the unit holds too much unsolicited data.
  bool full(lun::CommandContext& itl) const;
  void hold(lun::CommandContext& itl, size_t bytes);
  // `reserved`: the part of the bytes that has not arrived.
  void release(lun::CommandContext& itl, size_t bytes, size_t reserved);
  // Bytes that count as held but are in no buffer yet: from the admission of their command until
  // they arrive or the command ends.
  void reserve(size_t bytes) { reserved_ += bytes; }
  void consume(size_t bytes) { reserved_ -= bytes; }

  // Calls waiter.memory_came_back() each time that memory becomes available, until leave().
  void wait(Waiter& waiter);
  void leave(const Waiter& waiter);

 private:
  bool admits_first(Nanos& since, bool fits, bool may_have_slice);
  bool slice_of_another(const Nanos& since);
  lun::UnitStatistics::Shard& unit_shard(lun::CommandContext& itl) const;
  size_t& held_by(lun::CommandContext& itl) const;
  void notify_waiters();

  const lun::ReactorContext& context_;
  size_t held_ = 0;      // by all units
  size_t reserved_ = 0;  // included in held_
  // The transfer that has been refused for the longest time is admitted next. The address of its
  // `since` identifies it and is only compared, because the command may be gone.
  const Nanos* late_ = nullptr;
  Nanos late_since_ = 0;
  Nanos late_seen_ = 0;               // when it last asked
  const Nanos* had_slice_ = nullptr;  // it was next but did not succeed: the others come first now
  Nanos last_slice_ = 0;              // end of that slice
  std::list<Waiter*> waiting_;
  bool notifies_ = false;  // notify_waiters() was posted
};

}  // namespace sluice::iscsi
