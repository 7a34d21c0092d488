// The state of a Ceph pool: whether it can hold volumes, and how full it is.
//
// Threads: those of an executor; calls wait for Ceph.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "rbd/rados_client.h"

namespace sluice::rbd {

struct PoolFacts {
  std::string cluster;  // fsid
  // Of the data pool, in bytes that hosts can use: replicas count once. The capacity is the used
  // space plus the space that is available until a disk is full or the quota is reached. 0: the
  // cluster does not say.
  uint64_t capacity_bytes = 0;
  uint64_t used_bytes = 0;
};

// The state that `client` sees. May block as long as the pool's disks hang.
Result<PoolFacts> read_pool_facts(RadosClient& client, const std::string& pool,
                                  const std::string& space, const std::string& data_pool);

// Whether a pool can hold volumes. Errors: no monitor answers, the user is refused, or the pool,
// namespace or data pool does not exist. Bounded by limits::kCephConnect.
Result<PoolFacts> probe(const backend::CephAccess& access, const std::string& pool,
                        const std::string& space, const std::string& data_pool);

}  // namespace sluice::rbd
