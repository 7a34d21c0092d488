#include "scsi/port_groups.h"

#include "scsi/response_writer.h"

namespace sluice::scsi {

Outcome<size_t> build_report_port_groups(ByteView cdb, std::span<const PortGroup> groups,
                                         uint8_t transition_seconds, MutableBytes out) {
  const uint8_t format = cdb[1] >> 5;  // PARAMETER DATA FORMAT
  if (format > 1) return Sense::invalid_field_in_cdb(1, 7);
  ResponseWriter w(out);
  w.u32(0);
  if (format == 1) {
    w.u8(0x10);
    w.u8(transition_seconds);
    w.u16(0);
  }
  for (const PortGroup& group : groups) {
    w.u8(static_cast<uint8_t>((group.preferred ? 0x80 : 0) | static_cast<uint8_t>(group.state)));
    w.u8(0x8b);  // T_SUP, U_SUP, AN_SUP, AO_SUP
    w.u16(group.id);
    w.u8(0);
    w.u8(group.status_code);
    w.u8(0);
    w.u8(static_cast<uint8_t>(group.relative_ports.size()));
    for (const uint16_t port : group.relative_ports) {
      w.u16(0);
      w.u16(port);
    }
  }
  w.set_u32(0, static_cast<uint32_t>(w.full() - 4));
  return w.size();
}

}  // namespace sluice::scsi
