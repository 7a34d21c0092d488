#include "net/aio_queue.h"

#include <poll.h>
#include <sys/ioctl.h>

#include <cassert>
#include <cerrno>
#include <memory>
#include <thread>

#include "base/clock.h"
#include "net/completion_tag.h"

namespace sluice::net {
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
    case AioOp::Kind::kTimeout:
      return submit_timeout(e, op);
    case AioOp::Kind::kPoll:
      io_uring_prep_poll_add(e, op.fd, POLLIN);
      break;
    case AioOp::Kind::kDiscard:
    case AioOp::Kind::kCall:
    case AioOp::Kind::kExternal:
      break;  // never here
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

void AioQueue::submit_blocking(AioOp& op, BlockingCalls& threads, BlockingCalls::Strand* strand) {
  op.aio = this;
  op.threads = &threads;
  op.strand = strand;
  blocking_.push(op);
  ++in_flight_;
}

void AioQueue::hand_over() {
  while (!blocking_.empty()) {
    BlockingCalls& threads = *blocking_.front()->threads;
    AioList same, others;
    while (AioOp* op = blocking_.pop()) (op->threads == &threads ? same : others).push(*op);
    blocking_ = others;
    threads.submit(same);
  }
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

AioQueue::~AioQueue() {
  while (completing_.load(std::memory_order_acquire) != 0) std::this_thread::yield();
}

void AioQueue::complete(AioOp& op, int32_t result) {
  completing_.fetch_add(1, std::memory_order_relaxed);
  op.result = result;
  op.next = completed_.load(std::memory_order_relaxed);
  while (!completed_.compare_exchange_weak(op.next, &op, std::memory_order_release,
                                           std::memory_order_relaxed)) {
  }
  wakeup_.wake();
  completing_.fetch_sub(1, std::memory_order_release);
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
  AioList kept, withdrawn;
  while (AioOp* op = blocking_.pop()) {
    (SubmissionQueue::changes_data(op->kind) ? withdrawn : kept).push(*op);
  }
  blocking_ = kept;
  while (AioOp* op = withdrawn.pop()) on_completion(*op, -ECANCELED);
  submissions_.withdraw();
  for (AioOp* op : submissions_.take_withdrawn()) on_completion(*op, -ECANCELED);
}

}  // namespace sluice::net
