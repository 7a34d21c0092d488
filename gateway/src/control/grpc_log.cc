#include "control/grpc_log.h"

#include <fmt/format.h>
#include <grpc/support/log.h>

#include <string>
#include <string_view>

#include "base/log.h"
#include "base/log_repeats.h"

namespace sluice::control {
namespace {

log::Level level_of(gpr_log_severity severity) {
  switch (severity) {
    case GPR_LOG_SEVERITY_DEBUG:
      return log::Level::kDebug;
    case GPR_LOG_SEVERITY_INFO:
      return log::Level::kInfo;
    case GPR_LOG_SEVERITY_ERROR:
      break;
  }
  return log::Level::kWarning;  // what gRPC calls an error may be a peer that has gone
}

// gRPC repeats a line at each attempt to connect; its place in the source identifies the cause.
void take(gpr_log_func_args* line) {
  std::string_view file = line->file;
  file = file.substr(file.rfind('/') + 1);
  const std::string at = fmt::format("{}:{}", file, line->line);
  log::repeated(level_of(line->severity), at, "gRPC", {{"at", at}, {"text", line->message}});
}

}  // namespace

void log_grpc_lines() { gpr_set_log_function(take); }

}  // namespace sluice::control
