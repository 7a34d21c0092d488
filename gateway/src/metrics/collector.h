// Collects all metrics when Prometheus requests them; it stores nothing itself.
//
// Threads: Collect() runs on the endpoint's threads and reads snapshots only.
#pragma once

#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

#include <functional>
#include <string>
#include <vector>

#include "iscsi/counters.h"
#include "nexus/exports.h"

namespace sluice::metrics {

struct Sources {
  std::function<iscsi::CountersSnapshot()> counters;
  const lun::Exports* exports = nullptr;
  std::string version;
};

// GET /metrics. For each LUN it has the numbers that alerts and most dashboards use. Kinds of
// failures that a LUN has not had are left out. So 1,000 LUNs are less than 2 MB of text.
class Collector : public prometheus::Collectable {
 public:
  explicit Collector(Sources sources) : sources_(std::move(sources)) {}
  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  const Sources sources_;
};

// GET /metrics/lun-latency: histograms of each LUN. 1,000 LUNs are about 10 MB of text, so they
// have an address of their own.
class LunLatencyCollector : public prometheus::Collectable {
 public:
  explicit LunLatencyCollector(const lun::Exports& exports) : exports_(exports) {}
  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  const lun::Exports& exports_;
};

}  // namespace sluice::metrics
