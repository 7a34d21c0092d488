// The client of the admin socket, for `sluice-gateway sessions` and `luns`.
#pragma once

#include <string>

#include "base/result.h"

namespace sluice::admin {

// The result as JSON text. Accepts answers only from a gateway of root or of this user.
Result<std::string> ask(const std::string& path, const std::string& request,
                        const std::string& argument = {});

}  // namespace sluice::admin
