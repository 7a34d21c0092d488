#include "net/submission_queue.h"

#include <cstring>
#include <utility>

#include "base/end_process.h"
#include "net/completion_tag.h"

namespace sluice::net {
SubmissionQueue::SubmissionQueue(unsigned reactor, Nanos (*clock)())
    : reactor_(reactor), clock_(clock), guard_(clock()) {}

Result<RingFeatures> SubmissionQueue::open(unsigned entries) {
  Result<RingFeatures> features = open_ring(&ring_, entries);
  open_ = features.ok();
  return features;
}

void SubmissionQueue::close() {
  if (std::exchange(open_, false)) io_uring_queue_exit(&ring_);
}

io_uring_sqe* SubmissionQueue::sqe() {
  io_uring_sqe* sqe = io_uring_get_sqe(&ring_);
  while (!sqe) {
    submit_full_queue();
    sqe = io_uring_get_sqe(&ring_);
  }
  return sqe;
}

void SubmissionQueue::make_room(unsigned entries) {
  while (io_uring_sq_space_left(&ring_) < entries) submit_full_queue();
}

// The reactor may have stood still since it checked for that at the begin of this iteration.
void SubmissionQueue::submit_full_queue() {
  if (late(clock_())) withdraw();
  require_submitted(io_uring_submit(&ring_));
}

void SubmissionQueue::submit_and_wait(Nanos busy_poll) {
  if (busy_poll > 0) {
    require_submitted(io_uring_submit(&ring_));
    const Nanos until = clock_() + busy_poll;
    do {
      io_uring_get_events(&ring_);
      if (io_uring_cq_ready(&ring_) != 0) return;
    } while (clock_() < until);
  }
  require_submitted(io_uring_submit_and_wait(&ring_, 1));
}

// The kernel has the entries, or gets them with the next call. A ring that takes none ends the
// process: its commands would never complete, and another gateway can take their volumes over.
void SubmissionQueue::require_submitted(int result) const {
  if (submission_of(result) != Submission::kFailed) return;
  end_process("io_uring takes no more entries, the gateway kills itself",
              {{"reactor", reactor_}, {"error", std::strerror(-result)}});
}

bool SubmissionQueue::changes_data(AioOp::Kind kind) {
  return kind == AioOp::Kind::kWritev || kind == AioOp::Kind::kFallocate ||
         kind == AioOp::Kind::kDiscard;
}

void SubmissionQueue::withdraw() {
  io_uring_sq& queue = ring_.sq;
  for (unsigned at = *queue.khead; at != queue.sqe_tail; ++at) {
    io_uring_sqe* e = &queue.sqes[at & queue.ring_mask];
    if (kind_of(e->user_data) != CompletionKind::kAio) continue;
    auto* op = static_cast<AioOp*>(owner_of(e->user_data));
    if (!changes_data(op->kind)) continue;
    io_uring_prep_nop(e);
    tag(e, nullptr, CompletionKind::kIgnore);
    withdrawn_.push_back(op);
  }
}

std::vector<AioOp*> SubmissionQueue::take_withdrawn() { return std::exchange(withdrawn_, {}); }

}  // namespace sluice::net
