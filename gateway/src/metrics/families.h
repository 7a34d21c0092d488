// Builds families of Prometheus metrics. Names follow its conventions, which a test checks: prefix
// sluice_gateway_, base units (bytes, seconds), counters end in _total.
#pragma once

#include <prometheus/metric_family.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "unit/statistics.h"

namespace sluice::metrics {

using Labels = std::vector<std::pair<std::string_view, std::string>>;

class Families {
 public:
  // Further calls with the same name add a series to its family.
  void counter(std::string_view name, std::string_view help, Labels labels, double value);
  void gauge(std::string_view name, std::string_view help, Labels labels, double value);
  // Seconds.
  void histogram(std::string_view name, std::string_view help, Labels labels,
                 const lun::LatencySnapshot& latency);

  std::vector<prometheus::MetricFamily> take() { return std::move(families_); }

 private:
  prometheus::ClientMetric& series(std::string_view name, std::string_view help,
                                   prometheus::MetricType type, Labels labels);

  std::vector<prometheus::MetricFamily> families_;
};

}  // namespace sluice::metrics
