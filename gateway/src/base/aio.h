// The interface through which backends use the kernel's asynchronous I/O. net/ implements it with
// the reactor's io_uring, tests with a queue.
//
// Threads: an Aio belongs to one reactor. submit() and done() run on that reactor's thread,
// complete() on any. Ownership: the AioOp belongs to the caller; it must live and must not move
// until done() was called.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstdint>
#include <cstdlib>

namespace sluice {

class Aio;
class AioList;

// Threads for operations that may block (backend/device_threads.h implements it).
//
// Threads: any.
class BlockingCalls {
 public:
  class Strand;  // operations that run one after the other, in the order of submission

  virtual ~BlockingCalls() = default;
  // Runs operations, and passes each result to AioOp::aio->complete(). Those with the same
  // AioOp::strand run one after the other. The caller bounds the number of operations.
  virtual void submit(AioList& ops) = 0;
};

struct AioOp {
  enum class Kind : uint8_t {
    kReadv,      // preadv2(fd, iov, iovcnt, offset, rw_flags)
    kWritev,     // pwritev2(fd, iov, iovcnt, offset, rw_flags)
    kFdatasync,  // fdatasync(fd)
    kFallocate,  // fallocate(fd, mode, offset, length)
    kDiscard,    // BLKDISCARD of [offset, offset+length); only by submit_blocking()
    kCall,       // call(op), completes with 0; only by submit_blocking()
    kTimeout,    // completes with 0 after `length` nanoseconds; fd unused
    kPoll,       // poll(fd, POLLIN), once: completes with the events, including POLLHUP and POLLERR
    kExternal,   // ends when any thread calls Aio::complete(); the kernel is not involved
  };
  Kind kind = Kind::kReadv;
  int fd = -1;
  int rw_flags = 0;     // RWF_*
  int mode = 0;         // FALLOC_FL_*
  uint32_t iovcnt = 0;  // at most IOV_MAX
  const iovec* iov = nullptr;
  uint64_t offset = 0;  // bytes
  uint64_t length = 0;  // bytes (nanoseconds for kTimeout)
  // kWritev with RWF_DSYNC: the file has no other data to sync, so it may share an fdatasync with
  // others (backend/ordered_calls.h).
  bool shares_sync = false;
  // Called exactly once, never within submit(). result: bytes or 0, or a negative errno.
  void (*done)(AioOp& op, int32_t result) = nullptr;
  void* context = nullptr;  // for the submitter
  // kCall. kWritev by submit_blocking(): the same thread calls it after ENOSPC, before it runs the
  // next operation of the strand.
  void (*call)(AioOp& op) = nullptr;
  // The rest is for the implementation.
  AioOp* next = nullptr;
  Aio* aio = nullptr;
  BlockingCalls* threads = nullptr;
  BlockingCalls::Strand* strand = nullptr;
  int32_t result = 0;
};

class Aio {
 public:
  virtual ~Aio() = default;
  // Never fails and never blocks: if the ring is full, the operation waits in a list linked by
  // AioOp::next. done() reports errors of the operation.
  virtual void submit(AioOp& op) = 0;

  // Like submit(), for an operation that may block: one of `threads` runs it. `strand`: may be
  // nullptr. An Aio whose submit() can wait (in tests) need not implement it.
  virtual void submit_blocking(AioOp& op, BlockingCalls& /*threads*/,
                               BlockingCalls::Strand* /*strand*/) {
    submit(op);
  }

  // Ends a kExternal operation or one of submit_blocking(), exactly once, from any thread: done()
  // is called with `result` on the reactor's thread. Takes no lock. For threads of devices, and for
  // libraries with threads of their own (librbd). An Aio without such operations need not implement
  // it.
  virtual void complete(AioOp& /*op*/, int32_t /*result*/) { std::abort(); }
};

}  // namespace sluice
