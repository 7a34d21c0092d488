#include "scsi/log_pages.h"

#include <algorithm>

#include "scsi/response_writer.h"

namespace sluice::scsi {
namespace {

constexpr uint8_t kSupportedPages = 0x00;
constexpr uint8_t kProvisioning = 0x0c;
constexpr uint8_t kAllSubpages = 0xff;

// DS set: nothing is saved (SPC-5 §7.3.2).
void header(ResponseWriter& w, uint8_t page, uint8_t subpage) {
  w.u8(static_cast<uint8_t>(0x80 | (subpage != 0 ? 0x40 : 0) | page));
  w.u8(subpage);
  w.u16(0);
}

size_t finish(ResponseWriter& w) {
  w.set_u16(2, static_cast<uint16_t>(w.full() - 4));
  return w.size();
}

// SPC-5 §7.3.20
size_t build_supported_pages(const LogUnit& unit, MutableBytes out) {
  ResponseWriter w(out);
  header(w, kSupportedPages, 0);
  w.u8(kSupportedPages);
  if (unit.has_provisioning) w.u8(kProvisioning);
  return finish(w);
}

// SPC-5 §7.3.21
size_t build_supported_subpages(const LogUnit& unit, MutableBytes out) {
  ResponseWriter w(out);
  header(w, kSupportedPages, kAllSubpages);
  w.u16(kSupportedPages << 8);
  w.u16(kSupportedPages << 8 | kAllSubpages);
  if (unit.has_provisioning) w.u16(kProvisioning << 8);
  return finish(w);
}

// A count of threshold sets: 2^exponent blocks each, saturated at what the field holds.
uint32_t sets_of(const LogUnit& unit, uint64_t bytes) {
  const uint8_t exponent = std::min<uint8_t>(unit.threshold_exponent, 63);
  const uint64_t blocks = unit.block_size == 0 ? 0 : bytes / unit.block_size;
  return static_cast<uint32_t>(std::min<uint64_t>(blocks >> exponent, UINT32_MAX));
}

// SBC-4 §6.4.5
size_t build_provisioning(const LogUnit& unit, uint16_t first, MutableBytes out) {
  constexpr uint16_t kAvailable = 0x0001;
  constexpr uint16_t kUsed = 0x0002;
  constexpr uint8_t kDedicated = 0x01;
  constexpr uint8_t kShared = 0x02;
  ResponseWriter w(out);
  header(w, kProvisioning, 0);
  const auto parameter = [&](uint16_t code, uint64_t bytes, uint8_t scope) {
    if (bytes == UINT64_MAX || code < first) return;
    w.u16(code);
    w.u8(0x03);  // FORMAT AND LINKING 11b: binary list
    w.u8(8);
    w.u32(sets_of(unit, bytes));
    w.u8(scope);
    w.u24(0);
  };
  parameter(kAvailable, unit.available_bytes, unit.dedicated ? kDedicated : kShared);
  parameter(kUsed, unit.used_bytes, kDedicated);
  return finish(w);
}

// The highest parameter code a page has, for the check of PARAMETER POINTER.
uint16_t last_parameter(const LogUnit& unit) {
  if (unit.used_bytes != UINT64_MAX) return 2;
  return unit.available_bytes != UINT64_MAX ? 1 : 0;
}

}  // namespace

// PC is not looked at: the pages hold lists and counts, for which all its values say the same.
Outcome<size_t> build_log_sense(ByteView cdb, const LogUnit& unit, MutableBytes out) {
  const uint8_t page = cdb[2] & 0x3f;
  const uint8_t subpage = cdb[3];
  const uint16_t pointer = load_be16(&cdb[5]);
  if (page == kSupportedPages) {
    if (subpage != 0 && subpage != kAllSubpages) return Sense::invalid_field_in_cdb(3, 7);
    if (pointer != 0) return Sense::invalid_field_in_cdb(5, 7);
    return subpage == 0 ? build_supported_pages(unit, out) : build_supported_subpages(unit, out);
  }
  if (page == kProvisioning && unit.has_provisioning) {
    if (subpage != 0) return Sense::invalid_field_in_cdb(3, 7);
    if (pointer > last_parameter(unit)) return Sense::invalid_field_in_cdb(5, 7);
    return build_provisioning(unit, pointer, out);
  }
  return Sense::invalid_field_in_cdb(2, 5);
}

}  // namespace sluice::scsi
