#include "scsi/lba_status.h"

#include "scsi/response_writer.h"

namespace sluice::scsi {

size_t build_lba_status(std::span<const LbaStatus> extents, MutableBytes out) {
  ResponseWriter w(out);
  w.u32(static_cast<uint32_t>(4 + 16 * extents.size()));  // PARAMETER DATA LENGTH (n - 3)
  w.u32(0);
  for (const LbaStatus& extent : extents) {
    w.u64(extent.lba);
    w.u32(extent.blocks);
    w.u8(static_cast<uint8_t>(extent.mapping));
    w.u24(0);
  }
  return w.size();
}

}  // namespace sluice::scsi
