#include "net/receive_ring.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <bit>
#include <cstring>
#include <utility>

namespace sluice::net {
namespace {

// Newer than Debian's liburing 2.3 knows (linux/io_uring.h, Linux 6.12).
constexpr uint16_t kPbufRingIncremental = 2;  // IOU_PBUF_RING_INC, in io_uring_buf_reg.flags
constexpr uint32_t kCqeBufferMore = 1u << 4;  // IORING_CQE_F_BUF_MORE

constexpr unsigned kCount = limits::kReceiveBuffers;
static_assert(std::has_single_bit(kCount), "the kernel wants a power of two");
constexpr size_t kRingBytes = 4096;
static_assert(kCount * sizeof(io_uring_buf) <= kRingBytes);

// Linux 6.4 made this field of a pad that was required to be zero. Headers of liburing have either
// name.
template <typename Registration>
uint16_t& flags_of(Registration& reg) {
  if constexpr (requires { reg.flags; }) {
    return reg.flags;
  } else {
    return reg.pad;
  }
}

}  // namespace

void ReceiveRing::close() {
  if (!ring_) return;
  io_uring_unregister_buf_ring(owner_, kGroup);
  munmap(std::exchange(ring_, nullptr), kRingBytes);
  buffers_ = {};
}

Result<bool> ReceiveRing::open(io_uring* ring) {
  void* memory =
      mmap(nullptr, kRingBytes, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | MAP_PRIVATE, -1, 0);
  if (memory == MAP_FAILED) return Error{"no memory for the receive buffer ring"};
  io_uring_buf_reg reg{};
  reg.ring_addr = reinterpret_cast<uintptr_t>(memory);
  reg.ring_entries = kCount;
  reg.bgid = kGroup;
  flags_of(reg) = kPbufRingIncremental;
  int error = io_uring_register_buf_ring(ring, &reg, 0);
  incremental_ = error == 0;
  if (error != 0) {
    flags_of(reg) = 0;
    error = io_uring_register_buf_ring(ring, &reg, 0);
  }
  if (error != 0) {
    munmap(memory, kRingBytes);
    return Error{
        fmt::format("the kernel refused a receive buffer ring: {} (Linux 6.1 or newer is "
                    "needed)",
                    std::strerror(-error))};
  }
  owner_ = ring;
  ring_ = static_cast<io_uring_buf_ring*>(memory);
  ring_->tail = 0;
  for (uint16_t id = 0; id < kCount; ++id)
    empty_[empty_count_++] = static_cast<uint16_t>(kCount - 1 - id);
  replenish();
  return incremental_;
}

void ReceiveRing::provide(uint16_t id) {
  // Not io_uring_buf_ring_add(): that declares its flexible array in a way -Wpedantic refuses.
  auto* entry = reinterpret_cast<io_uring_buf*>(ring_) + (tail_ & (kCount - 1));
  entry->addr = reinterpret_cast<uintptr_t>(buffers_[id].data());
  entry->len = limits::kReceiveBufferSize;
  entry->bid = id;  // entry 0's `resv` is the ring's tail: never write it
  ++tail_;
  ++filled_;
  used_[id] = 0;
}

bool ReceiveRing::replenish() {
  if (empty_count_ == 0) return true;
  const unsigned before = empty_count_;
  while (empty_count_ > 0) {
    const uint16_t id = empty_[empty_count_ - 1];
    // A buffer without other references is reused immediately, because it is hot.
    if (!buffers_[id] || buffers_[id].get()->references > 1) {
      BufferRef fresh = pool_.allocate(limits::kReceiveBufferSize);
      if (!fresh) break;
      buffers_[id] = std::move(fresh);
    }
    --empty_count_;
    provide(id);
  }
  if (empty_count_ != before) {
    __atomic_store_n(&ring_->tail, tail_, __ATOMIC_RELEASE);
  }
  return filled_ > 0;
}

Slice ReceiveRing::take(uint32_t bytes, uint32_t flags) {
  const auto id = static_cast<uint16_t>(flags >> IORING_CQE_BUFFER_SHIFT);
  Slice slice{buffers_[id], buffers_[id].data() + used_[id], bytes};
  used_[id] += bytes;
  const bool stays = incremental_ && (flags & kCqeBufferMore);
  if (!stays) {
    --filled_;
    empty_[empty_count_++] = id;
  }
  return slice;
}

}  // namespace sluice::net
