// A LUN on a block device, or on the part of it behind a reserved area. Opened exclusively (O_EXCL,
// DESIGN R2) and always with direct I/O.
#pragma once

#include "backend/block_queue.h"
#include "backend/descriptor.h"

namespace sluice::backend {

class Block final : public Descriptor {
 public:
  // `reserved`: bytes at the start of the device that do not belong to the LUN; a multiple of 1
  // MiB.
  static Result<std::unique_ptr<Backend>> open(const Spec& spec, uint64_t reserved = 0);

  // Error: the drive has no cache that could be switched on.
  Result<void> set_write_cache(bool on) override;
  bool write_cache() const override { return write_back_ && Descriptor::write_cache(); }
  // Reports everything as allocated: the kernel has no interface for a device's allocation.
  Result<Extent> allocation(uint64_t offset, uint64_t limit) const override;
  Result<void> resize(uint64_t new_size) override;
  Result<void> check() override;

 private:
  Block(const Spec& spec, Setup setup, dev_t device, bool write_back)
      : Descriptor(spec, std::move(setup)),
        device_(device),
        is_part_(spec.size != 0),
        write_back_(write_back) {}
  Result<uint64_t> usable_size() const;

  const dev_t device_;
  const bool is_part_;  // the size was configured, and may be less than the device's
  const bool write_back_;
};

}  // namespace sluice::backend
