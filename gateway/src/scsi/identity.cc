#include "scsi/identity.h"

#include <algorithm>
#include <cstring>

namespace sluice::scsi {
namespace {

constexpr uint8_t kCodeSetBinary = 1;
constexpr uint8_t kTypeT10VendorId = 1;
constexpr uint8_t kTypeNaa = 3;
constexpr uint8_t kTypeUuid = 0xa;

bool equal(ByteView a, ByteView b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin());
}

// Vendor padded to 8 characters, then the serial number (SPC-5 §7.7.6.4).
bool is_t10_vendor_id(ByteView designator, const Identity& identity) {
  if (designator.size() != 8 + identity.serial.size()) return false;
  for (size_t i = 0; i < 8; ++i) {
    const char c = i < identity.vendor.size() ? identity.vendor[i] : ' ';
    if (designator[i] != static_cast<uint8_t>(c)) return false;
  }
  return equal(designator.subspan(8), as_bytes(identity.serial));
}

}  // namespace

Naa naa_of(const Identity& identity) {
  const auto& uuid = identity.uuid;
  Naa naa;
  if (identity.oui == 0) {
    // Bits 48-51 of a UUID are its version (RFC 9562 §4.2), so they tell units apart by nothing.
    const uint64_t high = load_be48(uuid.data());
    const uint64_t low = load_be16(uuid.data() + 6) & 0x0fffu;
    store_be64(naa.value.data(), uint64_t{0x3} << 60 | high << 12 | low);
    naa.size = 8;
    return naa;
  }
  const uint64_t vendor_specific = load_be64(uuid.data()) >> 28;  // 36 bits
  store_be64(naa.value.data(),
             uint64_t{0x6} << 60 | uint64_t{identity.oui & 0xffffff} << 36 | vendor_specific);
  std::memcpy(naa.value.data() + 8, uuid.data() + 8, 8);
  naa.size = 16;
  return naa;
}

bool designates(ByteView descriptor, const Identity& identity) {
  if (descriptor.size() < 4) return false;
  const size_t length = descriptor[3];
  if (length > descriptor.size() - 4) return false;
  const ByteView designator = descriptor.subspan(4, length);
  const uint8_t code_set = descriptor[0] & 0x0f;
  const uint8_t type = descriptor[1] & 0x0f;
  if ((descriptor[1] & 0x30) != 0) return false;  // ASSOCIATION: not a logical unit
  switch (type) {
    case kTypeNaa:
      return code_set == kCodeSetBinary && equal(designator, naa_of(identity).bytes());
    case kTypeUuid:
      return code_set == kCodeSetBinary && designator.size() == 18 && designator[0] == 0x10 &&
             equal(designator.subspan(2), identity.uuid);
    case kTypeT10VendorId:
      return is_t10_vendor_id(designator, identity);
    default:
      return false;
  }
}

}  // namespace sluice::scsi
