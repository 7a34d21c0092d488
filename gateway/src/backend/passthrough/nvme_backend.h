// A LUN in an NVMe namespace, by commands of its own through /dev/ngXnY: neither page cache nor
// block layer's scheduler in between. COMPARE AND WRITE is the engine's range lock, as with every
// other backend: fused commands don't pass io_uring as a pair.
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
  // Refuses to turn on the cache of a drive that has none.
  Result<void> set_write_cache(bool on) override;

 private:
  NvmeBackend(const backend::Spec& spec, Claim claim);
  Result<void> probe(const backend::Spec& spec);
  Result<uint64_t> present_size(int fd) const override;
  Result<NvmeNamespace> identify_namespace(int fd) const;

  NvmeShared shared_;
};

}  // namespace sluice::passthrough
