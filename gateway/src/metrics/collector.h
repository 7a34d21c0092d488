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

class Collector : public prometheus::Collectable {
 public:
  explicit Collector(Sources sources) : sources_(std::move(sources)) {}
  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  const Sources sources_;
};

}  // namespace sluice::metrics
