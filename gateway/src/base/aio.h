// The one door through which backends reach the kernel's asynchronous I/O. net/ implements it on
// the reactor's io_uring; tests implement it with a thread-free queue of their own.
//
// Threads: an Aio belongs to one reactor. submit() and done() run on that reactor's thread;
// complete() on any. Ownership: the AioOp is the caller's and must live, unmoved, until done() was
// called.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstdint>
#include <cstdlib>

namespace sluice {

struct AioOp {
  enum class Kind : uint8_t {
    kReadv,      // preadv2(fd, iov, iovcnt, offset, rw_flags)
    kWritev,     // pwritev2(fd, iov, iovcnt, offset, rw_flags)
    kFdatasync,  // fdatasync(fd)
    kFallocate,  // fallocate(fd, mode, offset, length)
    kDiscard,    // BLKDISCARD of [offset, offset+length); -EOPNOTSUPP before Linux 6.12
    kTimeout,    // completes with 0 after `length` nanoseconds; fd unused
    kPoll,       // poll(fd, POLLIN), once: completes with the events, POLLHUP and POLLERR included
    kExternal,   // ends by Aio::complete(), whoever calls that; nothing goes to the kernel
  };
  Kind kind = Kind::kReadv;
  int fd = -1;
  int rw_flags = 0;     // RWF_*
  int mode = 0;         // FALLOC_FL_*
  uint32_t iovcnt = 0;  // at most IOV_MAX
  const iovec* iov = nullptr;
  uint64_t offset = 0;  // bytes
  uint64_t length = 0;  // bytes (nanoseconds for kTimeout)
  // Called exactly once, never from inside submit(). result: bytes or 0, or a negative errno.
  void (*done)(AioOp& op, int32_t result) = nullptr;
  void* context = nullptr;  // the submitter's
  AioOp* next = nullptr;    // the implementation's, while the ring is full
  int32_t result = 0;       // the implementation's, of kExternal
};

class Aio {
 public:
  virtual ~Aio() = default;
  // Never fails and never blocks: when the ring is full the operation waits its turn in a list
  // threaded through AioOp::next. Errors of the operation itself come through done().
  virtual void submit(AioOp& op) = 0;

  // Ends a kExternal operation that was submitted, exactly once, from any thread: done() is called
  // with `result` on the reactor's thread. Takes no lock. For libraries that have threads of their
  // own (librbd). Whoever never submits a kExternal operation needs none.
  virtual void complete(AioOp& /*op*/, int32_t /*result*/) { std::abort(); }
};

}  // namespace sluice
