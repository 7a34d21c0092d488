// What reservations let one I_T nexus do: looked up once after each change of them, then asked per
// command without a lock.
#pragma once

#include <cstdint>

namespace sluice::lun {

struct ReservationRights {
  static constexpr uint32_t kAnything = uint32_t{1} << 16;  // above every scsi::CommandInfo::flags
  // Of each a command needs one flag.
  uint32_t reserve6 = kAnything;
  uint32_t persistent = kAnything;
  // Every command, those that change or show reservations too: these else need a closer look.
  bool everything = true;

  bool allow(uint16_t flags) const {
    const uint32_t has = flags | kAnything;
    return (has & reserve6) != 0 && (has & persistent) != 0;
  }
};

}  // namespace sluice::lun
