#include "net/aio_queue.h"

#include <poll.h>
#include <sys/ioctl.h>

#include <cassert>
#include <cerrno>
#include <memory>

#include "base/clock.h"
#include "net/completion_tag.h"

namespace sluice::net {
namespace {

// BLOCK_URING_CMD_DISCARD of <linux/blkdev.h>, since Linux 6.12. Before, the kernel answers
// EOPNOTSUPP.
constexpr uint32_t kBlockDiscard = _IO(0x12, 0);

}  // namespace

// A kTimeout in flight: the kernel reads the time when the entry is submitted.
struct AioQueue::Timer {
  __kernel_timespec span{};
  AioOp* op = nullptr;
};

void AioQueue::submit(AioOp& op) {
  if (op.kind == AioOp::Kind::kExternal) {
    ++in_flight_;
    return;
  }
  io_uring_sqe* e = submissions_.sqe();
  switch (op.kind) {
    case AioOp::Kind::kReadv:
      io_uring_prep_readv2(e, op.fd, op.iov, op.iovcnt, op.offset, op.rw_flags);
      break;
    case AioOp::Kind::kWritev:
      io_uring_prep_writev2(e, op.fd, op.iov, op.iovcnt, op.offset, op.rw_flags);
      break;
    case AioOp::Kind::kFdatasync:
      io_uring_prep_fsync(e, op.fd, IORING_FSYNC_DATASYNC);
      break;
    case AioOp::Kind::kFallocate:
      io_uring_prep_fallocate(e, op.fd, op.mode, static_cast<off_t>(op.offset),
                              static_cast<off_t>(op.length));
      break;
    case AioOp::Kind::kDiscard:
      // Start and length are where the kernel looks for them (block/ioctl.c): `addr` and `addr3`.
      io_uring_prep_rw(IORING_OP_URING_CMD, e, op.fd, nullptr, 0, 0);
      e->cmd_op = kBlockDiscard;
      e->addr = op.offset;
      e->addr3 = op.length;
      break;
    case AioOp::Kind::kTimeout:
      return submit_timeout(e, op);
    case AioOp::Kind::kPoll:
      io_uring_prep_poll_add(e, op.fd, POLLIN);
      break;
    case AioOp::Kind::kExternal:
      break;  // above
  }
  tag(e, &op, CompletionKind::kAio);
  ++in_flight_;
}

void AioQueue::submit_timeout(io_uring_sqe* e, AioOp& op) {
  auto* timer = new Timer;
  timer->span.tv_sec = static_cast<int64_t>(op.length / kSecond);
  timer->span.tv_nsec = static_cast<long long>(op.length % kSecond);
  timer->op = &op;
  io_uring_prep_timeout(e, &timer->span, 0, 0);
  tag(e, timer, CompletionKind::kTimer);
  ++in_flight_;
}

void AioQueue::on_completion(AioOp& op, int32_t result) {
  assert(in_flight_ > 0);
  --in_flight_;
  op.done(op, result);
}

void AioQueue::on_timer(void* timer) {
  const std::unique_ptr<Timer> owned(static_cast<Timer*>(timer));
  on_completion(*owned->op, 0);
}

void AioQueue::complete(AioOp& op, int32_t result) {
  op.result = result;
  op.next = completed_.load(std::memory_order_relaxed);
  while (!completed_.compare_exchange_weak(op.next, &op, std::memory_order_release,
                                           std::memory_order_relaxed)) {
  }
  wakeup_.wake();
}

void AioQueue::run_completed() {
  AioOp* last = completed_.exchange(nullptr, std::memory_order_acquire);
  AioOp* first = nullptr;
  while (last) {
    AioOp* before = last->next;
    last->next = first;
    first = last;
    last = before;
  }
  while (first) {
    AioOp& op = *first;
    first = op.next;
    on_completion(op, op.result);
  }
}

void AioQueue::cancel_unsubmitted() {
  submissions_.withdraw();
  for (AioOp* op : submissions_.take_withdrawn()) on_completion(*op, -ECANCELED);
}

}  // namespace sluice::net
