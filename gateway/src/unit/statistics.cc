#include "unit/statistics.h"

#include <cmath>
#include <numeric>

namespace sluice::lun {

std::string_view name_of(Activity activity) {
  static constexpr std::string_view kNames[] = {"read", "write", "unmap", "flush", "other"};
  static_assert(std::size(kNames) == kActivities);
  return kNames[static_cast<size_t>(activity)];
}

std::string_view name_of(Failure failure) {
  static constexpr std::string_view kNames[] = {"medium",   "not-ready", "illegal",    "attention",
                                                "no-space", "protected", "miscompare", "conflict",
                                                "busy",     "aborted",   "other"};
  static_assert(std::size(kNames) == kFailures);
  return kNames[static_cast<size_t>(failure)];
}

Activity activity_of(scsi::Operation operation) {
  using scsi::Operation;
  switch (operation) {
    case Operation::kRead:
      return Activity::kRead;
    case Operation::kWrite:
    case Operation::kWriteAtomic:
    case Operation::kWriteAndVerify:
      return Activity::kWrite;
    case Operation::kUnmap:
    case Operation::kWriteSame:
      return Activity::kUnmap;
    case Operation::kSynchronizeCache:
      return Activity::kFlush;
    default:
      return Activity::kOther;
  }
}

Nanos latency_bucket_end(unsigned bucket) {
  if (bucket == 0) return 1024;
  if (bucket >= kLatencyBuckets - 1) return INT64_MAX;
  const unsigned octave = (bucket - 1) / 4;
  const unsigned quarter = (bucket - 1) % 4;
  return (Nanos{1024} << octave) + (Nanos{256} << octave) * (quarter + 1);
}

Nanos LatencySnapshot::quantile(double q) const {
  if (count == 0) return 0;
  const auto rank = static_cast<uint64_t>(std::ceil(q * static_cast<double>(count)));
  uint64_t seen = 0;
  for (unsigned i = 0; i < kLatencyBuckets; ++i) {
    seen += counts[i];
    if (seen >= rank && counts[i] != 0) return latency_bucket_end(i);
  }
  return INT64_MAX;
}

UnitStatistics::UnitStatistics(unsigned reactors) : shards_(reactors ? reactors : 1) {}

UnitStatistics::~UnitStatistics() {
  for (auto& shard : shards_) delete shard.load(std::memory_order_relaxed);
}

UnitStatistics::Shard& UnitStatistics::make_shard(unsigned reactor) {
  auto* shard = new Shard;
  shards_[reactor].store(shard, std::memory_order_release);
  return *shard;
}

namespace {

void add(LatencySnapshot& to, const UnitStatistics::Latency& from) {
  for (unsigned i = 0; i < kLatencyBuckets; ++i) {
    const uint64_t n = from.counts[i].get();
    to.counts[i] += n;
    to.count += n;
  }
  to.sum += from.sum.get();
}

}  // namespace

UnitStatistics::Requests UnitStatistics::requests() const {
  Requests all;
  for (const auto& pointer : shards_) {
    const Shard* shard = pointer.load(std::memory_order_acquire);
    if (!shard) continue;
    all.completed += shard->requests_completed.get();
    for (unsigned p = 0; p < RequestAges::kPeriods; ++p) {
      all.by_period[p] += shard->requests_in_progress[p].get();
    }
  }
  return all;
}

uint64_t UnitStatistics::Requests::in_progress() const {
  return std::accumulate(by_period.begin(), by_period.end(), uint64_t{0});
}

uint64_t UnitStatistics::failures(Failure failure) const {
  uint64_t all = 0;
  for (const auto& pointer : shards_) {
    const Shard* shard = pointer.load(std::memory_order_acquire);
    if (shard) all += shard->failures[static_cast<size_t>(failure)].get();
  }
  return all;
}

UnitSnapshot UnitStatistics::snapshot() const {
  UnitSnapshot all;
  uint64_t begun = 0;
  uint64_t ended = 0;
  for (const auto& pointer : shards_) {
    const Shard* shard = pointer.load(std::memory_order_acquire);
    if (!shard) continue;
    for (size_t i = 0; i < kActivities; ++i) {
      const uint64_t n = shard->operations[i].get();
      all.operations[i] += n;
      ended += n;
    }
    // Read after the ended commands, so that the difference is never negative.
    begun += shard->begun.get();
    all.read_bytes += shard->read_bytes.get();
    all.written_bytes += shard->written_bytes.get();
    for (size_t i = 0; i < kFailures; ++i) all.failures[i] += shard->failures[i].get();
    add(all.read_latency, shard->latency[0]);
    add(all.write_latency, shard->latency[1]);
    add(all.other_latency, shard->latency[2]);
  }
  all.in_flight = begun > ended ? begun - ended : 0;
  return all;
}

}  // namespace sluice::lun
