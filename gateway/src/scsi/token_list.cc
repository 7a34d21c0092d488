#include "scsi/token_list.h"

#include <algorithm>

#include "scsi/response_writer.h"

namespace sluice::scsi {
namespace {

constexpr size_t kRange = 16;
constexpr size_t kPopulateHeader = 16;
constexpr size_t kWriteHeader = 536;
constexpr size_t kTokenAt = 16;

Sense list_length_error() { return Sense::make(SenseKey::kIllegalRequest, 0x1a, 0x00); }

Sense bad(size_t at, int bit = -1) {
  return Sense::invalid_field_in_parameter_list(static_cast<uint16_t>(at), bit);
}

bool overlap(const BlockExtent& a, const BlockExtent& b) {
  if (a.blocks == 0 || b.blocks == 0) return false;
  return a.lba < b.lba + b.blocks && b.lba < a.lba + a.blocks;
}

// Block device range descriptors (SBC-4 §5.13.3). The length field at `length_at` is the last of
// the header; the ranges follow it.
Outcome<RangeList> parse_ranges(ByteView data, size_t length_at, const TokenBounds& bounds) {
  const size_t start = length_at + 2;
  const size_t length = load_be16(&data[length_at]);
  if (start + length > data.size()) return list_length_error();
  if (length < kRange) return bad(length_at, 7);
  const RangeList ranges(data.subspan(start, length - length % kRange));
  if (ranges.size() > bounds.max_ranges) {
    Sense s = bad(length_at, 7);
    s.ascq = 0x08;  // TOO MANY SEGMENT DESCRIPTORS
    return s;
  }
  uint64_t total = 0;
  for (size_t i = 0; i < ranges.size(); ++i) {
    const BlockExtent extent = ranges.at(i);
    if (extent.lba > bounds.blocks || extent.blocks > bounds.blocks - extent.lba) {
      return Sense::lba_out_of_range(std::max(extent.lba, bounds.blocks));
    }
    total += extent.blocks;
    if (bounds.max_blocks != 0 && total > bounds.max_blocks) return bad(start + i * kRange + 8, 7);
    for (size_t k = 0; k < i; ++k) {
      if (overlap(ranges.at(k), extent)) return bad(start + i * kRange, 7);
    }
  }
  return ranges;
}

// The first two bytes of both lists: how many bytes follow.
bool check_data_length(ByteView data, size_t header, Sense* sense) {
  const size_t length = load_be16(&data[0]);
  if (length + 2 < header) {
    *sense = bad(0, 7);
    return false;
  }
  if (length + 2 > data.size()) {
    *sense = list_length_error();
    return false;
  }
  return true;
}

}  // namespace

BlockExtent RangeList::at(size_t index) const {
  const uint8_t* d = &descriptors_[index * kRange];
  return {load_be64(d), load_be32(d + 8)};
}

uint64_t RangeList::total_blocks() const {
  uint64_t total = 0;
  for (size_t i = 0; i < size(); ++i) total += at(i).blocks;
  return total;
}

uint32_t token_list_id(ByteView cdb) {
  const bool receive = cdb[0] == 0x84;
  return load_be32(&cdb[receive ? 2 : 6]);
}

Outcome<PopulateToken> parse_populate_token(ByteView cdb, const TokenBounds& bounds,
                                            ByteView data) {
  PopulateToken request;
  request.list_id = token_list_id(cdb);
  const uint32_t list_length = load_be32(&cdb[10]);
  if (list_length == 0) return request;
  if (list_length < kPopulateHeader || data.size() < list_length) return list_length_error();
  data = data.first(list_length);
  Sense sense;
  if (!check_data_length(data, kPopulateHeader + kRange, &sense)) return sense;
  request.type_valid = (data[2] & 0x02) != 0;  // RTV
  request.immed = (data[2] & 0x01) != 0;
  request.inactivity_seconds = load_be32(&data[4]);
  request.rod_type = load_be32(&data[8]);
  if (request.inactivity_seconds > bounds.max_inactivity_seconds) return bad(4, 7);
  if (request.type_valid && request.rod_type != 0 &&
      request.rod_type != kRodTypeAccessUponReference) {
    return bad(8, 7);
  }
  auto ranges = parse_ranges(data, 14, bounds);
  if (!ranges) return ranges.sense();
  request.ranges = *ranges;
  return request;
}

Outcome<WriteUsingToken> parse_write_using_token(ByteView cdb, const TokenBounds& bounds,
                                                 ByteView data) {
  WriteUsingToken request;
  request.list_id = token_list_id(cdb);
  const uint32_t list_length = load_be32(&cdb[10]);
  if (list_length == 0) return request;
  if (list_length < kWriteHeader || data.size() < list_length) return list_length_error();
  data = data.first(list_length);
  Sense sense;
  if (!check_data_length(data, kWriteHeader + kRange, &sense)) return sense;
  request.delete_token = (data[2] & 0x02) != 0;  // DEL_TKN
  request.immed = (data[2] & 0x01) != 0;
  request.offset_blocks = load_be64(&data[8]);
  request.token = data.subspan(kTokenAt, kRodTokenBytes);
  auto ranges = parse_ranges(data, 534, bounds);
  if (!ranges) return ranges.sense();
  request.ranges = *ranges;
  return request;
}

// SPC-5 §6.25, SBC-4 §5.25
size_t build_rod_token_information(const TokenOperation& operation, bool descriptor_sense,
                                   MutableBytes out) {
  constexpr uint8_t kLogicalBlocks = 0xf1;  // TRANSFER COUNT UNITS
  std::array<uint8_t, kMaxSenseBytes> sense;
  const size_t sense_size = operation.status == Status::kCheckCondition
                                ? encode(operation.sense, descriptor_sense, sense)
                                : 0;
  ResponseWriter w(out);
  w.u32(0);
  w.u8(operation.populate ? 0x10 : 0x11);
  w.u8(static_cast<uint8_t>(operation.state));
  w.u16(0);  // OPERATION COUNTER
  w.u32(operation.update_delay_ms);
  w.u8(static_cast<uint8_t>(operation.status));
  // The field is a multiple of 4 bytes (SPC-5 §6.25), the sense data in it need not be.
  w.u8(static_cast<uint8_t>((sense_size + 3) / 4 * 4));
  w.u8(static_cast<uint8_t>(sense_size));
  w.u8(kLogicalBlocks);
  w.u64(operation.blocks_transferred);
  w.u16(operation.segments_processed);
  w.zeros(6);
  w.bytes(ByteView(sense).first(sense_size));
  w.align(4);
  const bool has_token = operation.populate && operation.token != nullptr;
  w.u32(has_token ? kRodTokenBytes + 2 : 0);  // ROD TOKEN DESCRIPTORS LENGTH
  if (has_token) {
    w.u16(0);
    w.bytes(*operation.token);
  }
  w.set_u32(0, static_cast<uint32_t>(w.full() - 4));
  return w.size();
}

}  // namespace sluice::scsi
