// An open file or device. Its close may wait for its medium: a sync writes back data, and a file
// system in user space answers close() when it likes. So no reactor makes these calls (DESIGN R14).
//
// Threads: any.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>

#include "base/clock.h"
#include "base/file_descriptor.h"

namespace sluice::backend {

// The number of a block device. For a file: of the device that holds its file system.
dev_t device_of(int fd);

class OpenFile {
 public:
  explicit OpenFile(FileDescriptor fd);
  // Without release(): unlocks the file, and closes it; on another thread if this is a reactor's.
  ~OpenFile();
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  // The number stays that of this object until its end, also after release().
  int fd() const { return fd_; }
  // The end of this object makes the data durable before it closes the file.
  void sync_at_end();

  // Unlocks the file and closes it, on another thread. `released` is called exactly once, on any
  // thread, when both are done. Each call has its own.
  void release(std::function<void()> released);

  // For an open of the same medium: waits until this process has closed the files of the device
  // that are at their end, for at most `bound`. False: it has not. Not on a reactor.
  static bool wait_for_closing(dev_t device, Nanos bound);

 private:
  struct State;
  const std::shared_ptr<State> state_;
  const int fd_;
};

}  // namespace sluice::backend
