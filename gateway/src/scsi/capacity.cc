#include "scsi/capacity.h"

#include <bit>

#include "scsi/response_writer.h"

namespace sluice::scsi {

size_t build_read_capacity_10(const Geometry& geometry, MutableBytes out) {
  const uint64_t last = geometry.blocks - 1;
  ResponseWriter w(out);
  w.u32(last > 0xffffffff ? 0xffffffff : static_cast<uint32_t>(last));
  w.u32(geometry.block_size);
  return w.size();
}

size_t build_read_capacity_16(const Geometry& geometry, const Provisioning& provisioning,
                              MutableBytes out) {
  const uint32_t per_physical =
      geometry.block_size == 0 ? 1 : geometry.physical_block_size / geometry.block_size;
  const auto exponent =
      static_cast<uint8_t>(per_physical == 0 ? 0 : std::bit_width(per_physical) - 1);
  ResponseWriter w(out);
  w.u64(geometry.blocks - 1);
  w.u32(geometry.block_size);
  w.u8(0);                // P_TYPE, PROT_EN: no protection information
  w.u8(exponent & 0x0f);  // LOGICAL BLOCKS PER PHYSICAL BLOCK EXPONENT
  uint16_t word = geometry.lowest_aligned_lba & 0x3fff;
  if (provisioning.thin) word |= 0x8000;                              // LBPME
  if (provisioning.thin && provisioning.reads_zeros) word |= 0x4000;  // LBPRZ
  w.u16(word);
  w.zeros(16);
  return w.size();
}

}  // namespace sluice::scsi
