// Counters of a unit, per reactor and without locked instructions: each cell has one writer, which
// uses a relaxed load and store; readers add up the shards.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "scsi/command_table.h"
#include "scsi/sense.h"
#include "unit/request_ages.h"

namespace sluice::lun {

enum class Activity : uint8_t { kRead, kWrite, kUnmap, kFlush, kOther, kCount };
inline constexpr size_t kActivities = static_cast<size_t>(Activity::kCount);
std::string_view name_of(Activity activity);  // "read", "write", "unmap", "flush", "other"
Activity activity_of(scsi::Operation operation);

// The causes of failed commands.
enum class Failure : uint8_t {
  kMedium,      // sense keys 03, 04
  kNotReady,    // 02
  kIllegal,     // 05
  kAttention,   // 06
  kNoSpace,     // 07/27/07
  kProtected,   // 07, others
  kMiscompare,  // 0E
  kConflict,    // RESERVATION CONFLICT
  kBusy,        // BUSY, TASK SET FULL
  kAborted,     // by task management, a reset or the end of the nexus
  kOther,
  kCount,
};
inline constexpr size_t kFailures = static_cast<size_t>(Failure::kCount);
std::string_view name_of(Failure failure);  // "medium", "not-ready", ...

// Log-linear: 4 buckets per power of two from 1.024 us to 68.7 s, so a quantile is at most 25 %
// off. Bucket 0 has all smaller values, the last bucket all larger ones.
inline constexpr unsigned kLatencyBuckets = 106;
inline constexpr unsigned latency_bucket(Nanos latency) {
  if (latency < 1024) return 0;
  const auto v = static_cast<uint64_t>(latency);
  const unsigned top = 63u - static_cast<unsigned>(__builtin_clzll(v));
  const unsigned bucket = 1 + (top - 10) * 4 + static_cast<unsigned>((v >> (top - 2)) & 3);
  return bucket < kLatencyBuckets ? bucket : kLatencyBuckets - 1;
}
// The first latency above the bucket; INT64_MAX for the last one.
Nanos latency_bucket_end(unsigned bucket);

struct LatencySnapshot {
  std::array<uint64_t, kLatencyBuckets> counts{};
  uint64_t count = 0;  // of all buckets
  uint64_t sum = 0;    // ns
  // Upper bound of the bucket with the quantile `q` (0..1); 0 without commands.
  Nanos quantile(double q) const;
};

// Approximately one instant: each value is exact, but together they may be a few commands apart.
struct UnitSnapshot {
  std::array<uint64_t, kActivities> operations{};  // completed, with or without an error
  uint64_t read_bytes = 0;                         // payload of successful commands
  uint64_t written_bytes = 0;
  std::array<uint64_t, kFailures> failures{};
  uint64_t in_flight = 0;  // commands begun and not complete
  // From the batch that brought a command's PDU to the end of the batch that answered it.
  LatencySnapshot read_latency;
  LatencySnapshot write_latency;
  LatencySnapshot other_latency;
};

class UnitStatistics {
 public:
  explicit UnitStatistics(unsigned reactors);
  ~UnitStatistics();

  class Cell {
   public:
    void add(uint64_t n) {
      value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
    }
    void subtract(uint64_t n) {
      value_.store(value_.load(std::memory_order_relaxed) - n, std::memory_order_relaxed);
    }
    uint64_t get() const { return value_.load(std::memory_order_relaxed); }

   private:
    std::atomic<uint64_t> value_{0};
  };

  struct Latency {
    Cell sum;
    std::array<Cell, kLatencyBuckets> counts;

    void add(Nanos took, uint64_t commands = 1) {
      sum.add(static_cast<uint64_t>(took) * commands);
      counts[latency_bucket(took)].add(commands);
    }
  };

  struct alignas(64) Shard {
    Cell begun;
    // Requests that the backend did not complete at once: begin_request(), end_request().
    std::array<Cell, RequestAges::kPeriods> requests_in_progress;  // by the period of their begin
    Cell requests_completed;
    std::array<Cell, kActivities> operations;
    Cell read_bytes;
    Cell written_bytes;
    std::array<Cell, kFailures> failures;
    std::array<Latency, 3> latency;  // read, write, other
    // Internal: bytes of data-out that the transport buffers on this reactor for commands of the
    // unit, or has reserved (iscsi/write_buffer_quota.h).
    size_t data_out_held = 0;
    Nanos data_out_given_back = 0;  // when some of it was last released

    // Counts a command that ended. Its latency is added to the result later, when it is known
    // (unit/latency_log.h).
    Latency& complete(Activity activity) {
      operations[static_cast<size_t>(activity)].add(1);
      return latency[activity == Activity::kRead ? 0 : activity == Activity::kWrite ? 1 : 2];
    }
    void fail(Failure failure) { failures[static_cast<size_t>(failure)].add(1); }
  };

  // The shard of a reactor; only that reactor's thread may call it.
  Shard& shard(unsigned reactor) {
    Shard* l = shards_[reactor].load(std::memory_order_relaxed);
    return l ? *l : make_shard(reactor);
  }
  UnitSnapshot snapshot() const;  // any thread

  // Numbers of requests of commands that the backend did not complete at once.
  struct Requests {
    std::array<uint64_t, RequestAges::kPeriods> by_period{};  // in progress
    uint64_t completed = 0;
    uint64_t in_progress() const;
  };
  Requests requests() const;  // any thread
  // On the reactor of the shard. The result is for end_request().
  uint8_t begin_request(Shard& shard) const {
    const uint8_t period = ages_.current();
    shard.requests_in_progress[period].add(1);
    return period;
  }
  static void end_request(Shard& shard, uint8_t period) {
    shard.requests_in_progress[period].subtract(1);
    shard.requests_completed.add(1);
  }
  // Whether a request is hung (unit/request_ages.h). One thread.
  bool has_hung_request(const Requests& now_in_progress, Nanos now) {
    return ages_.poll(now_in_progress.by_period, now);
  }
  uint64_t failures(Failure failure) const;  // any thread

 private:
  Shard& make_shard(unsigned reactor);
  RequestAges ages_;
  // created at a reactor's first command, because there may be many units
  std::vector<std::atomic<Shard*>> shards_;
};

}  // namespace sluice::lun
