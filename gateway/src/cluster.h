// Makes this process a gateway of a cluster: connects the parts that the control room needs.
#pragma once

#include <memory>

#include "config/config.h"
#include "control/client.h"
#include "net/engine.h"
#include "nexus/exports.h"

namespace sluice {

// `exports` and `engine` outlive the client.
Result<std::unique_ptr<control::Client>> join_cluster(const config::Config& config,
                                                      lun::Exports& exports, net::Engine& engine);

}  // namespace sluice
