// Finding out who holds what we want, for error messages a person can act on.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/result.h"

namespace sluice::backend {

// An flock on the very file description that will do the I/O (DESIGN R2): in-flight I/O of a killed
// process keeps the description, and with it the lock, alive. Readers share, a writer is alone.
Result<void> lock_file(int fd, const std::string& path, bool shared);

// "process 1234 (qemu-img)", for the flock on a file; "another process" when the kernel hides it
// (another PID namespace).
std::string describe_lock_holder(dev_t device, ino_t inode);

// Who may be using a block device: a mount, a device stacked on it or a process that has it open.
std::string describe_device_user(dev_t device, const std::string& path);

}  // namespace sluice::backend
