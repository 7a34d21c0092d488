// A configuration in words, for --check and the log. For secrets it shows only their source.
#pragma once

#include <string>

#include "config/changes.h"
#include "config/config.h"

namespace sluice::config {

std::string summary(const Config& config);

// One line per kind of change: "LUN 3 of iqn... added".
std::vector<std::string> describe(const Changes& changes);

// "file:/path, 1GiB, io=buffered, write-cache=off"
std::string describe(const backend::Spec& spec);

}  // namespace sluice::config
