// Random ids: the incarnation of a gateway's process, the id of a pool's marker, the id of a
// directory of records.
#pragma once

#include <string>

namespace sluice::control {

// 32 random hexadecimal digits.
std::string random_id();

}  // namespace sluice::control
