// Discards and zeroes ranges through a file descriptor, by the best method that the kernel accepts.
// Long ranges proceed in steps. In Io::priv, a is the number of completed bytes and b the method in
// use.
//
// Threads: any, each with its own Ios.
#pragma once

#include <atomic>
#include <cstdint>

#include "backend/backend.h"

namespace sluice::backend {

// Ways to zero or deallocate a range, best first. If the kernel refuses one, the next is used from
// then on.
enum class RangeMethod : uint8_t {
  kPunchHole,   // fallocate: deallocates, reads zeros
  kZeroRange,   // fallocate: keeps the allocation, reads zeros
  kWriteZeros,  // always supported
  // BLKDISCARD: the content is undefined afterwards
  kDeviceDiscard,
};

class RangeEraser {
 public:
  struct Medium {
    int fd = -1;
    BlockingCalls* threads = nullptr;         // of the medium; they outlive the eraser
    BlockingCalls::Strand* strand = nullptr;  // of the medium; nullptr: steps may run in parallel
    uint64_t base = 0;                        // bytes of the medium in front of the LUN
    uint32_t block_size = 512;
    RangeMethod discard = RangeMethod::kPunchHole;  // the first method for kDiscard
  };
  // `step_done` is AioOp::done of each step, whose context is the Io.
  RangeEraser(const Medium& medium, void (*step_done)(AioOp& op, int32_t result))
      : medium_(medium), step_done_(step_done) {}

  // Not to be tried again.
  void refuse(RangeMethod method);

  enum class Progress : uint8_t {
    kSubmitted,  // `step_done` will be called
    kErased,     // the whole range, though not durably
    kFailed,     // Io::result has the errno
  };
  // For kDiscard and kWriteZeroes.
  Progress begin(Io& io);
  // Processes the result of a step.
  Progress advance(Io& io, int64_t result);

 private:
  Progress step(Io& io);
  bool refused(RangeMethod method) const {
    return (refused_.load(std::memory_order_relaxed) >> static_cast<unsigned>(method) & 1) != 0;
  }

  const Medium medium_;
  void (*const step_done_)(AioOp& op, int32_t result);
  // Set when the kernel refuses a method; read on every step, written rarely.
  std::atomic<uint8_t> refused_ = 0;  // bit per RangeMethod
};

}  // namespace sluice::backend
