#include "scsi/report_luns.h"

#include "scsi/response_writer.h"

namespace sluice::scsi {

uint64_t lun_field(uint64_t number) {
  // SAM-5 §4.7.7: peripheral device addressing 00b with bus 0, else flat space addressing 01b.
  return number < 256 ? number << 48 : (uint64_t{0x4000} | (number & kMaxLunNumber)) << 48;
}

bool lun_number(uint64_t field, uint64_t* number) {
  if ((field & 0x0000'ffff'ffff'ffff) != 0) return false;
  const auto first = static_cast<uint16_t>(field >> 48);
  switch (first >> 14) {
    case 0:
      if ((first & 0x3f00) != 0) return false;  // a bus other than 0
      *number = first & 0xff;
      return true;
    case 1:
      *number = first & kMaxLunNumber;
      return true;
    default:
      return false;
  }
}

bool same_lun(uint64_t a, uint64_t b) {
  uint64_t x = 0;
  uint64_t y = 0;
  return a == b || (lun_number(a, &x) && lun_number(b, &y) && x == y);
}

Outcome<size_t> build_report_luns(ByteView cdb, std::span<const uint64_t> numbers,
                                  MutableBytes out) {
  bool units = false;
  bool well_known = false;
  switch (cdb[2]) {  // SELECT REPORT, SPC-5 table 291
    case 0x00:
    case 0x11:  // administrative units (there are none) and units outside a conglomerate
      units = true;
      break;
    case 0x01:
      well_known = true;
      break;
    case 0x02:
      units = well_known = true;
      break;
    case 0x10:  // administrative units
    case 0x12:  // subsidiary units of this unit
      break;
    default:
      return Sense::invalid_field_in_cdb(2, 7);
  }
  if (load_be32(cdb.data() + 6) < 16) return Sense::invalid_field_in_cdb(6, 7);
  ResponseWriter w(out);
  w.u32(0);
  w.u32(0);
  if (units) {
    for (const uint64_t number : numbers) w.u64(lun_field(number));
  }
  if (well_known) w.u64(kReportLunsWellKnownLun);
  w.set_u32(0, static_cast<uint32_t>(w.full() - 8));
  return w.size();
}

}  // namespace sluice::scsi
