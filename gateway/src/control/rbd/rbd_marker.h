// The marker of a Ceph pool (control/local/pool_marker.h): the object `sluice.pool.<uid of the
// StoragePool>` in the pool or its namespace. Other StoragePools and other systems may have images
// and markers in the same Ceph pool. The storage id consists of the cluster's fsid and the Ceph
// pool's number, so a pool that was created again under the same name differs.
//
// The id of a marker begins with the cluster's fsid. A gateway can therefore check without I/O that
// it is connected to the cluster in which clients are to be blocklisted.
//
// Threads: those of an executor; calls wait for Ceph.
#pragma once

#include <memory>
#include <string>

#include "control/local/pool_marker.h"
#include "rbd/rados_client.h"

namespace sluice::control {

// Nothing else may use `pool` meanwhile (rados_object.h).
Result<Identified> identify_rbd_pool(std::shared_ptr<rbd::Pool> pool, const ExpectedPool& expected);

// Whether the marker that the control plane knows belongs to this cluster. True also if it knows
// none, or if an administrator confirmed a replacement that no gateway has marked yet.
bool is_cluster_of(const ExpectedPool& expected, const std::string& fsid);

}  // namespace sluice::control
