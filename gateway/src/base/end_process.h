// Ends a process immediately when it can't fulfill its guarantees.
#pragma once

#include <string_view>

#include "base/log.h"

namespace sluice {

// Writes one last line to the log and kills the process, without handlers or a core file, and
// without waiting for hanging threads. Before that it waits for at most limits::kReleaseReady, so
// that such threads keep no locks (exit_guard.h). Other gateways take over its volumes as after a
// crash.
[[noreturn]] void end_process(std::string_view why, log::Fields fields);

}  // namespace sluice
