#include "rbd/ceph_error.h"

#include <cerrno>
#include <cstring>

namespace sluice::rbd {

std::string ceph_error(int negative_errno) {
  if (negative_errno == -ESHUTDOWN) return "this client is blocklisted";
  return std::strerror(-negative_errno);
}

}  // namespace sluice::rbd
