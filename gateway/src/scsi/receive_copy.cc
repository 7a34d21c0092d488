#include "scsi/receive_copy.h"

#include <algorithm>
#include <array>
#include <bit>

#include "scsi/response_writer.h"
#include "scsi/xcopy_list.h"

namespace sluice::scsi {

// SPC-5 §6.23
size_t build_operating_parameters(const ThirdPartyCopyLimits& limits, MutableBytes out) {
  ResponseWriter w(out);
  w.u32(0);
  w.u8(0x01);  // SNLID: LIST ID USAGE 11b is understood
  w.zeros(3);
  w.u16(limits.max_cscds);
  w.u16(limits.max_segments);
  w.u32(max_descriptor_list(limits));
  w.u32(limits.max_segment_bytes);
  w.u32(0);  // MAXIMUM INLINE DATA LENGTH
  w.u32(0);  // HELD DATA LIMIT
  w.u32(0);  // MAXIMUM STREAM DEVICE TRANSFER SIZE
  w.u16(0);
  w.u16(limits.total_concurrent);
  w.u8(static_cast<uint8_t>(std::min<uint16_t>(limits.max_concurrent, 0xff)));
  w.u8(limits.granularity_log2);
  w.u8(0);
  w.u8(0);
  w.zeros(3);
  w.u8(2);  // IMPLEMENTED DESCRIPTOR LIST LENGTH
  w.u8(0x02);
  w.u8(0xe4);
  w.set_u32(0, static_cast<uint32_t>(w.full() - 4));
  return w.size();
}

// SPC-5 §6.20. TRANSFER COUNT has 32 bits: the unit is the smallest power of 1024 that fits.
size_t build_copy_status(const CopyResult& result, MutableBytes out) {
  uint64_t count = result.bytes_transferred;
  uint8_t units = 0;  // bytes, KiB, MiB, GiB ...
  while (count > 0xffffffff) {
    count >>= 10;
    ++units;
  }
  ResponseWriter w(out);
  w.u32(8);
  w.u8(static_cast<uint8_t>(result.state));  // HDD 0: no held data
  w.u16(result.segments_processed);
  w.u8(units);
  w.u32(static_cast<uint32_t>(count));
  return w.size();
}

// SPC-5 §6.21
size_t build_receive_data(MutableBytes out) {
  ResponseWriter w(out);
  w.u32(0);
  return w.size();
}

// SPC-5 §6.22
size_t build_failed_segment_details(const CopyResult& result, bool descriptor_sense,
                                    MutableBytes out) {
  ResponseWriter w(out);
  w.u32(0);
  if (result.state != CopyState::kCompletedWithErrors) return w.size();
  w.zeros(52);
  w.u8(static_cast<uint8_t>(result.status));
  w.u8(0);
  std::array<uint8_t, kMaxSenseBytes> sense;
  const size_t size =
      result.status == Status::kCheckCondition ? encode(result.sense, descriptor_sense, sense) : 0;
  w.u16(static_cast<uint16_t>(size));
  w.bytes(ByteView(sense).first(size));
  w.set_u32(0, static_cast<uint32_t>(w.full() - 4));
  return w.size();
}

}  // namespace sluice::scsi
