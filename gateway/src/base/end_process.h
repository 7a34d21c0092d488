// The immediate end of a process that cannot keep its promises.
#pragma once

#include <string_view>

#include "base/log.h"

namespace sluice {

// Writes one last line to the log, and kills the process: no handlers, no core file, no wait for a
// thread that hangs. Other gateways take its volumes over as after any crash.
[[noreturn]] void end_process(std::string_view why, log::Fields fields);

}  // namespace sluice
