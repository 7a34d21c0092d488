// A LUN that is a SCSI device as a whole, through /dev/sgN: no page cache, its own sense data.
// READ, WRITE and their kin come as requests like to every backend; what the device answers for
// itself comes as kCdb (scsi/pass_through_commands.h).
#pragma once

#include "passthrough/device_backend.h"
#include "passthrough/sg_channel.h"

namespace sluice::passthrough {

class SgBackend final : public DeviceBackend {
 public:
  static Result<std::unique_ptr<backend::Backend>> open(const backend::Spec& spec);
  ~SgBackend() override { channels_.clear(); }

  bool write_cache() const override {
    return volatile_cache_ && shared_.write_cache.load(std::memory_order_relaxed);
  }
  // Refuses to turn on the cache of a device whose own is off.
  Result<void> set_write_cache(bool on) override;

 private:
  SgBackend(const backend::Spec& spec, Claim claim);
  Result<void> probe(const backend::Spec& spec);
  Result<uint64_t> present_size(int fd) const override;

  SgShared shared_;
};

}  // namespace sluice::passthrough
