// How much of a reactor's memory the writes of each unit may hold (DESIGN R14, R15). A unit that
// answers nothing keeps the data of what was written to it: that may be a part of the memory only,
// or all connections of the reactor would find none to receive into.
//
// A unit may hold as much as is free. One that is alone has half of the memory then, n of them have
// a part of n+1 each, and as much is left for who comes next
// (decisions/2026-11-23-memory-of-writes.md).
//
// Threads: one reactor.
#pragma once

#include <cstddef>
#include <list>

#include "lun/nexus.h"

namespace sluice::iscsi {

class Session;

class WriteMemory {
 public:
  explicit WriteMemory(const lun::Lane& lane) : lane_(lane) {}

  // Whether a command of `itl` may be asked for `bytes` now.
  bool admits(lun::Itl& itl, size_t bytes) const;
  // Whether what is written to that unit without being asked for is too much.
  bool full(lun::Itl& itl) const;
  void hold(lun::Itl& itl, size_t bytes);
  void release(lun::Itl& itl, size_t bytes);

  // A session that has writes which were not admitted; it is woken when memory has come back.
  void wait(Session& session);
  void leave(const Session& session);

 private:
  size_t free() const;
  size_t& held_by(lun::Itl& itl) const;
  void wake();

  const lun::Lane& lane_;
  size_t held_ = 0;  // by all units
  std::list<Session*> waiting_;
  bool wakes_ = false;  // wake() was posted
};

}  // namespace sluice::iscsi
