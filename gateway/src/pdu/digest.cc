#include "pdu/digest.h"

#include <isa-l/crc.h>

namespace sluice::pdu {

void Digest::update(const uint8_t* data, uint32_t size) {
  // ISA-L declares its input as non-const but only reads it.
  state_ = crc32_iscsi(const_cast<uint8_t*>(data),  // NOLINT(cppcoreguidelines-pro-type-const-cast)
                       static_cast<int>(size), state_);
}

}  // namespace sluice::pdu
