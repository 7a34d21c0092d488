// A configuration in words, for --check and the log. For secrets it shows only their source.
#pragma once

#include <string>
#include <vector>

#include "config/changes.h"
#include "config/config.h"
#include "desired/exporter.h"

namespace sluice::config {

std::string summary(const Config& config);

// One line per change: "LUN 3 of iqn... added". `outcome`: what applying `changes` did to the
// exports.
std::vector<std::string> describe(const Changes& changes, const desired::Outcome& outcome);

// "file:/path, 1GiB, io=buffered, write-cache=off"
std::string describe(const backend::Spec& spec);

}  // namespace sluice::config
