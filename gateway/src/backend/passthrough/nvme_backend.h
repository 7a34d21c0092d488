// A LUN in an NVMe namespace, by commands of its own through /dev/ngXnY: neither page cache nor
// block layer's scheduler in between. COMPARE AND WRITE is the engine's range lock, as with every
// other backend: fused commands don't pass io_uring as a pair.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>

#include "backend/backend.h"
#include "passthrough/claim.h"
#include "passthrough/nvme_channel.h"
#include "passthrough/nvme_identify.h"

namespace sluice::passthrough {

class NvmeBackend final : public backend::Backend {
 public:
  static Result<std::unique_ptr<backend::Backend>> open(const backend::Spec& spec);
  ~NvmeBackend() override;

  const backend::Info& info() const override { return info_; }
  uint64_t size_bytes() const override { return size_.load(std::memory_order_acquire); }
  bool submit(backend::Io& io, Aio& aio) override;
  void close(std::function<void()> closed) override;
  bool write_cache() const override {
    return shared_.traits.volatile_cache && shared_.write_cache.load(std::memory_order_relaxed);
  }
  // Refuses to turn on the cache of a drive that has none.
  Result<void> set_write_cache(bool on) override;
  // All of it: a drive doesn't tell what it holds.
  Result<backend::Extent> allocation(uint64_t offset, uint64_t limit) const override;
  Result<void> resize(uint64_t new_size) override;
  Result<void> check() override;

 private:
  NvmeBackend(const backend::Spec& spec, Claim claim);
  Result<void> probe(const backend::Spec& spec);
  // Null once closed.
  std::shared_ptr<backend::FileDescriptor> descriptor() const;
  Result<NvmeNamespace> identify_namespace(const backend::FileDescriptor& fd) const;

  const std::string path_;
  backend::Info info_;
  Claim claim_;
  NvmeShared shared_;
  std::atomic<uint64_t> size_ = 0;
  mutable std::mutex control_;  // of claim_.fd, once open
  Channels channels_;
};

}  // namespace sluice::passthrough
