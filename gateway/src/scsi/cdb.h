// Decoded views of CDBs whose variants differ only in layout.
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "scsi/command_table.h"

namespace sluice::scsi {

// READ, WRITE, VERIFY, WRITE AND VERIFY, WRITE SAME, ORWRITE, PRE-FETCH, SYNCHRONIZE CACHE,
// COMPARE AND WRITE, WRITE ATOMIC, GET LBA STATUS (SBC-4 §5): where and how much.
struct BlockRange {
  uint64_t lba = 0;
  uint64_t blocks = 0;  // as the CDB says; READ(6)/WRITE(6) 0 already turned into 256
  uint8_t protect = 0;  // RDPROTECT/WRPROTECT/VRPROTECT, 0..7
  bool dpo = false;
  bool fua = false;
  uint8_t bytchk = 0;   // VERIFY, WRITE AND VERIFY: 0..3
  bool unmap = false;   // WRITE SAME
  bool anchor = false;  // WRITE SAME
  bool ndob = false;    // WRITE SAME(16)
  bool immed = false;   // SYNCHRONIZE CACHE, PRE-FETCH
  uint8_t group = 0;
  uint16_t lba_at = 2;     // byte of the CDB where the LBA starts, for field pointers
  uint16_t blocks_at = 0;  // byte where the count starts
};

// `cdb` was accepted by find_command() as `info`.
BlockRange decode_block_range(const CommandInfo& info, ByteView cdb);

// ALLOCATION LENGTH or PARAMETER LIST LENGTH of any command that has one; 0 for those without.
uint32_t allocation_length(const CommandInfo& info, ByteView cdb);

}  // namespace sluice::scsi
