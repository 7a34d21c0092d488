// The form of backend errors: "<path>: <what is wrong>; <what to do>", and of results of requests.
#pragma once

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>

#include "base/result.h"

namespace sluice::backend {

inline Error fail(const std::string& path, const std::string& what, const std::string& remedy) {
  return Error{path + ": " + what + (remedy.empty() ? "" : "; " + remedy)};
}

inline std::string why(int error) { return std::strerror(error); }

// Converts a negative errno of the kernel into one of the contract (Io::result).
inline int64_t contract_errno(int64_t result) {
  if (result == -EDQUOT) return -ENOSPC;
  // A block that the device can't read or write; filesystems report that as EIO.
  return result == -ENODATA ? -EIO : result;
}

}  // namespace sluice::backend
