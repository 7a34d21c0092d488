// A reactor's ring, and the entries that wait in it for the next system call. A change of data that
// the reactor did not submit in time is withdrawn: hosts may have repeated the command on another
// path, and the original must not overtake it (DESIGN R6).
//
// Threads: the reactor's only, from open() to close().
#pragma once

#include <liburing.h>

#include <vector>

#include "base/aio.h"
#include "base/clock.h"
#include "base/result.h"
#include "base/stall.h"
#include "net/ring.h"

namespace sluice::net {

class SubmissionQueue {
 public:
  // `reactor`: its number, for the log.
  SubmissionQueue(unsigned reactor, Nanos (*clock)());
  ~SubmissionQueue() { close(); }
  SubmissionQueue(const SubmissionQueue&) = delete;
  SubmissionQueue& operator=(const SubmissionQueue&) = delete;

  // Errors: those of open_ring().
  Result<RingFeatures> open(unsigned entries);
  void close();
  io_uring* ring() { return &ring_; }

  // Returns a submission entry; submits the queued ones if the ring is full.
  io_uring_sqe* sqe();
  // Ensures that the next `entries` of sqe() are submitted together, as linked entries must be.
  void make_room(unsigned entries);
  // Submits, and sleeps until an operation completes. Before that it polls for `busy_poll`.
  void submit_and_wait(Nanos busy_poll);

  // An iteration of the reactor begins. True: it is late, as late() says.
  bool begin_iteration(Nanos now) { return guard_.begin_iteration(now); }
  // Whether input of this iteration may be older than limits::kStallLimit.
  bool late(Nanos now) const { return guard_.late(now); }
  Nanos behind(Nanos now) const { return guard_.behind(now); }
  // All old input was discarded.
  void start_over(Nanos now) { guard_.start_over(now); }

  static bool changes_data(AioOp::Kind kind);
  // Withdraws every change of data that is queued and not submitted.
  void withdraw();
  bool has_withdrawn() const { return !withdrawn_.empty(); }
  // The withdrawn operations, which the caller ends.
  std::vector<AioOp*> take_withdrawn();

 private:
  void submit_full_queue();
  void require_submitted(int result) const;

  const unsigned reactor_;
  Nanos (*const clock_)();
  io_uring ring_{};
  bool open_ = false;
  StallGuard guard_;
  std::vector<AioOp*> withdrawn_;  // not reported yet
};

}  // namespace sluice::net
