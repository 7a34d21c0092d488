// Units for tests: one per volume name.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "desired/units.h"
#include "unit/test_backend.h"
#include "unit/unit.h"

namespace sluice::desired {

class TestUnits final : public Units {
 public:
  Result<std::shared_ptr<lun::Unit>> unit_for(const std::string& /*iqn*/, const Lun& lun) override {
    if (missing.contains(lun.volume)) return Error{"there is no volume " + lun.volume};
    return unit(lun.volume);
  }
  void shown(const std::string& iqn, const std::vector<lun::Target::LunEntry>& luns) override {
    at_shown();
    numbers[iqn].clear();
    for (const auto& entry : luns) numbers[iqn].insert(entry.lun);
  }

  std::shared_ptr<lun::Unit> unit(const std::string& volume) {
    std::shared_ptr<lun::Unit>& unit = units_[volume];
    if (unit == nullptr) {
      lun::UnitIdentity identity;
      identity.serial = volume;
      unit = std::make_shared<lun::Unit>(identity, std::make_unique<lun::TestBackend>(4096), 1,
                                         nullptr);
    }
    return unit;
  }
  // The volume gets another unit, as if it was closed and opened again.
  void replace(const std::string& volume) { units_.erase(volume); }

  std::set<std::string> missing;                      // volumes without a unit
  std::map<std::string, std::set<uint64_t>> numbers;  // as last reported, by IQN
  std::function<void()> at_shown = [] {};             // called before a target shows its LUNs

 private:
  std::map<std::string, std::shared_ptr<lun::Unit>> units_;
};

}  // namespace sluice::desired
