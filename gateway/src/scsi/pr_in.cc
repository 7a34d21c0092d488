#include "scsi/pr_in.h"

#include "scsi/response_writer.h"

namespace sluice::scsi {
namespace {

void write_registration(ResponseWriter& w, const PrRegistration& r) {
  w.u64(r.key);
  w.u32(0);
  w.u8(static_cast<uint8_t>((r.all_target_ports ? 0x02 : 0) | (r.holder ? 0x01 : 0)));
  w.u8(r.holder ? static_cast<uint8_t>(r.type) : 0);  // SCOPE 0h: the whole unit
  w.u32(0);
  w.u16(r.all_target_ports ? 0 : r.relative_target_port);
  const size_t length_at = w.full();
  w.u32(0);  // ADDITIONAL DESCRIPTOR LENGTH
  const size_t id_at = w.full();
  write_transport_id(r.initiator_name, r.isid, w);
  w.set_u32(length_at, static_cast<uint32_t>(w.full() - id_at));
}

}  // namespace

size_t full_status_size(std::span<const PrRegistration> registrations) {
  ResponseWriter w({});  // counts only
  w.zeros(8);
  for (const PrRegistration& r : registrations) write_registration(w, r);
  return w.full();
}

// SPC-5 §6.16.2
size_t build_pr_read_keys(uint32_t generation, std::span<const uint64_t> keys, MutableBytes out) {
  ResponseWriter w(out);
  w.u32(generation);
  w.u32(static_cast<uint32_t>(8 * keys.size()));
  for (const uint64_t key : keys) w.u64(key);
  return w.size();
}

// SPC-5 §6.16.3
size_t build_pr_read_reservation(uint32_t generation, PrType type, uint64_t key, MutableBytes out) {
  ResponseWriter w(out);
  w.u32(generation);
  if (type == PrType::kNone) {
    w.u32(0);
    return w.size();
  }
  w.u32(16);
  w.u64(is_all_registrants(type) ? 0 : key);
  w.u32(0);
  w.u8(0);
  w.u8(static_cast<uint8_t>(type));  // SCOPE 0h
  w.u16(0);
  return w.size();
}

// SPC-5 §6.16.4
size_t build_pr_report_capabilities(const PrCapabilities& c, MutableBytes out) {
  ResponseWriter w(out);
  w.u16(8);
  uint8_t byte2 = 0x08 | 0x04;              // SIP_C, ATP_C
  if (c.compatible_reserve) byte2 |= 0x10;  // CRH
  if (c.persist_capable) byte2 |= 0x01;     // PTPL_C
  w.u8(byte2);
  // TMV; ALLOW COMMANDS 001b: TEST UNIT READY passes every reservation.
  w.u8(static_cast<uint8_t>(0x80 | 0x10 | (c.persist_active ? 0x01 : 0)));
  w.u8(0xea);  // WR_EX_AR, EX_AC_RO, WR_EX_RO, EX_AC, WR_EX
  w.u8(0x01);  // EX_AC_AR
  w.u16(0);
  return w.size();
}

// SPC-5 §6.16.5
size_t build_pr_read_full_status(uint32_t generation, std::span<const PrRegistration> registrations,
                                 MutableBytes out) {
  ResponseWriter w(out);
  w.u32(generation);
  w.u32(0);
  for (const PrRegistration& r : registrations) write_registration(w, r);
  w.set_u32(4, static_cast<uint32_t>(w.full() - 8));
  return w.size();
}

}  // namespace sluice::scsi
