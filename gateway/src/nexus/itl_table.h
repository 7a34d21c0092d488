// The I_T_L nexuses of one I_T nexus, by LUN.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "nexus/itl.h"
#include "scsi/report_luns.h"

namespace sluice::lun {

class ItlTable {
 public:
  // nullptr: none for this LUN.
  Itl* find(uint64_t lun_field) const {
    uint64_t lun = 0;
    if (!scsi::lun_number(lun_field, &lun)) return nullptr;
    if (lun < low_.size()) [[likely]]
      return low_[lun].get();
    return find_high(lun);
  }
  void add(std::shared_ptr<Itl> itl);
  std::vector<Itl*> all() const;  // sorted by LUN
  // Removes those that `stays` rejects, and passes them to `removed`.
  void remove_unless(const std::function<bool(Itl&)>& stays,
                     const std::function<void(const std::shared_ptr<Itl>&)>& removed);
  void clear();

 private:
  Itl* find_high(uint64_t lun) const;

  std::array<std::shared_ptr<Itl>, 256> low_;                    // LUN 0..255
  std::vector<std::pair<uint64_t, std::shared_ptr<Itl>>> high_;  // 256.., sorted
};

}  // namespace sluice::lun
