// How a pool of Ceph is found: whether it can hold volumes, and how full it is.
//
// Threads: workers; calls wait for Ceph.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "rbd/rados_client.h"

namespace sluice::rbd {

struct PoolFacts {
  std::string cluster;  // fsid
  // Of the pool that the data is in, as a host counts: one copy of it, whatever is kept of each.
  // What the pool has, and what it can take yet: until a disk is full, or its quota is used up. 0:
  // the cluster doesn't tell.
  uint64_t capacity_bytes = 0;
  uint64_t used_bytes = 0;
};

// As `client` finds the pool. May wait for as long as the pool's disks hang.
Result<PoolFacts> look_at(RadosClient& client, const std::string& pool, const std::string& space,
                          const std::string& data_pool);

// Whether a pool can hold volumes, with an error that tells: no monitor answers, the user is
// refused, there is no such pool, namespace or data pool. Bounded by limits::kCephConnect.
Result<PoolFacts> probe(const backend::CephAccess& access, const std::string& pool,
                        const std::string& space, const std::string& data_pool);

}  // namespace sluice::rbd
