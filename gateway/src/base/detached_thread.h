// Starts a detached thread.
#pragma once

#include <functional>
#include <system_error>
#include <thread>
#include <utility>

namespace sluice {

// False: the process may have no more threads (RLIMIT_NPROC, pids.max of its control group). `work`
// did not run.
using StartThread = bool (*)(std::function<void()> work);

inline bool start_detached_thread(std::function<void()> work) {
  try {
    std::thread(std::move(work)).detach();
    return true;
  } catch (const std::system_error&) {
    return false;
  }
}

}  // namespace sluice
