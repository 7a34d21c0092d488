#include "scsi/mode_page_bytes.h"

#include "base/bytes.h"

namespace sluice::scsi {
namespace {

constexpr uint8_t kErrorRecovery = 0x01;
constexpr uint8_t kCaching = 0x08;
constexpr uint8_t kControl = 0x0a;
constexpr uint8_t kPowerCondition = 0x1a;
constexpr uint8_t kInformationalExceptions = 0x1c;

constexpr ModePageId kPages[] = {
    {kErrorRecovery, 0}, {kCaching, 0},        {kControl, 0},
    {kControl, 1},       {kPowerCondition, 0}, {kInformationalExceptions, 0},
};

constexpr uint8_t kWce = 0x04;
constexpr uint8_t kDSense = 0x04;
constexpr uint8_t kSwp = 0x08;

// SBC-4 §6.5.6. Everything but WCE is 0: no read cache control, no prefetch limits.
void fill_caching(ModePage& page, ModeValues values, const ModeUnit& unit) {
  switch (values) {
    case ModeValues::kChangeable:
      if (unit.wce_changeable) page.bytes[2] = kWce;
      break;
    case ModeValues::kDefault:
      if (unit.defaults.wce) page.bytes[2] = kWce;
      break;
    default:
      if (unit.current.wce) page.bytes[2] = kWce;
      break;
  }
}

// SPC-5 §7.5.10
void fill_control(ModePage& page, ModeValues values, const ModeUnit& unit) {
  if (values == ModeValues::kChangeable) {
    page.bytes[2] = kDSense;
    page.bytes[4] = kSwp;
    return;
  }
  const ModeState& state = values == ModeValues::kDefault ? unit.defaults : unit.current;
  page.bytes[2] = 0x20;  // TST 001b: a task set per I_T nexus
  if (state.d_sense) page.bytes[2] |= kDSense;
  page.bytes[3] = 0x10;  // QUEUE ALGORITHM MODIFIER 1: unrestricted reordering; QERR 00b
  if (state.swp) page.bytes[4] = kSwp;
  page.bytes[5] = 0x40;                // TAS: what another nexus aborts ends with TASK ABORTED
  store_be16(&page.bytes[8], 0xffff);  // BUSY TIMEOUT PERIOD: unlimited
}

// SPC-5 §7.5.11
void fill_control_extension(ModePage& page, ModeValues values) {
  if (values == ModeValues::kChangeable) return;
  page.bytes[4] = 0x01;  // IALUAE: implicit asymmetric access, always on (DESIGN R11)
}

// SPC-5 §7.5.14: nothing is monitored, so nothing is ever reported.
void fill_informational_exceptions(ModePage& page, ModeValues values) {
  if (values == ModeValues::kChangeable) return;
  page.bytes[2] = 0x08;  // DEXCPT
}

uint8_t size_of(ModePageId id) {
  switch (id.code) {
    case kCaching:
      return 20;
    case kPowerCondition:
      return 40;
    case kControl:
      return id.subpage == 0 ? 12 : 32;
    default:
      return 12;
  }
}

}  // namespace

std::span<const ModePageId> mode_page_ids() { return kPages; }

ModePage mode_page(ModePageId id, ModeValues values, const ModeUnit& unit) {
  ModePage page;
  page.code = id.code;
  page.subpage = id.subpage;
  page.size = size_of(id);
  page.bytes[0] = id.code;  // PS 0: nothing can be saved
  if (id.subpage == 0) {
    page.bytes[1] = static_cast<uint8_t>(page.size - 2);
  } else {
    page.bytes[0] |= 0x40;  // SPF
    page.bytes[1] = id.subpage;
    store_be16(&page.bytes[2], static_cast<uint16_t>(page.size - 4));
  }
  switch (id.code) {
    case kCaching:
      fill_caching(page, values, unit);
      break;
    case kControl:
      if (id.subpage == 0) {
        fill_control(page, values, unit);
      } else {
        fill_control_extension(page, values);
      }
      break;
    case kInformationalExceptions:
      fill_informational_exceptions(page, values);
      break;
    default:
      break;  // error recovery, power condition: nothing of theirs exists here, all 0
  }
  return page;
}

}  // namespace sluice::scsi
