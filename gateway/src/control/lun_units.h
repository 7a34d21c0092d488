// The units of LUNs that the control plane defines: those of the volumes, unless the LUN number
// still belongs to another volume (lun_numbers.h).
//
// Threads: the control thread only.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "control/lun_numbers.h"
#include "control/volume/volumes.h"
#include "desired/units.h"

namespace sluice::control {

class LunUnits final : public desired::Units {
 public:
  LunUnits(Volumes& volumes, LunNumbers& numbers) : volumes_(volumes), numbers_(numbers) {}

  // --- desired::Units
  Result<std::shared_ptr<lun::Unit>> unit_for(const std::string& iqn,
                                              const desired::Lun& lun) override;
  void shown(const std::string& iqn, const std::vector<lun::Target::LunEntry>& luns) override;

 private:
  Volumes& volumes_;
  LunNumbers& numbers_;
};

}  // namespace sluice::control
