// A process that shares memory and descriptors with this one, and releases the descriptors when
// this one dies.
//
// Without it, a thread that is blocked in the kernel keeps all descriptors of a killed process: its
// locks stay held and its TCP connections open until the disk of that thread answers. What the
// blocked call itself uses stays open in any case (DESIGN R2). gateway/decisions/local-media.md has
// the reasons and alternatives.
//
// What it does once all threads of this process that can end have ended:
// - It resets TCP connections and closes sockets, pipes and rings.
// - For each device it has one closer close the files, because closing a file may wait for its
//   device.
// - It unmaps the rings, whose mappings would keep them open.
// A descriptor is replaced, not closed: its number never refers to another file, so a call that
// begins late cannot reach a wrong one.
//
// Threads: one at a time.
#pragma once

#include <sys/types.h>

#include <memory>

#include "base/clock.h"
#include "base/result.h"

namespace sluice {

class ReleaseProcess {
 public:
  // Creates the process. Error: the system permits no further process, thread or descriptor.
  static Result<std::unique_ptr<ReleaseProcess>> start();
  ~ReleaseProcess();  // ends it without a release
  ReleaseProcess(const ReleaseProcess&) = delete;
  ReleaseProcess& operator=(const ReleaseProcess&) = delete;

  // Waits until the process would notice the death of this one. False: not within `limit`.
  bool wait_until_ready(Nanos limit) const;
  bool running() const;  // false: it could not be created, or another process has killed it
  pid_t pid() const;     // 0: not known yet

 private:
  struct Parent;
  explicit ReleaseProcess(std::unique_ptr<Parent> parent);
  const std::unique_ptr<Parent> parent_;
};

}  // namespace sluice
