// What a SCSI block device tells of itself: INQUIRY, READ CAPACITY, vital product data, caching
// mode page (SPC-5: INQUIRY command, Vital product data parameters; SBC-4: READ CAPACITY commands,
// Mode parameters for direct access block devices, Vital product data parameters of the same).
// Pure: bytes in, facts or an error out; bad data from a device gives an error, and what it may
// leave out is as if it had nothing of it.
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
  uint64_t max_transfer = 0;       // blocks; 0: not said
  uint64_t max_unmap = 0;          // blocks of one UNMAP; 0: not said
  uint64_t max_write_same = 0;     // blocks; 0: not said
  uint32_t unmap_granularity = 1;  // blocks
  uint32_t unmap_alignment = 0;    // blocks
  bool rotational = false;
  bool volatile_cache = true;  // WCE; assumed when it doesn't tell
  bool fua = false;            // DPOFUA
  bool write_protected = false;
};

// "Linux scsi_debug"; an error for what is no disk.
Result<std::string> parse_inquiry(ByteView data);

// READ CAPACITY(16), or (10) where it is refused. Refuses other block sizes than 512 and 4096.
Result<void> parse_capacity16(ByteView data, ScsiMedium& medium);
Result<void> parse_capacity10(ByteView data, ScsiMedium& medium);

// Bytes, a multiple of the block size; 0 where it is beyond 4 GiB: no host would ever unmap that.
uint32_t discard_granularity(const ScsiMedium& medium);

bool lists_page(ByteView supported_pages, uint8_t page);         // VPD 00h
void parse_block_limits(ByteView data, ScsiMedium& medium);      // VPD B0h
void parse_characteristics(ByteView data, ScsiMedium& medium);   // VPD B1h
void parse_provisioning(ByteView data, ScsiMedium& medium);      // VPD B2h
void parse_caching(ByteView mode_sense_10, ScsiMedium& medium);  // MODE SENSE(10), page 08h

}  // namespace sluice::passthrough
