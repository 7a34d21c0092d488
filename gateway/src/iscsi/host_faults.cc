#include "iscsi/host_faults.h"

#include <algorithm>
#include <utility>

namespace sluice::iscsi {
namespace {

bool same(const HostFault& a, const HostFault& b) {
  return a.kind == b.kind && a.initiator == b.initiator && a.address == b.address &&
         a.target == b.target && a.reason == b.reason;
}

}  // namespace

bool HostFaults::room_for(const HostFault& fault, From from) const {
  constexpr size_t kMost = limits::kMaxReportedInitiators;
  const auto& all = report_.faults;
  if (all.size() >= kMost) return false;
  if (from == From::kStranger && of_strangers_ >= kMost / 2) return false;
  const auto of_address = std::count_if(
      all.begin(), all.end(), [&](const HostFault& one) { return one.address == fault.address; });
  return static_cast<size_t>(of_address) < kMost / 2;
}

void HostFaults::record(HostFault fault, From from) {
  if (fault.reason.size() > HostFault::kMaxReason) fault.reason.resize(HostFault::kMaxReason);
  const std::lock_guard lock(mutex_);
  auto& all = report_.faults;
  const auto at =
      std::find_if(all.begin(), all.end(), [&](const HostFault& one) { return same(one, fault); });
  if (at != all.end()) {
    at->count += fault.count;
  } else if (room_for(fault, from)) {
    if (from == From::kStranger) ++of_strangers_;
    all.push_back(std::move(fault));
  } else {
    report_.others += fault.count;
  }
}

HostFaultReport HostFaults::take_report() {
  const std::lock_guard lock(mutex_);
  of_strangers_ = 0;
  return std::exchange(report_, {});
}

}  // namespace sluice::iscsi
