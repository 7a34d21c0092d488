// A LUN that is a SCSI device as a whole, through /dev/sgN: no page cache, its own sense data.
// READ, WRITE and their kin come as requests like to every backend; what the device answers for
// itself comes as kCdb (scsi/pass_through_commands.h).
#pragma once

#include <atomic>
#include <memory>
#include <mutex>

#include "backend/backend.h"
#include "passthrough/claim.h"
#include "passthrough/sg_channel.h"

namespace sluice::passthrough {

class SgBackend final : public backend::Backend {
 public:
  static Result<std::unique_ptr<backend::Backend>> open(const backend::Spec& spec);

  const backend::Info& info() const override { return info_; }
  uint64_t size_bytes() const override { return size_.load(std::memory_order_acquire); }
  bool submit(backend::Io& io, Aio& aio) override;
  void close(std::function<void()> closed) override;
  bool write_cache() const override {
    return shared_.traits.medium.volatile_cache &&
           shared_.write_cache.load(std::memory_order_relaxed);
  }
  // Refuses to turn on the cache of a device whose own is off.
  Result<void> set_write_cache(bool on) override;
  // All of it: GET LBA STATUS isn't asked, few devices know it.
  Result<backend::Extent> allocation(uint64_t offset, uint64_t limit) const override;
  Result<void> resize(uint64_t new_size) override;
  Result<void> check() override;

 private:
  SgBackend(const backend::Spec& spec, Claim claim);
  Result<void> probe(const backend::Spec& spec);
  // Null once closed.
  std::shared_ptr<backend::FileDescriptor> descriptor() const;
  Result<uint64_t> present_size(const backend::FileDescriptor& fd) const;

  const std::string path_;
  backend::Info info_;
  Claim claim_;
  SgShared shared_;
  std::atomic<uint64_t> size_ = 0;
  mutable std::mutex control_;  // of claim_.fd, once open
  Channels channels_;
};

}  // namespace sluice::passthrough
