// Reads of one thread that run at the same time: the thread starts all of them in a ring of its
// own, and waits for each. A thread for each read would cost twice the CPU time
// (gateway/decisions/local-media.md).
//
// Threads: one. run() blocks until all its reads are complete, so possibly for as long as the
// device hangs.
#pragma once

#include <liburing.h>

#include <array>
#include <cstddef>
#include <functional>
#include <span>
#include <utility>

#include "base/aio.h"

namespace sluice::backend {

class ReadRing {
 public:
  static constexpr size_t kMost = 32;  // reads in one call of run()

  // `done` is called after each completion or several, with their number and that of the reads
  // which are left.
  using Done = std::function<void(size_t completed, size_t left)>;
  explicit ReadRing(Done done) : done_(std::move(done)) {}
  ~ReadRing();
  ReadRing(const ReadRing&) = delete;
  ReadRing& operator=(const ReadRing&) = delete;

  // Sets the ring up, which run() otherwise does. False: the kernel refuses one, now and later.
  bool open();

  // Runs kReadv operations, and passes each result to AioOp::aio->complete(). Without io_uring they
  // run one after the other.
  void run(std::span<AioOp* const> reads);

 private:
  enum class State : uint8_t { kUnused, kOpen, kRefused };

  size_t reap();

  const Done done_;
  State state_ = State::kUnused;
  io_uring ring_{};
};

}  // namespace sluice::backend
