#include "metrics/families.h"

#include <algorithm>
#include <limits>

namespace sluice::metrics {
namespace {

// Of the 106 buckets of lun::LatencySnapshot every fourth is shown, a power of two of 1.024 us, and
// of those the ones storage lives in: 8 us to 8.6 s. A series costs the server that scrapes it.
constexpr unsigned kFirstBucket = 12;  // ends at 8.192 us
constexpr unsigned kLastBucket = 92;   // ends at 8.59 s
constexpr unsigned kBucketStep = 4;

constexpr double kNanosPerSecond = 1e9;

}  // namespace

prometheus::ClientMetric& Families::series(std::string_view name, std::string_view help,
                                           prometheus::MetricType type, Labels labels) {
  const std::string full = "sluice_gateway_" + std::string(name);
  auto family = std::find_if(families_.begin(), families_.end(),
                             [&](const auto& f) { return f.name == full; });
  if (family == families_.end()) {
    family = families_.insert(family, {full, std::string(help), type, {}});
  }
  prometheus::ClientMetric& metric = family->metric.emplace_back();
  for (auto& [key, value] : labels) metric.label.push_back({std::string(key), std::move(value)});
  return metric;
}

void Families::counter(std::string_view name, std::string_view help, Labels labels, double value) {
  series(name, help, prometheus::MetricType::Counter, std::move(labels)).counter.value = value;
}

void Families::gauge(std::string_view name, std::string_view help, Labels labels, double value) {
  series(name, help, prometheus::MetricType::Gauge, std::move(labels)).gauge.value = value;
}

void Families::histogram(std::string_view name, std::string_view help, Labels labels,
                         const lun::LatencySnapshot& latency) {
  auto& histogram =
      series(name, help, prometheus::MetricType::Histogram, std::move(labels)).histogram;
  uint64_t cumulative = 0;
  for (unsigned i = 0; i < lun::kLatencyBuckets; ++i) {
    cumulative += latency.counts.at(i);
    if (i >= kFirstBucket && i <= kLastBucket && (i - kFirstBucket) % kBucketStep == 0) {
      const auto end = static_cast<double>(lun::latency_bucket_end(i));
      histogram.bucket.push_back({cumulative, end / kNanosPerSecond});
    }
  }
  histogram.bucket.push_back({cumulative, std::numeric_limits<double>::infinity()});
  // Counted from the same buckets, so that the series agree while commands complete.
  histogram.sample_count = cumulative;
  histogram.sample_sum = static_cast<double>(latency.sum) / kNanosPerSecond;
}

}  // namespace sluice::metrics
