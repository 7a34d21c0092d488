// What is asked of the target, and in which order.
#pragma once

#include <cstdint>

namespace sluice::bench {

struct Workload {
  uint32_t size = 4096;  // bytes per command
  uint32_t depth = 32;   // commands in flight per session
  uint32_t sessions = 1;
  uint32_t write_percent = 0;
  bool random = true;
  bool verify = false;
  bool discard = false;        // let the kernel throw large payloads away (MSG_TRUNC)
  uint64_t span = 1ull << 30;  // bytes of the LUN in use, from its start
  uint64_t seed = 1;
};

enum class Phase : uint8_t { kFill, kLoad };

// The commands of one session: first, if asked, each block of its share written once; then load.
class Script {
 public:
  Script(const Workload& workload, uint32_t session)
      : workload_(workload),
        blocks_(workload.span / workload.size),
        first_(blocks_ * session / workload.sessions),
        end_(blocks_ * (session + 1) / workload.sessions),
        cursor_(first_),
        random_(workload.seed * 0x9e3779b97f4a7c15 + session + 1) {}

  void start(Phase phase) {
    phase_ = phase;
    cursor_ = first_;
  }

  // False: nothing left to do in this phase.
  bool next(uint64_t* offset, bool* write) {
    if (phase_ == Phase::kFill) {
      if (cursor_ == end_) return false;
      *offset = cursor_++ * workload_.size;
      *write = true;
      return true;
    }
    if (workload_.random) {
      *offset = (draw() >> 8) % blocks_ * workload_.size;
    } else {
      *offset = cursor_ * workload_.size;
      cursor_ = cursor_ + 1 >= end_ ? first_ : cursor_ + 1;
    }
    *write = workload_.write_percent > 0 &&
             (workload_.write_percent == 100 || (draw() >> 32) % 100 < workload_.write_percent);
    return true;
  }

 private:
  uint64_t draw() {  // xorshift64*
    random_ ^= random_ >> 12;
    random_ ^= random_ << 25;
    random_ ^= random_ >> 27;
    return random_ * 0x2545f4914f6cdd1d;
  }

  const Workload& workload_;
  uint64_t blocks_;
  uint64_t first_;
  uint64_t end_;
  uint64_t cursor_;
  uint64_t random_;
  Phase phase_ = Phase::kLoad;
};

}  // namespace sluice::bench
