// The threads that run the system calls which may block on one device: a disk, or the file system
// on it. A device that hangs blocks only its own threads (DESIGN R14, R15). io_uring's own workers
// are no substitute: a process has few of them, all devices share them, and a write to one file can
// wait for a write to another (gateway/decisions/local-media.md).
//
// The number of operations in progress is limited. It stays below the queue of the device, so that
// this process alone cannot fill that queue.
//
// Threads: any.
#pragma once

#include <sys/types.h>

#include <memory>

#include "base/aio.h"
#include "base/aio_list.h"
#include "base/detached_thread.h"

namespace sluice::backend {

class DeviceThreads final : public BlockingCalls {
 public:
  // The threads of the device with this number (st_dev of a file, st_rdev of a block device), for
  // the whole process. They exist while anyone has the object; threads in a system call outlive it.
  static std::shared_ptr<DeviceThreads> of(dev_t device);

  // `most`: operations in progress, at least 1. For tests: of() derives it from the device's queue.
  explicit DeviceThreads(unsigned most, StartThread start = start_detached_thread);
  ~DeviceThreads() override;
  DeviceThreads(const DeviceThreads&) = delete;
  DeviceThreads& operator=(const DeviceThreads&) = delete;

  // Calls of one file (ordered_calls.h). The caller keeps it until its last operation is done.
  static std::shared_ptr<Strand> make_strand();

  // As BlockingCalls::submit(). Operations that no thread can run end with -ENOMEM.
  void submit(AioList& ops) override;

  unsigned most() const;

 private:
  struct Shared;
  const std::shared_ptr<Shared> shared_;
};

}  // namespace sluice::backend
