// The set of reactor threads as the rooms below net/ see it: a number of lanes and a way to run
// something on one of them. net/ implements it over rings, tests over a plain queue.
#pragma once

#include <functional>

#include "base/clock.h"

namespace sluice {

class Reactors {
 public:
  virtual ~Reactors() = default;
  virtual unsigned count() const = 0;
  // The reactor whose thread calls; count() when called from any other thread.
  virtual unsigned current() const = 0;
  // Runs `task` on that reactor's thread, after return, in the order posted from one thread.
  // For what happens rarely (resets, reloads, logins): it allocates. Dropped at shutdown.
  virtual void post(unsigned reactor, std::function<void()> task) = 0;
};

}  // namespace sluice
