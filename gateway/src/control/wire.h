// The messages of the stream to the control plane. The comments of
// proto/sluice/v1/gateway_stream.proto are their specification. Some contain secrets, so no message
// is logged as a whole.
#pragma once

#include "sluice/v1/gateway_stream.pb.h"

namespace sluice::control::wire {

using namespace ::sluice::v1;

}  // namespace sluice::control::wire
