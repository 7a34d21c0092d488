// The marker of a Ceph pool (control/local/pool_marker.h): the object `sluice.pool.<uid of the
// StoragePool>` in the pool, or in its namespace. Other StoragePools, and other systems, may have
// images and markers in the same Ceph pool. The storage's id is the cluster's fsid and the Ceph
// pool's number, so that a pool that was created again under its name differs.
//
// A marker's id begins with the cluster's fsid. So a gateway knows without asking any disk whether
// it is connected to the cluster in which clients are to be blocklisted.
//
// Threads: workers; calls wait for Ceph.
#pragma once

#include <memory>
#include <string>

#include "control/local/pool_marker.h"
#include "rbd/rados_client.h"

namespace sluice::control {

// `pool` belongs to this call alone (rados_object.h).
Result<Identified> identify_rbd_pool(std::shared_ptr<rbd::Pool> pool, const ExpectedPool& expected);

// Whether the marker that the control plane knows is of this cluster; true where it knows none, or
// where an administrator has confirmed a replacement that no gateway has marked yet.
bool is_cluster_of(const ExpectedPool& expected, const std::string& fsid);

}  // namespace sluice::control
