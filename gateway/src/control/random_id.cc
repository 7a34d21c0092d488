#include "control/random_id.h"

#include <array>
#include <cstdint>

#include "base/hex.h"
#include "base/random_bytes.h"

namespace sluice::control {

std::string random_id() {
  std::array<uint8_t, 16> bytes{};
  random_bytes(bytes.data(), bytes.size());
  return hex_text(bytes);
}

}  // namespace sluice::control
