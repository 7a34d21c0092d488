// Renders the tables of gateway/CONFIGURATION.md from the key table. A test compares them; with
// SLUICE_WRITE_REFERENCE=1 in its environment it updates the page.
#pragma once

#include <string>

namespace sluice::config {

std::string reference();

}  // namespace sluice::config
