// The messages of the stream to the control plane, proto/sluice/v1/gateway_stream.proto, whose
// comments are the specification. Secrets are in some of them: none is ever printed whole.
#pragma once

#include "sluice/v1/gateway_stream.pb.h"

namespace sluice::control::wire {

using namespace ::sluice::v1;

}  // namespace sluice::control::wire
