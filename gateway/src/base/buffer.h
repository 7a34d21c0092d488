// Reference-counted I/O memory, which the socket, the protocol core and the backends share.
//
// - Threads: a pool and all its buffers belong to one reactor; the counts are plain integers.
// - Alignment: data() of a pool's buffer is 4096-byte aligned, so O_DIRECT can use it from its
//   start.
// - Bound: a pool never exceeds its budget; allocate() then returns an empty reference and the
//   caller waits (DESIGN R14).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace sluice {

class BufferPool;

struct Buffer {
  uint8_t* data = nullptr;
  uint32_t capacity = 0;  // bytes
  uint32_t references = 0;
  BufferPool* pool = nullptr;  // null: memory that is lent, not of a pool ...
  // ... the lender's callback when the last reference is released
  void (*returned)(Buffer& buffer) = nullptr;
  Buffer* next_free = nullptr;
  uint16_t id = 0;  // index in a receive ring (net/)
  uint8_t size_class = 0;
};

// Shared ownership of one Buffer within a reactor.
class BufferRef {
 public:
  BufferRef() = default;
  explicit BufferRef(Buffer* buffer) : buffer_(buffer) {
    if (buffer_) ++buffer_->references;
  }
  BufferRef(const BufferRef& other) : BufferRef(other.buffer_) {}
  BufferRef(BufferRef&& other) noexcept : buffer_(std::exchange(other.buffer_, nullptr)) {}
  BufferRef& operator=(BufferRef other) noexcept {
    std::swap(buffer_, other.buffer_);
    return *this;
  }
  ~BufferRef() { reset(); }

  inline void reset();
  explicit operator bool() const { return buffer_ != nullptr; }
  uint8_t* data() const { return buffer_->data; }
  uint32_t capacity() const { return buffer_->capacity; }
  Buffer* get() const { return buffer_; }

 private:
  Buffer* buffer_ = nullptr;
};

// A range of bytes and the owner of its memory. With an empty owner something else guarantees that
// the memory outlives every use: bytes in a send queue may outlive their command, its session and
// its LUN.
struct Slice {
  BufferRef owner;
  uint8_t* data = nullptr;
  uint32_t size = 0;  // bytes
};

class BufferPool {
 public:
  // budget: bytes; at least one buffer of the largest class can always be allocated.
  explicit BufferPool(size_t budget);
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;
  // All BufferRefs must have been released.
  ~BufferPool();

  static constexpr uint32_t kClassSizes[] = {4096, 16384, 65536, 262144};
  static constexpr uint32_t kLargest = 262144;

  // Allocates a buffer of at least `size` bytes, 1 <= size <= kLargest. Its content is undefined:
  // the caller must fill what it sends, so that no stale data leaves the gateway. Empty: the budget
  // is exhausted.
  BufferRef allocate(uint32_t size);

  size_t in_use() const { return in_use_; }      // bytes that are referenced
  size_t reserved() const { return reserved_; }  // bytes mapped from the kernel
  size_t budget() const { return budget_; }
  // Bytes that can still be allocated.
  size_t available() const { return budget_ > in_use_ ? budget_ - in_use_ : 0; }

 private:
  friend class BufferRef;
  void release(Buffer* buffer) {
    in_use_ -= buffer->capacity;
    buffer->next_free = free_[buffer->size_class];
    free_[buffer->size_class] = buffer;
  }
  bool grow(uint8_t size_class);

  struct Slab {
    void* memory;
    size_t size;
    std::unique_ptr<Buffer[]> buffers;
  };
  Buffer* free_[4] = {};
  size_t in_use_ = 0;
  size_t reserved_ = 0;
  size_t budget_;
  std::vector<Slab> slabs_;
};

inline void BufferRef::reset() {
  if (buffer_ && --buffer_->references == 0) {
    if (buffer_->pool) [[likely]] {
      buffer_->pool->release(buffer_);
    } else {
      buffer_->returned(*buffer_);
    }
  }
  buffer_ = nullptr;
}

}  // namespace sluice
