// The form of backend errors: "<path>: <what is wrong>; <what to do>".
#pragma once

#include <cstring>
#include <string>

#include "base/result.h"

namespace sluice::backend {

inline Error fail(const std::string& path, const std::string& what, const std::string& remedy) {
  return Error{path + ": " + what + (remedy.empty() ? "" : "; " + remedy)};
}

inline std::string why(int error) { return std::strerror(error); }

}  // namespace sluice::backend
