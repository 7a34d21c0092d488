// Parameter list of EXTENDED COPY(LID1) (SPC-5 §6.4): block-to-block copies between logical units
// named by their designators.
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "scsi/outcome.h"
#include "scsi/third_party_copy_limits.h"

namespace sluice::scsi {

// Identification descriptor CSCD descriptor (E4h), SPC-5 §6.4.5.3 (SPC-4 §6.4.5.5).
struct CscdDescriptor {
  ByteView designator{};  // 4-byte header and designator, fit for designates() in identity.h
  uint8_t device_type = 0;
  bool pad = false;
  uint32_t block_length = 0;  // bytes, as the initiator believes
};

// Block device to block device segment descriptor (02h), SPC-5 §6.4.6.5.
struct CopySegment {
  uint16_t source = 0;  // CSCD descriptor index; may be out of range: unreachable_cscd()
  uint16_t destination = 0;
  bool cat = false;
  bool destination_count = false;  // DC: `blocks` counts destination blocks, else source blocks
  uint16_t blocks = 0;
  uint64_t source_lba = 0;
  uint64_t destination_lba = 0;
};

// Views into the parameter list, which must outlive it.
struct XcopyList {
  uint8_t list_id = 0;
  uint8_t list_id_usage = 0;  // 00b, 10b: the list id is kept for results; 11b: not
  uint8_t priority = 0;
  bool sequential = false;  // STR
  ByteView cscds{};         // E4h descriptors, 32 bytes each
  ByteView segments{};      // 02h descriptors, 28 bytes each

  static constexpr size_t kCscdBytes = 32;
  static constexpr size_t kSegmentBytes = 28;
  size_t cscd_count() const { return cscds.size() / kCscdBytes; }
  size_t segment_count() const { return segments.size() / kSegmentBytes; }
  CscdDescriptor cscd(size_t index) const;
  CopySegment segment(size_t index) const;
  bool retains_results() const { return list_id_usage != 3; }
};

// Longest CSCD plus segment descriptor list of EXTENDED COPY(LID1), bytes.
uint32_t max_descriptor_list(const ThirdPartyCopyLimits& limits);

// A PARAMETER LIST LENGTH of 0 gives an empty list: nothing to do, GOOD.
// Errors: 05/1A/00 (lengths), 05/26/06 and 05/26/08 (too many), 05/26/07 and 05/26/09 (descriptor
// type), 05/26/0B (inline data), 05/26/00.
Outcome<XcopyList> parse_xcopy(ByteView cdb, const ThirdPartyCopyLimits& limits, ByteView data);

// COPY ABORTED, 08/04 UNREACHABLE COPY TARGET: a segment names a CSCD that isn't there or isn't
// ours. Bytes 2 and 3 of COMMAND-SPECIFIC INFORMATION hold the segment, the segment pointer is at
// its source or destination index (SPC-5 §5.18.7.4; SPC-4 §5.17.7.4).
Sense unreachable_cscd(uint16_t segment, bool destination = false);
// COPY ABORTED for any other failure of a segment: 0D/02 COPY TARGET DEVICE NOT REACHABLE when
// `cause` is NOT READY, else 0D/01 THIRD PARTY DEVICE FAILURE. The sense data has the status and
// the sense data of the unit that failed (SPC-5 §5.18.7.4). `residual` > 0: blocks of the segment
// not written though others were.
Sense copy_aborted(uint16_t segment, const CopyCause& cause, uint64_t residual = 0);

}  // namespace sluice::scsi
