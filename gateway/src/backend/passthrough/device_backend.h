// A LUN that is a whole device which is handed commands of its own kind: what every kind does
// alike.
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
  // All of it: few devices tell what they hold.
  Result<backend::Extent> allocation(uint64_t offset, uint64_t limit) const final;
  Result<void> resize(uint64_t new_size) final { return look_again(new_size, "is closed"); }
  Result<void> check() final { return look_again(0, {}); }

 protected:
  DeviceBackend(std::string path, Claim claim, Channels::Make make)
      : path_(std::move(path)), claim_(std::move(claim)), channels_(std::move(make)) {}
  // In bytes, as the device tells it now. Error: also where it has other blocks by now.
  virtual Result<uint64_t> present_size(int fd) const = 0;

  const std::string path_;
  backend::Info info_;
  Claim claim_;
  bool volatile_cache_ = false;  // the device has one; else a flush is no command to it
  std::atomic<uint64_t> size_ = 0;
  Channels channels_;  // they use what a derived class has: its destructor clears them

 private:
  Result<void> look_again(uint64_t wanted, const std::string& closed);

  mutable std::mutex control_;  // of claim_.fd, once open
};

}  // namespace sluice::passthrough
