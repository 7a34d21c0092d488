// The bandwidth limit of a volume at its owner: token buckets that all reactors share. Only limited
// units use it (Unit::kLimited), so a mutex is cheap enough.
#pragma once

#include <algorithm>
#include <cstdint>
#include <mutex>

#include "base/clock.h"

namespace sluice::lun {

// 0: unlimited. A burst of 0 is the amount of one second.
struct Qos {
  uint64_t iops = 0;        // commands on blocks, per second
  uint64_t iops_burst = 0;  // commands at once, after a pause
  uint64_t bytes_per_second = 0;
  uint64_t bytes_burst = 0;
  bool limits() const { return iops != 0 || bytes_per_second != 0; }
  bool operator==(const Qos&) const = default;
};

class Bandwidth {
 public:
  // Any thread. Starts with full buckets.
  void set(const Qos& qos) {
    const std::lock_guard lock(mutex_);
    commands_.set(qos.iops, qos.iops_burst);
    bytes_.set(qos.bytes_per_second, qos.bytes_burst);
  }

  // Charges one command that transfers `bytes`. False: not now. A command larger than the level
  // overdraws the bucket, so that every command can run eventually.
  bool take(Nanos now, uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    commands_.fill(now);
    bytes_.fill(now);
    if (commands_.empty() || (bytes != 0 && bytes_.empty())) return false;
    commands_.spend(1);
    bytes_.spend(bytes);
    return true;
  }

  // Charges more bytes of an admitted command: a piece of a copy.
  bool take_bytes(Nanos now, uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    bytes_.fill(now);
    if (bytes_.empty()) return false;
    bytes_.spend(bytes);
    return true;
  }

 private:
  class Bucket {
   public:
    void set(uint64_t rate, uint64_t burst) {
      rate_ = static_cast<double>(rate);
      burst_ = static_cast<double>(burst != 0 ? burst : rate);
      level_ = burst_;
    }
    void fill(Nanos now) {
      // The batch times of reactors differ: time before last_ was counted already.
      if (now <= last_) return;
      const double seconds = static_cast<double>(now - last_) / static_cast<double>(kSecond);
      last_ = now;
      level_ = std::min(burst_, level_ + rate_ * seconds);
    }
    bool empty() const { return rate_ > 0 && level_ < 1; }
    void spend(uint64_t n) { level_ -= static_cast<double>(n); }

   private:
    double rate_ = 0;  // per second; 0: unlimited
    double burst_ = 0;
    double level_ = 0;
    Nanos last_ = 0;
  };

  std::mutex mutex_;
  Bucket commands_;
  Bucket bytes_;
};

}  // namespace sluice::lun
