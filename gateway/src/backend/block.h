// A LUN on a block device: exclusive (O_EXCL, DESIGN R2) and always past the page cache.
#pragma once

#include "backend/block_queue.h"
#include "backend/descriptor.h"

namespace sluice::backend {

class Block final : public Descriptor {
 public:
  static Result<std::unique_ptr<Backend>> open(const Spec& spec);

  // Refuses to turn on the cache of a drive that has none.
  Result<void> set_write_cache(bool on) override;
  bool write_cache() const override { return write_back_ && Descriptor::write_cache(); }
  // All of it: the kernel can't tell what a device holds.
  Result<Extent> allocation(uint64_t offset, uint64_t limit) const override;
  Result<void> resize(uint64_t new_size) override;
  Result<void> check() override;

 private:
  Block(const Spec& spec, Setup setup, dev_t device, bool write_back)
      : Descriptor(spec, std::move(setup)), device_(device), write_back_(write_back) {}
  Result<uint64_t> device_size() const;

  const dev_t device_;
  const bool write_back_;
};

}  // namespace sluice::backend
