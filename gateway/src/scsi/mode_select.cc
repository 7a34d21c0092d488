#include <bit>

#include "scsi/mode_page_bytes.h"
#include "scsi/mode_pages.h"

namespace sluice::scsi {
namespace {

Sense list_length_error() { return Sense::make(SenseKey::kIllegalRequest, 0x1a, 0x00); }

Sense bad(size_t byte, int bit = -1) {
  return Sense::invalid_field_in_parameter_list(static_cast<uint16_t>(byte), bit);
}

// The mode parameter header and block descriptor (SPC-5 §7.5.5, §7.5.6). *pages is the offset of
// the mode pages. WP and DPOFUA of the device-specific parameter can't be set and are ignored.
bool check_header(bool ten, const ModeUnit& unit, ByteView data, size_t* pages, Sense* sense) {
  const size_t header = ten ? 8 : 4;
  if (data.size() < header) {
    *sense = list_length_error();
    return false;
  }
  const size_t medium_type_at = ten ? 2 : 1;
  if (data[medium_type_at] != 0) {
    *sense = bad(medium_type_at, 7);
    return false;
  }
  const bool long_lba = ten && (data[4] & 0x01) != 0;
  const size_t length_at = ten ? 6 : 3;
  const size_t length = ten ? load_be16(&data[6]) : data[3];
  const size_t expected = long_lba ? 16 : 8;
  if (length != 0 && length != expected) {
    *sense = bad(length_at, 7);
    return false;
  }
  if (data.size() < header + length) {
    *sense = list_length_error();
    return false;
  }
  *pages = header + length;
  if (length == 0) return true;

  // The medium can't be reformatted: the descriptor must say what is, 0 (no change) or, for the
  // count, the "too large" value.
  const uint8_t* descriptor = &data[header];
  const uint64_t blocks = long_lba ? load_be64(descriptor) : load_be32(descriptor);
  const uint32_t block_size = long_lba ? load_be32(descriptor + 12) : load_be24(descriptor + 5);
  const bool all_ones = blocks == (long_lba ? UINT64_MAX : uint64_t{UINT32_MAX});
  if (blocks != 0 && blocks != unit.blocks && !all_ones) {
    *sense = bad(header, 7);
    return false;
  }
  if (block_size != unit.block_size) {
    *sense = bad(header + (long_lba ? 12 : 5), 7);
    return false;
  }
  return true;
}

const ModePageId* find_page(uint8_t code, uint8_t subpage) {
  for (const ModePageId& id : mode_page_ids()) {
    if (id.code == code && id.subpage == subpage) return &id;
  }
  return nullptr;
}

// Takes the changeable bits of a page over into *state.
void apply(ModePageId id, ByteView body, ModeState* state) {
  if (id.code == 0x08) {
    state->wce = (body[0] & 0x04) != 0;
  } else if (id.code == 0x0a && id.subpage == 0) {
    state->d_sense = (body[0] & 0x04) != 0;
    state->swp = (body[2] & 0x08) != 0;
  }
}

// One page at `at`; returns its size, 0 when *sense says why not.
size_t take_page(const ModeUnit& unit, ByteView data, size_t at, ModeState* state, Sense* sense) {
  const size_t left = data.size() - at;
  const bool spf = (data[at] & 0x40) != 0;
  const size_t header = spf ? 4 : 2;
  if (left < header) {
    *sense = list_length_error();
    return 0;
  }
  const ModePageId* id = find_page(data[at] & 0x3f, spf ? data[at + 1] : 0);
  if (id == nullptr) {
    *sense = bad(at, 5);
    return 0;
  }
  const size_t length = spf ? load_be16(&data[at + 2]) : data[at + 1];
  const ModePage current = mode_page(*id, ModeValues::kCurrent, unit);
  if (length != current.body().size()) {
    *sense = bad(at + (spf ? 2 : 1), 7);
    return 0;
  }
  if (left < header + length) {
    *sense = list_length_error();
    return 0;
  }
  const ByteView body = data.subspan(at + header, length);
  const ModePage changeable = mode_page(*id, ModeValues::kChangeable, unit);
  for (size_t i = 0; i < length; ++i) {
    const auto wrong = static_cast<uint8_t>((body[i] ^ current.body()[i]) & ~changeable.body()[i]);
    if (wrong != 0) {
      *sense = bad(at + header + i, std::bit_width(wrong) - 1);
      return 0;
    }
  }
  apply(*id, body, state);
  return header + length;
}

}  // namespace

Outcome<ModeState> parse_mode_select(ByteView cdb, const ModeUnit& unit, ByteView data) {
  const bool ten = cdb[0] == 0x55;
  const size_t list_length = ten ? load_be16(&cdb[7]) : cdb[4];
  if (list_length == 0) return unit.current;  // SPC-5 §6.11: not an error
  // PF 0 asks for vendor-specific pages, of which there are none.
  if ((cdb[1] & 0x10) == 0) return Sense::invalid_field_in_cdb(1, 4);
  if (data.size() < list_length) return list_length_error();
  data = data.first(list_length);

  Sense sense;
  size_t at = 0;
  if (!check_header(ten, unit, data, &at, &sense)) return sense;
  ModeState state = unit.current;
  while (at < data.size()) {
    const size_t size = take_page(unit, data, at, &state, &sense);
    if (size == 0) return sense;
    at += size;
  }
  return state;
}

}  // namespace sluice::scsi
