// A LUN that discards writes and reads zeros; it measures the software above the backend.
#pragma once

#include <atomic>
#include <cstdint>

#include "backend/backend.h"

namespace sluice::backend {

class Null final : public Backend {
 public:
  explicit Null(const Spec& spec);

  const Info& info() const override { return info_; }
  uint64_t size_bytes() const override { return size_.load(std::memory_order_acquire); }
  bool submit(Io& io, Aio& aio) override;
  const uint8_t* borrow(uint64_t offset, uint64_t length) const override;
  bool write_cache() const override { return write_cache_.load(std::memory_order_relaxed); }
  Result<void> set_write_cache(bool on) override;
  Result<Extent> allocation(uint64_t offset, uint64_t limit) const override;
  Result<void> resize(uint64_t new_size) override;
  Result<void> check() override { return {}; }

 private:
  Info info_;
  std::atomic<uint64_t> size_;
  std::atomic<bool> write_cache_;
};

}  // namespace sluice::backend
