// CRC32C for iSCSI (RFC 7143 §13.1): over whole PDU sections with padding, sent least significant
// byte first.
#pragma once

#include <cstdint>

#include "base/bytes.h"

namespace sluice::pdu {

// An incremental CRC32C.
class Digest {
 public:
  void update(const uint8_t* data, uint32_t size);
  void reset() { state_ = 0xffffffff; }
  uint32_t value() const { return ~state_; }
  // Writes the four bytes that follow the section on the wire.
  void store(uint8_t* out) const {
    const uint32_t v = value();
    out[0] = static_cast<uint8_t>(v);
    out[1] = static_cast<uint8_t>(v >> 8);
    out[2] = static_cast<uint8_t>(v >> 16);
    out[3] = static_cast<uint8_t>(v >> 24);
  }
  bool matches(const uint8_t* wire) const {
    uint8_t mine[4];
    store(mine);
    return std::memcmp(mine, wire, 4) == 0;
  }

 private:
  uint32_t state_ = 0xffffffff;
};

}  // namespace sluice::pdu
