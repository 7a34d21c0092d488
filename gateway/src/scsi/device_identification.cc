#include "scsi/device_identification.h"

#include "base/hex.h"
#include "scsi/response_writer.h"

namespace sluice::scsi {
namespace {

enum CodeSet : uint8_t { kBinary = 1, kAscii = 2, kUtf8 = 3 };
enum Association : uint8_t { kLogicalUnit = 0, kTargetPort = 1, kTargetDevice = 2 };
enum Type : uint8_t {
  kT10VendorId = 1,
  kNaa = 3,
  kRelativeTargetPort = 4,
  kTargetPortGroup = 5,
  kScsiName = 8,
  kUuid = 0xa,
};
constexpr uint8_t kIscsi = 0x5;  // PROTOCOL IDENTIFIER

// Starts a designation descriptor (SPC-5 §7.7.6.1); close() fills its length in.
size_t open(ResponseWriter& w, CodeSet code_set, Association association, Type type) {
  const bool of_port = association != kLogicalUnit;  // PIV only means something there
  w.u8(static_cast<uint8_t>((of_port ? kIscsi << 4 : 0) | code_set));
  w.u8(static_cast<uint8_t>((of_port ? 0x80 : 0) | association << 4 | type));
  w.u8(0);
  w.u8(0);
  return w.full();
}

void close(ResponseWriter& w, size_t start) {
  w.set_u8(start - 1, static_cast<uint8_t>(w.full() - start));
}

// SCSI name strings end with a NUL and are padded to a multiple of 4 (SPC-5 §7.7.6.11).
void end_name(ResponseWriter& w, size_t start) {
  w.u8(0);
  w.align(4, start);
  close(w, start);
}

void hex(ResponseWriter& w, uint8_t byte) {
  for (const char digit : hex_digits(byte)) w.u8(static_cast<uint8_t>(digit));
}

// NAA first: initiators that look at the first 255 bytes, or at the first designator only, find
// the one that names the unit for good.
void write_unit(ResponseWriter& w, const Identity& identity) {
  const Naa naa = naa_of(identity);
  size_t at = open(w, kBinary, kLogicalUnit, kNaa);
  w.bytes(naa.bytes());
  close(w, at);

  at = open(w, kAscii, kLogicalUnit, kT10VendorId);
  w.text(identity.vendor, 8);
  w.bytes(as_bytes(identity.serial));
  close(w, at);

  at = open(w, kBinary, kLogicalUnit, kUuid);
  w.u8(0x10);  // UUID TYPE 1h: RFC 9562
  w.u8(0);
  w.bytes(identity.uuid);
  close(w, at);

  at = open(w, kUtf8, kLogicalUnit, kScsiName);
  w.bytes(as_bytes("naa."));
  for (const uint8_t byte : naa.bytes()) hex(w, byte);
  end_name(w, at);
}

void write_port(ResponseWriter& w, const PortIdentity& port) {
  size_t at = open(w, kBinary, kTargetPort, kRelativeTargetPort);
  w.u16(0);
  w.u16(port.relative_target_port);
  close(w, at);

  at = open(w, kBinary, kTargetPort, kTargetPortGroup);
  w.u16(0);
  w.u16(port.target_port_group);
  close(w, at);

  // RFC 7143 §4.2.7.1: target name, ",t,0x" and the portal group tag in hexadecimal.
  at = open(w, kUtf8, kTargetPort, kScsiName);
  w.bytes(as_bytes(port.target_name));
  w.bytes(as_bytes(",t,0x"));
  hex(w, static_cast<uint8_t>(port.portal_group >> 8));
  hex(w, static_cast<uint8_t>(port.portal_group));
  end_name(w, at);

  at = open(w, kUtf8, kTargetDevice, kScsiName);
  w.bytes(as_bytes(port.target_name));
  end_name(w, at);
}

}  // namespace

size_t build_device_identification(uint8_t peripheral, const Identity& identity,
                                   const PortIdentity& port, bool with_unit, MutableBytes out) {
  ResponseWriter w(out);
  w.u8(peripheral);
  w.u8(0x83);
  w.u16(0);
  if (with_unit) write_unit(w, identity);
  write_port(w, port);
  w.set_u16(2, static_cast<uint16_t>(w.full() - 4));
  return w.size();
}

}  // namespace sluice::scsi
