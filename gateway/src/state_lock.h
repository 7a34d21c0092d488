// The lock on a state directory, which ensures that only one process uses it.
#pragma once

#include <string>

#include "base/file_descriptor.h"
#include "base/result.h"

namespace sluice {

struct StateLock {
  FileDescriptor directory;  // holds the lock until it is closed
  bool in_use = false;       // with an error: another process holds the lock
};

// Creates the directory (mode 0700) if necessary and locks it (flock(2)) without waiting. Error:
// unusable or in use; with the pid of the other process if /proc/locks shows it.
Result<void> lock_state_directory(const std::string& path, StateLock* lock);

}  // namespace sluice
