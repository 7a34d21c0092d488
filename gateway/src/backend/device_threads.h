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

#include "backend/aio_list.h"
#include "base/aio.h"

namespace sluice::backend {

// Calls of one file that run one after the other, in the order of submission (ordered_calls.h). The
// caller keeps it until its last operation is done.
class DeviceStrand;

class DeviceThreads {
 public:
  // The threads of the device with this number (st_dev of a file, st_rdev of a block device), for
  // the whole process. They exist while anyone has the object; threads in a system call outlive it.
  static std::shared_ptr<DeviceThreads> of(dev_t device);

  // `most`: operations in progress, at least 1. For tests: of() derives it from the device's queue.
  explicit DeviceThreads(unsigned most);
  ~DeviceThreads();
  DeviceThreads(const DeviceThreads&) = delete;
  DeviceThreads& operator=(const DeviceThreads&) = delete;

  static std::shared_ptr<DeviceStrand> make_strand();

  // Runs operations (kReadv, kWritev, kFdatasync, kFallocate or kDiscard), and passes each result
  // to AioOp::aio->complete(). Those with the same AioOp::strand run one after the other. The
  // caller bounds the number of operations.
  void submit(AioList& ops);

  unsigned most() const;

 private:
  struct Shared;
  const std::shared_ptr<Shared> shared_;
};

}  // namespace sluice::backend
