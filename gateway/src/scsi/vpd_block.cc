#include "scsi/vpd_block.h"

#include "scsi/response_writer.h"

namespace sluice::scsi {
namespace {

void page_header(ResponseWriter& w, uint8_t peripheral, uint8_t page, uint16_t length) {
  w.u8(peripheral);
  w.u8(page);
  w.u16(length);
}

}  // namespace

size_t build_block_limits_page(uint8_t peripheral, const BlockLimits& limits, MutableBytes out) {
  ResponseWriter w(out);
  page_header(w, peripheral, 0xb0, 0x3c);
  w.u8(limits.write_same_non_zero ? 0x01 : 0);  // WSNZ
  w.u8(limits.max_compare_and_write);
  w.u16(limits.optimal_granularity);
  w.u32(limits.max_transfer);
  w.u32(limits.optimal_transfer);
  w.u32(limits.max_prefetch);
  w.u32(limits.max_unmap_blocks);
  w.u32(limits.max_unmap_descriptors);
  w.u32(limits.unmap_granularity);
  w.u32(limits.unmap_alignment_valid ? 0x80000000u | (limits.unmap_alignment & 0x7fffffffu) : 0);
  w.u64(limits.max_write_same);
  w.u32(limits.max_atomic_transfer);
  w.u32(limits.atomic_alignment);
  w.u32(limits.atomic_granularity);
  w.u32(0);  // MAXIMUM ATOMIC TRANSFER LENGTH WITH ATOMIC BOUNDARY: boundaries not supported
  w.u32(0);  // MAXIMUM ATOMIC BOUNDARY SIZE
  return w.size();
}

size_t build_characteristics_page(uint8_t peripheral, const BlockCharacteristics& c,
                                  MutableBytes out) {
  ResponseWriter w(out);
  page_header(w, peripheral, 0xb1, 0x3c);
  w.u16(c.rotational ? 0 : 1);  // MEDIUM ROTATION RATE: not reported, or non-rotating
  w.zeros(58);
  return w.size();
}

size_t build_provisioning_page(uint8_t peripheral, const Provisioning& p, MutableBytes out) {
  ResponseWriter w(out);
  page_header(w, peripheral, 0xb2, 4);
  w.u8(p.threshold_exponent);
  uint8_t flags = 0;
  if (p.unmap) flags |= 0x80;             // LBPU
  if (p.write_same_unmap) flags |= 0x60;  // LBPWS, LBPWS10
  if (p.reads_zeros) flags |= 0x04;       // LBPRZ 001b
  if (p.anchor) flags |= 0x02;            // ANC_SUP
  w.u8(flags);
  w.u8(p.thin ? 0x02 : 0x00);  // PROVISIONING TYPE: thin, or not reported
  w.u8(0);
  return w.size();
}

}  // namespace sluice::scsi
