#include "scsi/mode_page_bytes.h"
#include "scsi/mode_pages.h"
#include "scsi/response_writer.h"

namespace sluice::scsi {
namespace {

constexpr uint8_t kAllPages = 0x3f;
constexpr uint8_t kAllSubpages = 0xff;

struct Request {
  bool ten = false;        // MODE SENSE(10)
  bool descriptor = true;  // DBD clear
  bool long_lba = false;   // LLBAA
  ModeValues values = ModeValues::kCurrent;
  uint8_t page = 0;
  uint8_t subpage = 0;
};

Request decode(ByteView cdb) {
  Request r;
  r.ten = cdb[0] == 0x5a;
  r.descriptor = (cdb[1] & 0x08) == 0;
  r.long_lba = r.ten && (cdb[1] & 0x10) != 0;
  r.values = static_cast<ModeValues>(cdb[2] >> 6);
  r.page = cdb[2] & 0x3f;
  r.subpage = cdb[3];
  return r;
}

// Device-specific parameter (SBC-4 §6.5.1): WP and DPOFUA.
uint8_t device_specific(const ModeUnit& unit) {
  return static_cast<uint8_t>((unit.write_protected ? 0x80 : 0) | 0x10);
}

void write_header(ResponseWriter& w, const Request& r, const ModeUnit& unit) {
  const uint8_t descriptor_size = !r.descriptor ? 0 : r.long_lba ? 16 : 8;
  if (!r.ten) {
    w.u8(0);
    w.u8(0);  // MEDIUM TYPE
    w.u8(device_specific(unit));
    w.u8(descriptor_size);
    return;
  }
  w.u16(0);
  w.u8(0);
  w.u8(device_specific(unit));
  w.u8(r.descriptor && r.long_lba ? 0x01 : 0);  // LONGLBA
  w.u8(0);
  w.u16(descriptor_size);
}

// SBC-4 §6.5.2
void write_block_descriptor(ResponseWriter& w, const Request& r, const ModeUnit& unit) {
  if (r.long_lba) {
    w.u64(unit.blocks);
    w.u32(0);
    w.u32(unit.block_size);
    return;
  }
  w.u32(unit.blocks > 0xffffffff ? 0xffffffff : static_cast<uint32_t>(unit.blocks));
  w.u8(0);
  w.u24(unit.block_size);
}

bool wanted(ModePageId id, const Request& r) {
  if (r.page != kAllPages && r.page != id.code) return false;
  return r.subpage == kAllSubpages || r.subpage == id.subpage;
}

// SPC-5 §6.13: the field pointer distinguishes an unknown page from an unknown subpage.
Sense no_such_page(const Request& r) {
  for (const ModePageId id : mode_page_ids()) {
    if (r.page == kAllPages || r.page == id.code) return Sense::invalid_field_in_cdb(3, 7);
  }
  return Sense::invalid_field_in_cdb(2, 5);
}

}  // namespace

Outcome<size_t> build_mode_sense(ByteView cdb, const ModeUnit& unit, MutableBytes out) {
  const Request r = decode(cdb);
  if (r.values == ModeValues::kSaved) {
    return Sense::make(SenseKey::kIllegalRequest, 0x39, 0x00);  // SAVING PARAMETERS NOT SUPPORTED
  }
  // Page 3Fh comes with subpage 00h or FFh only.
  if (r.page == kAllPages && r.subpage != 0 && r.subpage != kAllSubpages) {
    return Sense::invalid_field_in_cdb(3, 7);
  }
  ResponseWriter w(out);
  write_header(w, r, unit);
  if (r.descriptor) write_block_descriptor(w, r, unit);
  bool any = false;
  for (const ModePageId id : mode_page_ids()) {
    if (!wanted(id, r)) continue;
    const ModePage page = mode_page(id, r.values, unit);
    w.bytes(ByteView(page.bytes).first(page.size));
    any = true;
  }
  if (!any) return no_such_page(r);
  if (r.ten) {
    w.set_u16(0, static_cast<uint16_t>(w.full() - 2));
  } else {
    w.set_u8(0, static_cast<uint8_t>(w.full() - 1));
  }
  return w.size();
}

}  // namespace sluice::scsi
