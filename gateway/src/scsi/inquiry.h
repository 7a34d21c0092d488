// INQUIRY (SPC-5 §6.7): standard data and vital product data pages.
#pragma once

#include "base/bytes.h"
#include "scsi/block_limits.h"
#include "scsi/command_table.h"
#include "scsi/identity.h"
#include "scsi/outcome.h"
#include "scsi/third_party_copy_limits.h"

namespace sluice::scsi {

// PERIPHERAL QUALIFIER and PERIPHERAL DEVICE TYPE, the first byte of all INQUIRY data.
enum class Peripheral : uint8_t {
  kBlockDevice = 0x00,
  kWellKnownUnit = 0x1e,  // REPORT LUNS well-known logical unit
  kAbsent = 0x7f,         // no unit under this LUN, SAM-5 §4.6.4 (incorrect selection)
};

struct InquiryUnit {
  Peripheral peripheral = Peripheral::kBlockDevice;
  Identity identity{};
  PortIdentity port{};
  Support support{};
  BlockLimits limits{};
  BlockCharacteristics characteristics{};
  Provisioning provisioning{};
  ThirdPartyCopyLimits copy{};
  bool volatile_cache = false;  // V_SUP: the write cache can be on (DESIGN R12)
};

// Checks EVPD and PAGE CODE and builds the page. For kAbsent and kWellKnownUnit only what those
// have is answered; identity, limits and so on may then be left as they are.
Outcome<size_t> build_inquiry(ByteView cdb, const InquiryUnit& unit, MutableBytes out);

// --- single pages without a CDB
size_t build_standard_inquiry(const InquiryUnit& unit, MutableBytes out);
// false: there is no such page.
bool build_vpd_page(uint8_t page, const InquiryUnit& unit, MutableBytes out, size_t* size);

}  // namespace sluice::scsi
