// Where the exporter gets the unit of a LUN. config/volumes.h and control/lun_units.h implement it.
//
// Threads: the control thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "desired/state.h"

namespace sluice::desired {

class Units {
 public:
  virtual ~Units() = default;
  // The unit to show as this LUN of the target `iqn`; never null. Error: why the LUN is omitted.
  virtual Result<std::shared_ptr<lun::Unit>> unit_for(const std::string& iqn, const Lun& lun) = 0;
  // The target is about to show exactly these LUNs; none: it was removed.
  virtual void shown(const std::string& iqn, const std::vector<lun::Target::LunEntry>& luns) = 0;
};

}  // namespace sluice::desired
