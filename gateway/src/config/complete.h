// The last step of reading: defaults that depend on the machine, derived identities, and checks
// that need the whole configuration, mainly for duplicates.
#pragma once

#include <string>

#include "base/result.h"
#include "config/config.h"

namespace sluice::config {

// `file` is its name in messages.
Result<void> complete(Config* config, const std::string& file);

// Defaults for the current user: for root under /run and /var/lib, for others in their own
// directories.
std::string default_admin_socket();
std::string default_state_directory();
// Number of CPUs that this process may use.
unsigned usable_cpus();

}  // namespace sluice::config
