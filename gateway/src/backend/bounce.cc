#include "backend/bounce.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>

namespace sluice::backend {
namespace {

void destroy(Bounce* bounce) {
  std::free(bounce->data);
  delete bounce;
}

}  // namespace

BouncePool::~BouncePool() {
  for (FreeList& list : free_) {
    while (Bounce* bounce = list.head) {
      list.head = bounce->next;
      destroy(bounce);
    }
  }
}

Bounce* BouncePool::take(uint64_t size) {
  uint64_t capacity = std::bit_ceil(std::clamp<uint64_t>(size, kSmallest, kLargest));
  uint32_t size_class = static_cast<uint32_t>(std::countr_zero(capacity / kSmallest));
  {
    std::lock_guard lock(mutex_);
    FreeList& list = free_[size_class];
    if (Bounce* bounce = list.head) {
      list.head = bounce->next;
      --list.length;
      return bounce;
    }
  }
  auto* data = static_cast<uint8_t*>(std::aligned_alloc(kSmallest, capacity));
  if (!data) return nullptr;
  return new Bounce{data, static_cast<uint32_t>(capacity), size_class, nullptr};
}

void BouncePool::give_back(Bounce* bounce) {
  {
    std::lock_guard lock(mutex_);
    FreeList& list = free_[bounce->size_class];
    if (list.length < kKeptPerClass) {
      bounce->next = list.head;
      list.head = bounce;
      ++list.length;
      return;
    }
  }
  destroy(bounce);
}

void gather(const iovec* iov, uint64_t length, uint8_t* to) {
  for (; length > 0; ++iov) {
    uint64_t n = std::min<uint64_t>(iov->iov_len, length);
    if (n != 0) std::memcpy(to, iov->iov_base, n);
    to += n;
    length -= n;
  }
}

void scatter(const uint8_t* from, const iovec* iov, uint64_t length) {
  for (; length > 0; ++iov) {
    uint64_t n = std::min<uint64_t>(iov->iov_len, length);
    if (n != 0) std::memcpy(iov->iov_base, from, n);
    from += n;
    length -= n;
  }
}

}  // namespace sluice::backend
