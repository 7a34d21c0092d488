#include "base/buffer.h"

#include <sys/mman.h>

#include <algorithm>

namespace sluice {
namespace {
constexpr size_t kSlabSize = size_t{2} << 20;
}

BufferPool::BufferPool(size_t budget) : budget_(std::max<size_t>(budget, kLargest)) {}

BufferPool::~BufferPool() {
  for (const Slab& slab : slabs_) munmap(slab.memory, slab.size);
}

BufferRef BufferPool::allocate(uint32_t size) {
  uint8_t size_class = 0;
  while (size_class < 3 && kClassSizes[size_class] < size) ++size_class;
  if (size > kLargest || in_use_ + kClassSizes[size_class] > budget_) return {};
  if (!free_[size_class] && !grow(size_class)) return {};
  Buffer* buffer = free_[size_class];
  free_[size_class] = buffer->next_free;
  in_use_ += buffer->capacity;
  return BufferRef(buffer);
}

bool BufferPool::grow(uint8_t size_class) {
  // A slab serves one class for life. The classes together can map up to four budgets of address
  // space, but only in_use_ ever grew to hold data at one time.
  void* memory =
      mmap(nullptr, kSlabSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  const uint32_t capacity = kClassSizes[size_class];
  const size_t count = kSlabSize / capacity;
  auto buffers = std::make_unique<Buffer[]>(count);
  for (size_t i = count; i-- > 0;) {
    Buffer& b = buffers[i];
    b.data = static_cast<uint8_t*>(memory) + i * capacity;
    b.capacity = capacity;
    b.pool = this;
    b.size_class = size_class;
    b.next_free = free_[size_class];
    free_[size_class] = &b;
  }
  slabs_.push_back({memory, kSlabSize, std::move(buffers)});
  reserved_ += kSlabSize;
  return true;
}

}  // namespace sluice
