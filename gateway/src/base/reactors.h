// The reactor threads as the rooms below net/ see them: their number, and a way to run a task on
// one. net/ implements it with rings, tests with a queue.
#pragma once

#include <functional>

#include "base/clock.h"

namespace sluice {

class Reactors {
 public:
  virtual ~Reactors() = default;
  virtual unsigned count() const = 0;
  // The reactor of the calling thread; count() on any other thread.
  virtual unsigned current() const = 0;
  // Runs `task` on that reactor's thread, after this call, in the order in which one thread posts.
  // It allocates, so use it for rare events (resets, reloads, logins). Dropped at shutdown.
  virtual void post(unsigned reactor, std::function<void()> task) = 0;
};

}  // namespace sluice
