// Parameter list of UNMAP (SBC-4 §5.36.2).
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "scsi/outcome.h"

namespace sluice::scsi {

struct BlockExtent {
  uint64_t lba = 0;
  uint64_t blocks = 0;
};

// A view into the parameter list, which must outlive it.
class UnmapList {
 public:
  explicit UnmapList(ByteView descriptors) : descriptors_(descriptors) {}
  size_t size() const { return descriptors_.size() / 16; }
  BlockExtent at(size_t index) const;

 private:
  ByteView descriptors_;
};

struct UnmapBounds {
  uint64_t blocks = 0;           // capacity
  uint32_t max_descriptors = 0;  // as VPD B0
  uint64_t max_blocks = 0;       // sum over all descriptors, as VPD B0
};

// Too many descriptors or blocks: 05/26/00 at the offending field. Outside the capacity: 05/21/00
// with the first LBA outside as INFORMATION. A list length below 8 is 05/1A/00 unless it is 0.
Outcome<UnmapList> parse_unmap(ByteView cdb, const UnmapBounds& bounds, ByteView data);

}  // namespace sluice::scsi
