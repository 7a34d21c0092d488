#include "config/uuid.h"

#include <openssl/evp.h>

#include <algorithm>
#include <optional>
#include <stdexcept>

#include "base/hex.h"

namespace sluice::config {
namespace {

// A random value that must never change: every derived identity depends on it (DESIGN R13).
constexpr Uuid kNamespace = {0x19, 0xf2, 0xdc, 0x2f, 0x43, 0x87, 0x47, 0x91,
                             0xbb, 0x85, 0x52, 0xbe, 0x50, 0x29, 0xd8, 0x65};

}  // namespace

Result<Uuid> parse_uuid(std::string_view text) {
  const Error malformed{"'" + std::string(text) +
                        "' is not a UUID; write one as uuidgen prints it, "
                        "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"};
  const std::optional<Uuid> uuid = uuid_of(text);
  if (!uuid) return malformed;
  if (is_nil(*uuid)) return Error{"the nil UUID identifies nothing; make one with uuidgen"};
  return *uuid;
}

std::string format_uuid(const Uuid& uuid) { return uuid_text(uuid); }

bool is_nil(const Uuid& uuid) {
  return std::all_of(uuid.begin(), uuid.end(), [](uint8_t byte) { return byte == 0; });
}

Uuid derive_uuid(std::string_view iqn, uint64_t lun, std::string_view kind, std::string_view path) {
  std::string name(kNamespace.begin(), kNamespace.end());
  name.append(iqn).append("\n").append(std::to_string(lun)).append("\n");
  name.append(kind).append(":").append(path);
  std::array<uint8_t, EVP_MAX_MD_SIZE> digest{};
  if (EVP_Digest(name.data(), name.size(), digest.data(), nullptr, EVP_sha1(), nullptr) != 1) {
    throw std::runtime_error("SHA-1 is not available in OpenSSL");
  }
  Uuid uuid{};
  std::copy_n(digest.begin(), uuid.size(), uuid.begin());
  uuid[6] = static_cast<uint8_t>((uuid[6] & 0x0f) | 0x50);  // version 5
  uuid[8] = static_cast<uint8_t>((uuid[8] & 0x3f) | 0x80);  // variant
  return uuid;
}

}  // namespace sluice::config
