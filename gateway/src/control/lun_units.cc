#include "control/lun_units.h"

#include <chrono>
#include <utility>

namespace sluice::control {
namespace {

int64_t seconds_now() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

Result<std::shared_ptr<lun::Unit>> LunUnits::unit_for(const std::string& iqn,
                                                      const desired::Lun& lun) {
  std::shared_ptr<lun::Unit> unit = volumes_.unit_to_export(lun.volume);
  if (unit == nullptr) {
    return Error{"there is no volume " + lun.volume + " here, or it is refused or leaving"};
  }
  const std::string held = numbers_.held(iqn, lun.number, lun.volume, seconds_now());
  if (!held.empty()) return Error{held};
  return unit;
}

void LunUnits::shown(const std::string& iqn, const std::vector<lun::Target::LunEntry>& luns) {
  LunNumbers::Luns numbers;
  for (const lun::Target::LunEntry& entry : luns) numbers[entry.lun] = entry.unit->uuid_text();
  numbers_.shown(iqn, numbers, seconds_now());
}

}  // namespace sluice::control
