// CRC32C as the wire carries it (RFC 7143 §13.1), computed by ISA-L.
#pragma once

#include <isa-l/crc.h>

#include <cstdint>

namespace sluice::bench {

// ISA-L's crc32_iscsi neither inverts its start value nor its result: an empty digest starts as all
// ones, and the value on the wire is the complement of the last state.
inline constexpr uint32_t kDigestStart = 0xffffffff;
inline constexpr uint32_t kDigestSize = 4;

// HeaderDigest and DataDigest are negotiated apart (RFC 7143 §13.1).
struct DigestChoice {
  bool header = false;
  bool data = false;
};

inline uint32_t digest_extend(uint32_t state, const uint8_t* data, uint32_t size) {
  // ISA-L declares its input as non-const but only reads it.
  return crc32_iscsi(const_cast<uint8_t*>(data), static_cast<int>(size), state);
}

// Least significant byte first, unlike every other field of a PDU.
inline void digest_store(uint8_t* out, uint32_t state) {
  const uint32_t v = ~state;
  for (int i = 0; i < 4; ++i) out[i] = static_cast<uint8_t>(v >> (8 * i));
}

inline bool digest_matches(const uint8_t* wire, uint32_t state) {
  uint8_t mine[kDigestSize];
  digest_store(mine, state);
  return mine[0] == wire[0] && mine[1] == wire[1] && mine[2] == wire[2] && mine[3] == wire[3];
}

}  // namespace sluice::bench
