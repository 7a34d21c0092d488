// A LUN in an NVMe namespace. Commands go through /dev/ngXnY, without page cache or block layer
// scheduler. COMPARE AND WRITE uses the gateway's range lock, as with every backend, because
// io_uring can't submit fused commands as a pair.
#pragma once

#include "passthrough/device_backend.h"
#include "passthrough/nvme_channel.h"
#include "passthrough/nvme_identify.h"

namespace sluice::passthrough {

class NvmeBackend final : public DeviceBackend {
 public:
  static Result<std::unique_ptr<backend::Backend>> open(const backend::Spec& spec);
  ~NvmeBackend() override { channels_.clear(); }

  bool write_cache() const override {
    return volatile_cache_ && shared_.write_cache.load(std::memory_order_relaxed);
  }
  // Error: the drive has no cache that could be switched on.
  Result<void> set_write_cache(bool on) override;

 private:
  NvmeBackend(const backend::Spec& spec, Claim claim);
  Result<void> probe(const backend::Spec& spec);
  Result<uint64_t> present_size(int fd) const override;
  Result<NvmeNamespace> identify_namespace(int fd) const;

  NvmeShared shared_;
};

}  // namespace sluice::passthrough
