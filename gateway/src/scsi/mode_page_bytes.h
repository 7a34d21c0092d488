// The mode pages themselves, as bytes; shared by MODE SENSE and MODE SELECT.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "scsi/mode_pages.h"

namespace sluice::scsi {

struct ModePage {
  std::array<uint8_t, 40> bytes{};
  uint8_t size = 0;  // header included
  uint8_t code = 0;
  uint8_t subpage = 0;
  // SPF=1 pages have a 4-byte header, the others 2 (SPC-5 §7.5.7).
  uint8_t header_size() const { return subpage == 0 ? 2 : 4; }
  ByteView body() const { return ByteView(bytes).subspan(header_size(), size - header_size()); }
};

enum class ModeValues : uint8_t { kCurrent = 0, kChangeable = 1, kDefault = 2, kSaved = 3 };

struct ModePageId {
  uint8_t code;
  uint8_t subpage;
};
// Every page there is, in the order MODE SENSE returns them.
std::span<const ModePageId> mode_page_ids();

// `values` is not kSaved.
ModePage mode_page(ModePageId id, ModeValues values, const ModeUnit& unit);

}  // namespace sluice::scsi
