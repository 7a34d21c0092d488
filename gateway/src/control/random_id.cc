#include "control/random_id.h"

#include <sys/random.h>

#include <cstdint>

namespace sluice::control {

std::string random_id() {
  uint8_t bytes[16] = {};
  [[maybe_unused]] const ssize_t n = ::getrandom(bytes, sizeof bytes, 0);
  std::string out;
  for (const uint8_t byte : bytes) {
    out += "0123456789abcdef"[byte >> 4];
    out += "0123456789abcdef"[byte & 15];
  }
  return out;
}

}  // namespace sluice::control
