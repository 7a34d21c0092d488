// A LUN that is a whole SCSI device, through /dev/sgN, without page cache and with the device's
// sense data. READ, WRITE and similar commands arrive as requests, as for every backend. Commands
// that the device answers itself arrive as kCdb (scsi/pass_through_commands.h).
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
  // Error: the device's own cache is off, so it can't be switched on.
  Result<void> set_write_cache(bool on) override;

 private:
  SgBackend(const backend::Spec& spec, Claim claim);
  Result<void> probe(const backend::Spec& spec);
  Result<uint64_t> present_size(int fd) const override;

  SgShared shared_;
};

}  // namespace sluice::passthrough
