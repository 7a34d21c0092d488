// A LUN that is a whole device with its own command set: the common part of all kinds.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "backend/backend.h"
#include "passthrough/channel.h"
#include "passthrough/claim.h"

namespace sluice::passthrough {

class DeviceBackend : public backend::Backend {
 public:
  const backend::Info& info() const final { return info_; }
  uint64_t size_bytes() const final { return size_.load(std::memory_order_acquire); }
  bool submit(backend::Io& io, Aio& aio) final;
  void close(std::function<void()> closed) final;
  // Reports everything as allocated: few devices report allocation.
  Result<backend::Extent> allocation(uint64_t offset, uint64_t limit) const final;
  Result<void> resize(uint64_t new_size) final { return check_device(new_size, "is closed"); }
  Result<void> check() final { return check_device(0, {}); }
  std::string hangs_with() const final { return "device " + path_; }

 protected:
  DeviceBackend(std::string path, Claim claim, Channels::Make make)
      : path_(std::move(path)), claim_(std::move(claim)), channels_(std::move(make)) {}
  // The device's current size in bytes. It is also an error if the block size has changed.
  virtual Result<uint64_t> present_size(int fd) const = 0;

  const std::string path_;
  backend::Info info_;
  Claim claim_;
  bool volatile_cache_ = false;  // the device has a volatile cache; without one no flush is sent
  std::atomic<uint64_t> size_ = 0;
  Channels channels_;  // they use members of the derived class, so its destructor clears them

 private:
  Result<void> check_device(uint64_t wanted, const std::string& closed);

  mutable std::mutex control_;  // protects claim_.fd after the open
};

}  // namespace sluice::passthrough
