// Identities of LUNs. A missing one is derived (UUID version 5, RFC 9562 §5.5) from the name of the
// LUN, so that it is the same after every restart; but it changes with that name.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "config/config.h"

namespace sluice::config {

// "0f7c3a52-...": 36 characters, case-insensitive.
Result<Uuid> parse_uuid(std::string_view text);
std::string format_uuid(const Uuid& uuid);
bool is_nil(const Uuid& uuid);

Uuid derive_uuid(std::string_view iqn, uint64_t lun, std::string_view kind, std::string_view path);

}  // namespace sluice::config
