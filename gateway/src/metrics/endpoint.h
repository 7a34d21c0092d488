// The HTTP endpoint that Prometheus scrapes: GET /metrics and GET /metrics/lun-latency.
//
// Threads: two of its own. Bounded: a third client waits, a slow one is dropped after 5 s.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "metrics/collector.h"

namespace sluice::metrics {

class Endpoint {
 public:
  // `address` is "ip:port"; port 0 selects a free one.
  static Result<std::unique_ptr<Endpoint>> start(const std::string& address, Sources sources);
  virtual ~Endpoint() = default;
  virtual int port() const = 0;
};

}  // namespace sluice::metrics
