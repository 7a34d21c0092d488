// The last step of reading: defaults that depend on the machine, derived identities, and what
// only shows when everything is known, above all duplicates.
#pragma once

#include <string>

#include "base/result.h"
#include "config/config.h"

namespace sluice::config {

// `file` is for messages.
Result<void> complete(Config* config, const std::string& file);

// Defaults for this user: root's are under /run and /var/lib, others' under their own directories.
std::string default_admin_socket();
std::string default_state_directory();
// CPUs this process may run on.
unsigned usable_cpus();

}  // namespace sluice::config
