// Finds which process holds a lock or uses a device, for error messages.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/result.h"

namespace sluice::backend {

// Takes an flock on the file description that will do the I/O (DESIGN R2): in-flight I/O of a
// killed process keeps the description and thus the lock alive. `shared`: for readers; a writer
// excludes all others.
Result<void> lock_file(int fd, const std::string& path, bool shared);

// "process 1234 (qemu-img)" for the flock on a file; "another process" if the kernel hides it
// (another PID namespace).
std::string describe_lock_holder(dev_t device, ino_t inode);

// The user of a block device: a mount, a device stacked on it or a process that has it open.
std::string describe_device_user(dev_t device, const std::string& path);

}  // namespace sluice::backend
