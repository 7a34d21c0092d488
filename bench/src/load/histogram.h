// Latencies in nanoseconds, in buckets 0.8 % wide.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace sluice::bench {

class Histogram {
 public:
  void record(uint64_t value) {
    ++buckets_[bucket_of(value)];
    ++count_;
    sum_ += value;
    if (value > max_) max_ = value;
  }

  void merge(const Histogram& other) {
    for (uint32_t i = 0; i < kBuckets; ++i) buckets_[i] += other.buckets_[i];
    count_ += other.count_;
    sum_ += other.sum_;
    max_ = other.max_ > max_ ? other.max_ : max_;
  }

  uint64_t count() const { return count_; }
  uint64_t max() const { return max_; }
  double mean() const {
    return count_ == 0 ? 0 : static_cast<double>(sum_) / static_cast<double>(count_);
  }

  // The smallest value that at least `share` of all values do not exceed, to a bucket's middle.
  double percentile(double share) const {
    if (count_ == 0) return 0;
    const double rank = share * static_cast<double>(count_);
    uint64_t seen = 0;
    for (uint32_t i = 0; i < kBuckets; ++i) {
      seen += buckets_[i];
      if (seen > 0 && static_cast<double>(seen) >= rank) return middle_of(i);
    }
    return static_cast<double>(max_);
  }

 private:
  static constexpr uint32_t kBits = 7;
  static constexpr uint32_t kPerPower = 1u << kBits;
  static constexpr uint32_t kBuckets = (64 - kBits + 1) * kPerPower;

  // Below 128 each value has its own bucket; above, each power of two is cut into 128.
  static uint32_t bucket_of(uint64_t value) {
    if (value < kPerPower) return static_cast<uint32_t>(value);
    const auto power = static_cast<uint32_t>(std::bit_width(value)) - 1;
    const uint32_t shift = power - kBits;
    return (shift + 1) * kPerPower + static_cast<uint32_t>(value >> shift) % kPerPower;
  }
  static double middle_of(uint32_t bucket) {
    if (bucket < kPerPower) return bucket;
    const uint32_t shift = bucket / kPerPower - 1;
    const double width = static_cast<double>(uint64_t{1} << shift);
    return (kPerPower + bucket % kPerPower) * width + (width - 1) / 2;
  }

  std::array<uint64_t, kBuckets> buckets_{};
  uint64_t count_ = 0;
  uint64_t sum_ = 0;
  uint64_t max_ = 0;
};

}  // namespace sluice::bench
