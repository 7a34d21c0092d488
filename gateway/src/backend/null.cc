#include "backend/null.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "backend/range.h"
#include "backend/zeros.h"

namespace sluice::backend {

Null::Null(const Spec& spec) : size_(spec.size), write_cache_(spec.write_cache) {
  info_.discard_granularity = spec.block_size;
  info_.discard_zeroes = true;
  info_.thin = true;
  info_.read_only = spec.read_only;
  info_.lends_constants = true;
}

bool Null::submit(Io& io, Aio&) {
  io.result = 0;
  if (io.op == Op::kFlush || io.op == Op::kCheckFence) return true;
  if (io.length == 0 || !within(io.offset, io.length, size_bytes())) {
    io.result = -EINVAL;
  } else if (io.op == Op::kRead) {
    for (uint32_t i = 0; i < io.iovcnt; ++i) std::memset(io.iov[i].iov_base, 0, io.iov[i].iov_len);
    io.result = static_cast<int64_t>(io.length);
  } else if (info_.read_only) {
    io.result = -EROFS;
  } else if (io.op == Op::kWrite && (io.flags & kIoAtomic)) {
    io.result = -EOPNOTSUPP;
  } else if (io.op == Op::kWrite) {
    io.result = static_cast<int64_t>(io.length);
  }
  return true;
}

const uint8_t* Null::borrow(uint64_t offset, uint64_t length) const {
  // Always the start of the area, so that short reads share few TLB entries.
  if (length > kZerosSize || !within(offset, length, size_bytes())) return nullptr;
  return zeros();
}

Result<void> Null::set_write_cache(bool on) {
  write_cache_.store(on, std::memory_order_relaxed);
  return {};
}

Result<Extent> Null::allocation(uint64_t offset, uint64_t limit) const {
  if (limit == 0 || offset >= size_bytes()) return Error{"allocation asked beyond the end"};
  return Extent{std::min(limit, size_bytes() - offset), false};
}

Result<void> Null::resize(uint64_t new_size) {
  if (new_size < size_bytes()) return Error{"null: a LUN can't shrink; data would be lost"};
  size_.store(new_size, std::memory_order_release);
  return {};
}

}  // namespace sluice::backend
