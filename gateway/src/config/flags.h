// The command line. A gateway needs either --config or flags for the complete configuration. Flags
// for a top-level key override the file, also at a reload. --control-plane and its related flags
// replace a whole section.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "config/config.h"

namespace sluice::config {

struct Flags {
  enum class Command : uint8_t {
    kServe,
    kCheck,
    kSessions,
    kLuns,
    kAcceptSystem,
  } command = Command::kServe;
  std::string config_file;  // empty: flags only
  std::vector<std::string> listen;
  struct Target {
    std::string iqn;                // empty: the default name
    std::vector<std::string> luns;  // "0=null:1GiB"
  };
  std::vector<Target> targets;  // each --lun belongs to the --target before it
  std::string chap_file;
  ControlPlaneConfig control_plane;  // all of it, or none
  std::optional<unsigned> reactors;
  std::optional<std::string> metrics;
  std::optional<std::string> state_directory;
  std::optional<std::string> admin_socket;  // also --socket of the query commands
  std::optional<std::string> log_level;
  std::optional<std::string> log_format;
  bool core_dumps = false;
  bool json = false;      // for sessions and luns
  std::string system_id;  // for accept-system
};

struct Invocation {
  std::optional<Flags> flags;  // empty: print `output` and exit
  std::string output;
  int exit_code = 0;  // 0, or 2 for a wrong command line
};
Invocation parse_flags(int argc, const char* const* argv);

// "0.1.0"
std::string_view version();

// The complete configuration for these flags. Reads files.
Result<Config> load(const Flags& flags);

}  // namespace sluice::config
