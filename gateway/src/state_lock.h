// One process for each state directory: the lock that a gateway of a cluster holds for its life.
#pragma once

#include <string>

#include "backend/descriptor.h"
#include "base/result.h"

namespace sluice {

struct StateLock {
  backend::FileDescriptor directory;  // holds the lock until it is closed
  bool in_use = false;                // with an error: another process holds it
};

// Makes the directory (mode 0700) if need be and locks it (flock(2)), without waiting. Error: it
// can't be used, or is in use; with the other process' pid where /proc/locks shows it.
Result<void> lock_state_directory(const std::string& path, StateLock* lock);

}  // namespace sluice
