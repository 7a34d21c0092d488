#include "backend/read_ring.h"

#include <cassert>
#include <cerrno>
#include <cstring>

#include "backend/blocking_call.h"
#include "base/end_process.h"

namespace sluice::backend {

ReadRing::~ReadRing() {
  if (state_ == State::kOpen) io_uring_queue_exit(&ring_);
}

bool ReadRing::open() {
  if (state_ == State::kUnused) {
    state_ = io_uring_queue_init(kMost, &ring_, 0) == 0 ? State::kOpen : State::kRefused;
  }
  return state_ == State::kOpen;
}

void ReadRing::run(std::span<AioOp* const> reads) {
  assert(reads.size() <= kMost);
  if (reads.size() == 1 || !open()) {
    for (size_t left = reads.size(); AioOp * op : reads) {
      op->aio->complete(*op, run_blocking(*op));
      done_(1, --left);
    }
    return;
  }
  for (AioOp* op : reads) {
    io_uring_sqe* e = io_uring_get_sqe(&ring_);
    io_uring_prep_readv2(e, op->fd, op->iov, op->iovcnt, op->offset, op->rw_flags);
    io_uring_sqe_set_data(e, op);
  }
  for (size_t left = reads.size(); left != 0;) {
    const int result = io_uring_submit_and_wait(&ring_, 1);
    if (result < 0 && result != -EINTR && result != -EAGAIN && result != -EBUSY) {
      end_process("io_uring takes no more reads, the gateway kills itself",
                  {{"error", std::strerror(-result)}});
    }
    const size_t count = reap();
    left -= count;
    done_(count, left);
  }
}

// Returns the number of reads that are complete.
size_t ReadRing::reap() {
  std::array<io_uring_cqe*, kMost> done;
  const unsigned count = io_uring_peek_batch_cqe(&ring_, done.data(), kMost);
  for (unsigned i = 0; i < count; ++i) {
    auto* op = static_cast<AioOp*>(io_uring_cqe_get_data(done[i]));
    op->aio->complete(*op, done[i]->res);
  }
  io_uring_cq_advance(&ring_, count);
  return count;
}

}  // namespace sluice::backend
