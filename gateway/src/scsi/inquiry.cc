#include "scsi/inquiry.h"

#include "scsi/device_identification.h"
#include "scsi/response_writer.h"
#include "scsi/third_party_copy.h"
#include "scsi/vpd_block.h"

namespace sluice::scsi {
namespace {

// VERSION 06h (SPC-4), though SPC-5 is listed below too: SPC-5 keeps everything SPC-4 has, and
// initiators and conformance tests of the field accept 04h to 06h.
constexpr uint8_t kVersionSpc4 = 0x06;
// SPC-5 §6.7.2 and table of version descriptor values. SBC-3 and SPC-4 are listed beside their
// successors because older initiators look for exactly these before they trust VPD page B0.
constexpr uint16_t kVersions[] = {
    0x00a0,  // SAM-5
    0x0960,  // iSCSI
    0x0460,  // SPC-4
    0x05c0,  // SPC-5
    0x04c0,  // SBC-3
    0x0600,  // SBC-4
};

// The sense data encode() can make at most: header, information, command-specific, sense-key
// specific.
constexpr uint8_t kMaxSenseLength = 8 + 12 + 12 + 8;

uint8_t first_byte(const InquiryUnit& unit) { return static_cast<uint8_t>(unit.peripheral); }

bool copies(const Support& s) { return s.third_party_copy || s.tokens; }

void page_header(ResponseWriter& w, const InquiryUnit& unit, uint8_t page, uint16_t length) {
  w.u8(first_byte(unit));
  w.u8(page);
  w.u16(length);
}

bool has_page(uint8_t page, const InquiryUnit& unit) {
  switch (page) {
    case 0x00:
      return true;
    case 0x83:
    case 0x86:
      return unit.peripheral != Peripheral::kAbsent;
    case 0x80:
    case 0xb0:
    case 0xb1:
    case 0xb2:
      return unit.peripheral == Peripheral::kBlockDevice;
    case 0x8f:
      return unit.peripheral == Peripheral::kBlockDevice && copies(unit.support);
    default:
      return false;
  }
}

// SPC-5 §7.7.3
size_t build_supported_pages(const InquiryUnit& unit, MutableBytes out) {
  ResponseWriter w(out);
  page_header(w, unit, 0x00, 0);
  for (unsigned page = 0; page <= 0xff; ++page) {
    if (has_page(static_cast<uint8_t>(page), unit)) w.u8(static_cast<uint8_t>(page));
  }
  w.set_u16(2, static_cast<uint16_t>(w.full() - 4));
  return w.size();
}

// SPC-5 §7.7.11
size_t build_serial_number(const InquiryUnit& unit, MutableBytes out) {
  ResponseWriter w(out);
  page_header(w, unit, 0x80, static_cast<uint16_t>(unit.identity.serial.size()));
  w.bytes(as_bytes(unit.identity.serial));
  return w.size();
}

// SPC-5 §7.7.7. What isn't claimed isn't there: no protection information, no command priority,
// no UA sense-key specific data, LUICLR 0.
size_t build_extended_inquiry(const InquiryUnit& unit, MutableBytes out) {
  ResponseWriter w(out);
  page_header(w, unit, 0x86, 0x3c);
  w.u8(0);
  w.u8(0x07);                            // HEADSUP, ORDSUP, SIMPSUP
  w.u8(unit.volatile_cache ? 0x01 : 0);  // V_SUP
  w.zeros(6);
  w.u8(kMaxSenseLength);
  w.zeros(64 - w.full());
  return w.size();
}

}  // namespace

// SPC-5 §6.7.2
size_t build_standard_inquiry(const InquiryUnit& unit, MutableBytes out) {
  const bool present = unit.peripheral != Peripheral::kAbsent;
  ResponseWriter w(out);
  w.u8(first_byte(unit));
  w.u8(0);
  w.u8(kVersionSpc4);
  w.u8(0x12);  // HISUP, RESPONSE DATA FORMAT 2
  w.u8(0);
  const bool block = unit.peripheral == Peripheral::kBlockDevice;
  uint8_t byte5 = 0;
  if (block) byte5 |= 0x10;                          // TPGS 01b: implicit only (DESIGN R11)
  if (block && copies(unit.support)) byte5 |= 0x08;  // 3PC
  w.u8(byte5);
  w.u8(present ? 0x10 : 0);  // MULTIP: more than one target port
  w.u8(0x02);                // CMDQUE
  w.text(unit.identity.vendor, 8);
  w.text(unit.identity.product, 16);
  w.text(unit.identity.revision, 4);
  w.zeros(22);
  for (const uint16_t version : kVersions) w.u16(version);
  w.zeros(2 * (8 - std::size(kVersions)));
  w.zeros(22);
  w.set_u8(4, static_cast<uint8_t>(w.full() - 5));
  return w.size();
}

bool build_vpd_page(uint8_t page, const InquiryUnit& unit, MutableBytes out, size_t* size) {
  if (!has_page(page, unit)) return false;
  switch (page) {
    case 0x00:
      *size = build_supported_pages(unit, out);
      break;
    case 0x80:
      *size = build_serial_number(unit, out);
      break;
    case 0x83:
      *size = build_device_identification(first_byte(unit), unit.identity, unit.port,
                                          unit.peripheral == Peripheral::kBlockDevice, out);
      break;
    case 0x86:
      *size = build_extended_inquiry(unit, out);
      break;
    case 0x8f:
      *size = build_third_party_copy_page(first_byte(unit), unit.copy, unit.support, out);
      break;
    case 0xb0:
      *size = build_block_limits_page(first_byte(unit), unit.limits, out);
      break;
    case 0xb1:
      *size = build_characteristics_page(first_byte(unit), unit.characteristics, out);
      break;
    default:
      *size = build_provisioning_page(first_byte(unit), unit.provisioning, out);
      break;
  }
  return true;
}

Outcome<size_t> build_inquiry(ByteView cdb, const InquiryUnit& unit, MutableBytes out) {
  const bool evpd = (cdb[1] & 0x01) != 0;
  const uint8_t page = cdb[2];
  if (!evpd) {
    if (page != 0) return Sense::invalid_field_in_cdb(2, 7);
    return build_standard_inquiry(unit, out);
  }
  size_t size = 0;
  if (!build_vpd_page(page, unit, out, &size)) return Sense::invalid_field_in_cdb(2, 7);
  return size;
}

}  // namespace sluice::scsi
