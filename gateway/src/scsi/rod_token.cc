#include "scsi/rod_token.h"

#include <algorithm>
#include <cstring>

namespace sluice::scsi {
namespace {

// Generic ROD token (SPC-5 §5.18.6.5.1). 0 ROD TYPE, 6 ROD TOKEN LENGTH, 8 COPY MANAGER ROD TOKEN
// IDENTIFIER, 16 CREATOR LOGICAL UNIT DESCRIPTOR, 48 NUMBER OF BYTES REPRESENTED, 96 device type
// specific data, 128 TARGET DEVICE DESCRIPTOR, 256 EXTENDED ROD TOKEN DATA. The last is ours:
constexpr size_t kSecretAt = 256;
constexpr size_t kUuidAt = 288;
constexpr size_t kMagicAt = 304;
constexpr uint64_t kMagic = 0x534c5549'43453031;  // "SLUICE01": layout version
constexpr uint16_t kLength = kRodTokenBytes - 8;

}  // namespace

void build_rod_token(const RodToken& token, ByteView creator_cscd, uint32_t block_size,
                     RodTokenBytes& out) {
  out.fill(0);
  store_be32(&out[0], token.rod_type);
  store_be16(&out[6], kLength);
  store_be64(&out[8], token.copy_manager_id);
  std::copy_n(creator_cscd.begin(), std::min<size_t>(creator_cscd.size(), 32), out.begin() + 16);
  store_be64(&out[56], token.bytes_represented);  // a 16-byte field
  store_be32(&out[96], block_size);               // SBC-4 §4.29.3: LOGICAL BLOCK LENGTH IN BYTES
  std::copy(token.secret.begin(), token.secret.end(), out.begin() + kSecretAt);
  std::copy(token.unit_uuid.begin(), token.unit_uuid.end(), out.begin() + kUuidAt);
  store_be64(&out[kMagicAt], kMagic);
}

Outcome<RodToken> read_rod_token(ByteView bytes) {
  if (bytes.size() != kRodTokenBytes || load_be16(&bytes[6]) != kLength) {
    return invalid_token(TokenFault::kInvalidLength);
  }
  RodToken token;
  token.rod_type = load_be32(&bytes[0]);
  if (token.rod_type == kRodTypeZero) return token;
  if (token.rod_type != kRodTypeAccessUponReference) {
    return invalid_token(TokenFault::kUnsupportedType);
  }
  if (load_be64(&bytes[kMagicAt]) != kMagic || load_be64(&bytes[48]) != 0) {
    return invalid_token(TokenFault::kUnknown);
  }
  token.copy_manager_id = load_be64(&bytes[8]);
  token.bytes_represented = load_be64(&bytes[56]);
  std::memcpy(token.secret.data(), &bytes[kSecretAt], token.secret.size());
  std::memcpy(token.unit_uuid.data(), &bytes[kUuidAt], token.unit_uuid.size());
  return token;
}

bool parse_rod_token(ByteView bytes, RodToken* out) {
  const auto token = read_rod_token(bytes);
  if (token) *out = *token;
  return token.ok();
}

}  // namespace sluice::scsi
