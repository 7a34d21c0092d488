// The lines that gRPC logs itself become lines of this process's log, instead of lines on standard
// error in another form.
#pragma once

namespace sluice::control {

// Takes effect for the whole process. GRPC_VERBOSITY still decides which lines gRPC logs; without
// it those are errors.
void log_grpc_lines();

}  // namespace sluice::control
