// Manages images of a pool for jobs (gateway_stream.proto, Job). An image that this gateway serves
// is managed through the open image, because Ceph blocks its writes meanwhile. An image that
// another client has locked is left to that client. A job may be sent again.
//
// Threads: those of an executor; it waits for Ceph, as long as that takes.
#pragma once

#include <functional>
#include <memory>

#include "control/volume/storage_pool.h"
#include "control_rbd/open_images.h"
#include "control_rbd/pool_client.h"

namespace sluice::control {

JobOutcome run_rbd_job(const std::shared_ptr<PoolClient>& pool,
                       const std::shared_ptr<OpenImages>& images, const wire::Job& job,
                       const std::function<void(uint32_t permille)>& progress);

}  // namespace sluice::control
