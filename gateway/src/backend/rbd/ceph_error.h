// The meaning of an error number of librados or librbd in words.
#pragma once

#include <string>

namespace sluice::rbd {

// `negative_errno`: a negative errno value, as the functions of both libraries return it.
std::string ceph_error(int negative_errno);

}  // namespace sluice::rbd
