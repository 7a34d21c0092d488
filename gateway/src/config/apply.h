// Applies a configuration to volumes and exports. It is atomic as far as possible: all steps that
// can fail come before the first change that hosts can see, except for changes of sizes and write
// caches, which can't be undone.
//
// Threads: one control thread. Sessions continue, but if a target is removed or its hosts change,
// the access of its sessions is reviewed.
#pragma once

#include "base/result.h"
#include "config/changes.h"
#include "config/volumes.h"
#include "desired/exporter.h"

namespace sluice::config {

// All exports that `config` defines. A volume is named by its UUID.
desired::Update desired_exports(const Config& config);

// `exporter` uses `volumes`.
Result<desired::Outcome> apply(const Changes& changes, Volumes& volumes,
                               desired::Exporter& exporter);

}  // namespace sluice::config
