// Cryptographically secure random bytes.
#pragma once

#include <sys/random.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace sluice {

// Fills `n` bytes. Without random bytes there is no authentication, so the process ends.
inline void random_bytes(uint8_t* out, size_t n) {
  while (n > 0) {
    const ssize_t got = getrandom(out, n, 0);
    if (got < 0 && errno != EINTR) std::abort();  // no randomness, no authentication
    if (got <= 0) continue;
    out += got;
    n -= static_cast<size_t>(got);
  }
}

}  // namespace sluice
