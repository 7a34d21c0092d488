#include "scsi/xcopy_list.h"

namespace sluice::scsi {
namespace {

constexpr size_t kHeader = 16;
constexpr uint8_t kIdentificationCscd = 0xe4;
constexpr uint8_t kBlockToBlock = 0x02;
constexpr uint8_t kNoListId = 3;  // LIST ID USAGE 11b

Sense illegal(uint8_t asc, uint8_t ascq) {
  return Sense::make(SenseKey::kIllegalRequest, asc, ascq);
}

Sense bad(size_t at, int bit = -1) {
  return Sense::invalid_field_in_parameter_list(static_cast<uint16_t>(at), bit);
}

// As bad(), under another additional sense code.
Sense bad_descriptor(uint8_t ascq, size_t at) {
  Sense s = bad(at, 7);
  s.ascq = ascq;
  return s;
}

// CSCD descriptors (SPC-5 §6.6.5). LU ID TYPE, NUL and the relative initiator port are ignored:
// SPC-4 made them obsolete or meaningless for designators.
bool check_cscds(ByteView cscds, const ThirdPartyCopyLimits& limits, Sense* sense) {
  for (size_t at = 0; at < cscds.size(); at += XcopyList::kCscdBytes) {
    if (cscds[at] != kIdentificationCscd) {
      *sense = bad_descriptor(0x07, kHeader + at);
      return false;
    }
    if (cscds[at + 7] > 20) {  // DESIGNATOR LENGTH
      *sense = bad(kHeader + at + 7, 7);
      return false;
    }
  }
  if (cscds.size() / XcopyList::kCscdBytes > limits.max_cscds) {
    *sense = bad_descriptor(0x06, 2);
    return false;
  }
  return true;
}

bool check_segments(ByteView segments, size_t offset, const ThirdPartyCopyLimits& limits,
                    Sense* sense) {
  for (size_t at = 0; at < segments.size();) {
    const size_t left = segments.size() - at;
    if (segments[at] != kBlockToBlock) {
      *sense = bad_descriptor(0x09, offset + at);
      return false;
    }
    if (left < XcopyList::kSegmentBytes) {
      *sense = illegal(0x1a, 0x00);
      return false;
    }
    if (load_be16(&segments[at + 2]) != XcopyList::kSegmentBytes - 4) {
      *sense = bad(offset + at + 2, 7);
      return false;
    }
    at += XcopyList::kSegmentBytes;
  }
  if (segments.size() / XcopyList::kSegmentBytes > limits.max_segments) {
    *sense = bad_descriptor(0x08, 8);
    return false;
  }
  return true;
}

}  // namespace

CscdDescriptor XcopyList::cscd(size_t index) const {
  const ByteView d = cscds.subspan(index * kCscdBytes, kCscdBytes);
  CscdDescriptor out;
  out.designator = d.subspan(4, 4 + size_t{d[7]});
  out.device_type = d[1] & 0x1f;
  out.pad = (d[28] & 0x04) != 0;
  out.block_length = load_be24(&d[29]);
  return out;
}

CopySegment XcopyList::segment(size_t index) const {
  const uint8_t* d = &segments[index * kSegmentBytes];
  CopySegment out;
  out.destination_count = (d[1] & 0x02) != 0;
  out.cat = (d[1] & 0x01) != 0;
  out.source = load_be16(d + 4);
  out.destination = load_be16(d + 6);
  out.blocks = load_be16(d + 10);
  out.source_lba = load_be64(d + 12);
  out.destination_lba = load_be64(d + 20);
  return out;
}

uint32_t max_descriptor_list(const ThirdPartyCopyLimits& limits) {
  return static_cast<uint32_t>(limits.max_cscds * XcopyList::kCscdBytes +
                               limits.max_segments * XcopyList::kSegmentBytes);
}

Outcome<XcopyList> parse_xcopy(ByteView cdb, const ThirdPartyCopyLimits& limits, ByteView data) {
  const uint32_t list_length = load_be32(&cdb[10]);
  XcopyList list;
  if (list_length == 0) {
    list.list_id_usage = kNoListId;
    return list;
  }
  if (list_length < kHeader || data.size() < list_length) return illegal(0x1a, 0x00);
  data = data.first(list_length);

  list.list_id = data[0];
  list.sequential = (data[1] & 0x20) != 0;
  list.list_id_usage = (data[1] >> 3) & 0x03;
  list.priority = data[1] & 0x07;
  if (list.list_id_usage == 1) return bad(1, 4);
  if (list.list_id_usage == kNoListId && list.list_id != 0) return bad(0, 7);

  const size_t cscd_bytes = load_be16(&data[2]);
  const size_t segment_bytes = load_be32(&data[8]);
  if (load_be32(&data[12]) != 0) return bad_descriptor(0x0b, 12);  // inline data
  if (cscd_bytes % XcopyList::kCscdBytes != 0) return bad(2, 7);
  // The longest list comes before the counts: a list beyond it needn't be looked into.
  if (cscd_bytes + segment_bytes > max_descriptor_list(limits)) return illegal(0x1a, 0x00);
  if (kHeader + cscd_bytes + segment_bytes > list_length) return illegal(0x1a, 0x00);
  list.cscds = data.subspan(kHeader, cscd_bytes);
  list.segments = data.subspan(kHeader + cscd_bytes, segment_bytes);
  Sense sense;
  if (!check_cscds(list.cscds, limits, &sense)) return sense;
  if (!check_segments(list.segments, kHeader + cscd_bytes, limits, &sense)) return sense;
  return list;
}

Sense unreachable_cscd(uint16_t segment, bool destination) {
  Sense s = Sense::make(SenseKey::kCopyAborted, 0x08, 0x04);
  s.has_command_specific = true;
  s.command_specific = segment;
  s.specific = Sense::Specific::kSegmentPointer;
  s.pointer = destination ? 6 : 4;
  return s;
}

Sense copy_aborted(uint16_t segment, const CopyCause& cause, uint64_t residual) {
  const bool gone = cause.key == SenseKey::kNotReady;
  Sense s = Sense::make(SenseKey::kCopyAborted, 0x0d, gone ? 0x02 : 0x01);
  s.has_command_specific = true;
  s.command_specific = segment;
  s.has_information = residual > 0;
  s.information = residual;
  s.cause = cause;
  return s;
}

}  // namespace sluice::scsi
