// How much of a reactor's memory the writes of each unit may hold (DESIGN R14, R15). A unit that
// answers nothing keeps the data of what was written to it: that may be a part of the memory only,
// or all connections of the reactor would find none to receive into.
//
// A unit may hold as much as is free. One that is alone has half of the memory then, n of them have
// a part of n+1 each, and as much is left for who comes next. What was promised to one is promised
// to nobody else, reads included (decisions/2026-11-23-memory-of-writes.md).
//
// Threads: one reactor.
#pragma once

#include <cstddef>
#include <list>

#include "base/buffer.h"
#include "base/clock.h"
#include "lun/nexus.h"
#include "lun/statistics.h"

namespace sluice::iscsi {

class Session;

class WriteMemory {
 public:
  explicit WriteMemory(const lun::Lane& lane) : lane_(lane) {}

  // What may be begun with: neither in use nor promised.
  size_t free() const {
    const size_t available = lane_.buffers->available();
    return available > promised_ ? available - promised_ : 0;
  }
  // Whether a command of `itl` may be asked for `bytes` now; it holds `own` of what came unasked.
  // since: when the command was refused first, 0 if it was not; stays where it is.
  bool admits(lun::Itl& itl, size_t bytes, size_t own, Nanos& since);
  // Whether a read may begin; `waiting`: what its session reads and has to send beside it.
  bool admits_read(size_t bytes, size_t waiting, Nanos& since);
  // Whether what is written to that unit without being asked for is too much.
  bool full(lun::Itl& itl) const;
  void hold(lun::Itl& itl, size_t bytes);
  // `promised`: what of it has not come.
  void release(lun::Itl& itl, size_t bytes, size_t promised);
  // Bytes that are held, but in no buffer yet: from the time their command is let in until they
  // come or it ends.
  void promise(size_t bytes) { promised_ += bytes; }
  void keep(size_t bytes) { promised_ -= bytes; }

  // A session that has writes which were not admitted; it is woken when memory has come back.
  void wait(Session& session);
  void leave(const Session& session);

 private:
  bool admits_first(Nanos& since, bool fits, bool may_have_turn);
  bool turn_of_another(const Nanos& since);
  lun::UnitStatistics::Lane& unit_lane(lun::Itl& itl) const;
  size_t& held_by(lun::Itl& itl) const;
  void wake();

  const lun::Lane& lane_;
  size_t held_ = 0;      // by all units
  size_t promised_ = 0;  // of that
  // Which first transfer finds no memory for the longest time: it has the next turn. By its
  // `since`, for comparison only: it may be gone.
  const Nanos* late_ = nullptr;
  Nanos late_since_ = 0;
  Nanos late_seen_ = 0;              // when it asked last
  const Nanos* had_turn_ = nullptr;  // in vain; it is behind the others now
  Nanos last_turn_ = 0;              // its end
  std::list<Session*> waiting_;
  bool wakes_ = false;  // wake() was posted
};

}  // namespace sluice::iscsi
