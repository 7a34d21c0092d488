// What reservations permit one I_T nexus: computed once after each change, then checked per command
// without a lock.
#pragma once

#include <cstdint>

namespace sluice::lun {

struct ReservationRights {
  static constexpr uint32_t kAnything = uint32_t{1} << 16;  // above every scsi::CommandInfo::flags
  // A command needs one flag of each mask.
  uint32_t reserve6 = kAnything;
  uint32_t persistent = kAnything;
  // Permits every command, including those that change or report reservations; if false, these need
  // a separate check.
  bool everything = true;

  bool allow(uint16_t flags) const {
    const uint32_t has = flags | kAnything;
    return (has & reserve6) != 0 && (has & persistent) != 0;
  }
};

}  // namespace sluice::lun
