// iSCSI names (RFC 7143 §4.2.7): iqn., eui. and naa. formats.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace sluice::iscsi {

// The name as it is compared and stored: checked against its format and in lower case (§4.2.7.2).
// Of characters outside ASCII only well-formed UTF-8 is asked; they are compared byte by byte.
Result<std::string> normalise_name(std::string_view name);

}  // namespace sluice::iscsi
