// MODE SELECT (SPC-5 §6.11, §6.12), MODE SENSE (§6.13, §6.14), and mode pages (§7.5; SBC-4 §6.5).
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "scsi/outcome.h"

namespace sluice::scsi {

// Everything MODE SELECT can change.
struct ModeState {
  bool wce = false;      // caching page: write cache enabled
  bool d_sense = false;  // control page: descriptor format sense data
  bool swp = false;      // control page: software write protect
  bool operator==(const ModeState&) const = default;
};

struct ModeUnit {
  ModeState current{};
  ModeState defaults{};
  bool wce_changeable = true;    // false: WCE is shown but can't be set
  bool write_protected = false;  // WP of the header: for whatever reason, SWP included
  uint64_t blocks = 0;
  uint32_t block_size = 512;
};

inline constexpr size_t kMaxModeData = 256;  // bytes; no MODE SENSE answer is longer

Outcome<size_t> build_mode_sense(ByteView cdb, const ModeUnit& unit, MutableBytes out);

// What the unit becomes if the parameter list is accepted. An empty list changes nothing.
// `data` is what arrived; shorter than PARAMETER LIST LENGTH is 05/1A/00.
Outcome<ModeState> parse_mode_select(ByteView cdb, const ModeUnit& unit, ByteView data);

}  // namespace sluice::scsi
