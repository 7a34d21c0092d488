// ROD tokens (SPC-5 §5.18.6): 512 bytes that stand for the data of some block ranges at one time.
// The header is the standard's; the rest is ours and unguessable.
#pragma once

#include <array>
#include <cstdint>

#include "base/bytes.h"
#include "scsi/outcome.h"

namespace sluice::scsi {

inline constexpr size_t kRodTokenBytes = 512;
using RodTokenBytes = std::array<uint8_t, kRodTokenBytes>;

// Access upon reference (SPC-5 §5.18.6.3): the token names ranges, their data is read when it is
// used. The copy manager must withdraw the token when one of the blocks is written; that is what
// makes it safe without a snapshot.
inline constexpr uint32_t kRodTypeAccessUponReference = 0x0001'0000;
// Block device zero ROD token: WRITE USING TOKEN with it writes zeros.
inline constexpr uint32_t kRodTypeZero = 0xffff'0001;

struct RodToken {
  uint32_t rod_type = 0;
  uint64_t copy_manager_id = 0;      // COPY MANAGER ROD TOKEN IDENTIFIER: which record
  std::array<uint8_t, 32> secret{};  // random; compared in constant time
  uint64_t bytes_represented = 0;
  std::array<uint8_t, 16> unit_uuid{};  // of the creator
};

// `creator_cscd`: the creator's 32-byte E4h CSCD descriptor, CREATOR LOGICAL UNIT DESCRIPTOR.
void build_rod_token(const RodToken& token, ByteView creator_cscd, uint32_t block_size,
                     RodTokenBytes& out);
// false: not a token of ours (wrong length, type or layout). The zero token is one: only its type
// is then set.
bool parse_rod_token(ByteView bytes, RodToken* out);
// As above, with the sense data that says what is wrong.
Outcome<RodToken> read_rod_token(ByteView bytes);

// ADDITIONAL SENSE CODE QUALIFIER under 23h, INVALID TOKEN OPERATION (SPC-5 §5.18.6.5.2.3).
enum class TokenFault : uint8_t {
  kUnsupportedType = 0x01,
  kRemote = 0x02,
  kUnknown = 0x04,
  kCorrupt = 0x05,
  kRevoked = 0x06,
  kExpired = 0x07,
  kCancelled = 0x08,
  kDeleted = 0x09,
  kInvalidLength = 0x0a,
};
inline Sense invalid_token(TokenFault fault) {
  return Sense::make(SenseKey::kIllegalRequest, 0x23, static_cast<uint8_t>(fault));
}

}  // namespace sluice::scsi
