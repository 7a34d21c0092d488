// iSCSI names (RFC 7143 §4.2.7): iqn., eui. and naa. formats.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace sluice::iscsi {

// Checks the format of a name and returns it in lower case, the form for comparison and storage
// (§4.2.7.2). Characters outside ASCII must be well-formed UTF-8 and are compared bytewise.
Result<std::string> normalise_name(std::string_view name);

}  // namespace sluice::iscsi
