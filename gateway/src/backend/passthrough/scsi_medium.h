// Parses what a SCSI block device reports: INQUIRY, READ CAPACITY, vital product data, caching mode
// page (SPC-5: INQUIRY command, Vital product data parameters; SBC-4: READ CAPACITY commands, Mode
// parameters for direct access block devices, Vital product data parameters of the same). Pure
// functions; invalid data gives an error, and a missing optional field means that the feature is
// absent.
#pragma once

#include <cstdint>
#include <string>

#include "base/bytes.h"
#include "base/result.h"

namespace sluice::passthrough {

struct ScsiMedium {
  uint64_t blocks = 0;
  uint32_t block_size = 0;         // bytes: 512 or 4096
  bool thin = false;               // LBPME
  bool reads_zeros = false;        // LBPRZ
  bool unmap = false;              // LBPU
  bool write_same_unmap = false;   // LBPWS
  uint64_t max_transfer = 0;       // blocks; 0: not reported
  uint64_t max_unmap = 0;          // blocks of one UNMAP; 0: not reported
  uint64_t max_write_same = 0;     // blocks; 0: not reported
  uint32_t unmap_granularity = 1;  // blocks
  uint32_t unmap_alignment = 0;    // blocks
  bool rotational = false;
  bool volatile_cache = true;  // WCE; assumed if the device does not report it
  bool fua = false;            // DPOFUA
  bool write_protected = false;
};

// Returns vendor and product, such as "Linux scsi_debug". Error: not a disk.
Result<std::string> parse_inquiry(ByteView data);

// READ CAPACITY(16), or (10) if that is refused. Block sizes other than 512 and 4096 are errors.
Result<void> parse_capacity16(ByteView data, ScsiMedium& medium);
Result<void> parse_capacity10(ByteView data, ScsiMedium& medium);

// Bytes, a multiple of the block size; 0 if it exceeds 4 GiB, because no host would unmap such
// ranges.
uint32_t discard_granularity(const ScsiMedium& medium);

bool lists_page(ByteView supported_pages, uint8_t page);         // VPD 00h
void parse_block_limits(ByteView data, ScsiMedium& medium);      // VPD B0h
void parse_characteristics(ByteView data, ScsiMedium& medium);   // VPD B1h
void parse_provisioning(ByteView data, ScsiMedium& medium);      // VPD B2h
void parse_caching(ByteView mode_sense_10, ScsiMedium& medium);  // MODE SENSE(10), page 08h

}  // namespace sluice::passthrough
