// Management of a pool's images, as jobs ask for it (gateway_stream.proto, Job). An image that this
// gateway serves is managed through its own open image, for Ceph holds writes back meanwhile; one
// that another client has locked is left to that one. Each job may come again.
//
// Threads: workers; it waits for Ceph, as long as that takes.
#pragma once

#include <functional>
#include <memory>

#include "control_rbd/rbd_pool.h"

namespace sluice::control {

JobOutcome run_rbd_job(const std::shared_ptr<RbdPool>& pool, const wire::Job& job,
                       const std::function<void(uint32_t permille)>& progress);

}  // namespace sluice::control
