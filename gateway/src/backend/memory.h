// A thin LUN in anonymous memory; the process's end deletes it. For tests, caches and scratch
// disks.
//
// Address space for growth is reserved at open, so memory from borrow() never moves. A bitmap
// records which pages hold data, because mincore() can't distinguish unwritten pages from
// swapped-out ones.
#pragma once

#include <atomic>
#include <cstdint>

#include "backend/backend.h"

namespace sluice::backend {

class Memory final : public Backend {
 public:
  static constexpr uint64_t kPage = 4096;  // bytes

  static Result<std::unique_ptr<Backend>> open(const Spec& spec);
  ~Memory() override;

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
  explicit Memory(const Spec& spec);
  Result<void> reserve(uint64_t bytes);
  Result<void> make_usable(uint64_t new_size);

  void read(Io& io) const;
  void write(Io& io);
  bool zero(Io& io, Aio& aio);
  bool zero_step(Io& io);
  static void on_next_step(AioOp& op, int32_t result);

  bool written(uint64_t page) const {
    return (bitmap_[page / 64].load(std::memory_order_relaxed) >> (page % 64) & 1) != 0;
  }
  void mark_written(uint64_t offset, uint64_t length);
  void deallocate(uint64_t offset, uint64_t length);

  Info info_;
  uint8_t* data_ = nullptr;
  std::atomic<uint64_t>* bitmap_ = nullptr;  // one bit per page, in a separate mapping
  uint64_t reserved_ = 0;                    // bytes of address space at data_
  std::atomic<uint64_t> size_;
  std::atomic<bool> write_cache_;
};

}  // namespace sluice::backend
