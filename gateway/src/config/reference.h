// The tables of gateway/CONFIGURATION.md, rendered from the key table. A test compares; set
// SLUICE_WRITE_REFERENCE=1 in its environment to bring the page up to date.
#pragma once

#include <string>

namespace sluice::config {

std::string reference();

}  // namespace sluice::config
