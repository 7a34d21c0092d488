// Networks with a recent successful login, and configured networks. Capacity is reserved for their
// connections; other networks can't use it (net/admission.h).
//
// Threads: any. The table is bounded: limits::kMaxKnownNetworks.
#pragma once

#include <algorithm>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "iscsi/login/recency_table.h"

namespace sluice::iscsi {

// A network in the form of kernel_address_network().
class KnownNetworks {
 public:
  void succeeded(std::string_view network) {
    const std::lock_guard lock(mutex_);
    recent_.use(network);
  }
  // Replaces the configured networks; ignores empty names.
  void configure(std::vector<std::string> networks) {
    std::erase(networks, std::string());
    std::sort(networks.begin(), networks.end());
    const std::lock_guard lock(mutex_);
    configured_ = std::move(networks);
  }
  bool known(std::string_view network) {
    const std::lock_guard lock(mutex_);
    return recent_.find(network) != nullptr ||
           std::binary_search(configured_.begin(), configured_.end(), network);
  }

 private:
  struct Nothing {};
  std::mutex mutex_;
  RecencyTable<Nothing> recent_{limits::kMaxKnownNetworks};
  std::vector<std::string> configured_;  // sorted
};

}  // namespace sluice::iscsi
