// How much of a reactor's memory the writes of each logical unit may hold (DESIGN R14, R15). A unit
// that completes nothing keeps the data of its writes. If that could be all of the memory, no
// connection of the reactor would find memory to receive into.
//
// A unit may hold as many bytes as are free. So a unit that is alone gets half of the memory, n
// units get 1/(n+1) each, and as much is left for the next. Bytes that are reserved for one command
// are not given to another one, nor to a read (gateway/decisions/reactor-and-memory.md).
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
  // A session's writes that were not admitted.
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
  // Whether a command of `itl` may be asked for `bytes` now. It holds `own` bytes of unsolicited
  // data. `since` is the time at which the command was first refused, 0 if it never was; its
  // address identifies the command.
  bool admits(lun::CommandContext& itl, size_t bytes, size_t own, Nanos& since);
  // Whether a read may begin; `waiting`: bytes that its session reads, or has yet to send.
  bool admits_read(size_t bytes, size_t waiting, Nanos& since);
  // The unit holds too much unsolicited data.
  bool full(lun::CommandContext& itl) const;
  void hold(lun::CommandContext& itl, size_t bytes);
  // `reserved`: those of the bytes that have not come.
  void release(lun::CommandContext& itl, size_t bytes, size_t reserved);
  // Bytes that are held, but in no buffer yet: from the admission of their command until they come
  // or the command ends.
  void reserve(size_t bytes) { reserved_ += bytes; }
  void consume(size_t bytes) { reserved_ -= bytes; }

  // Calls waiter.memory_came_back() each time that memory has come back, until leave().
  void wait(Waiter& waiter);
  void leave(const Waiter& waiter);

 private:
  bool admits_first(Nanos& since, bool fits, bool may_have_turn);
  bool turn_of_another(const Nanos& since);
  lun::UnitStatistics::Lane& unit_lane(lun::CommandContext& itl) const;
  size_t& held_by(lun::CommandContext& itl) const;
  void notify_waiters();

  const lun::ReactorContext& context_;
  size_t held_ = 0;      // by all units
  size_t reserved_ = 0;  // of that
  // The first transfer that has found no memory for the longest time is admitted next. It is known
  // by the address of its `since`, which is only compared: the command may be gone.
  const Nanos* late_ = nullptr;
  Nanos late_since_ = 0;
  Nanos late_seen_ = 0;              // when it asked last
  const Nanos* had_turn_ = nullptr;  // had its turn without success: the others come first now
  Nanos last_turn_ = 0;              // its end
  std::list<Waiter*> waiting_;
  bool notifies_ = false;  // notify_waiters() was posted
};

}  // namespace sluice::iscsi
