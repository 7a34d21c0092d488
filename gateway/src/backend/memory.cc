#include "backend/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "backend/range.h"
#include "backend/size_text.h"
#include "backend/system_page.h"

namespace sluice::backend {
namespace {

// Zeroing runs in steps of this size, so that the reactor can do other work between them: freeing
// or clearing gigabytes at once would stall it for longer than DESIGN R6 permits.
constexpr uint64_t kZeroStep = uint64_t{16} << 20;  // bytes
// Growth factor of the reservation at open; address space costs nothing.
constexpr uint64_t kGrowthFactor = 8;
constexpr uint64_t kLeastReservation = uint64_t{1} << 30;

constexpr uint64_t round_up(uint64_t n, uint64_t unit) { return (n + unit - 1) / unit * unit; }

uint64_t bitmap_bytes(uint64_t reserved) { return round_up(reserved / Memory::kPage, 64) / 8; }

void* map(uint64_t bytes, int protection) {
  void* memory =
      mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

}  // namespace

Memory::Memory(const Spec& spec) : size_(spec.size), write_cache_(spec.write_cache) {
  info_.discard_granularity = kPage;
  info_.discard_zeroes = true;
  info_.thin = true;
  info_.read_only = spec.read_only;
}

Memory::~Memory() {
  if (data_) munmap(data_, reserved_);
  if (bitmap_) munmap(bitmap_, bitmap_bytes(reserved_));
}

Result<std::unique_ptr<Backend>> Memory::open(const Spec& spec) {
  std::unique_ptr<Memory> memory(new Memory(spec));
  const uint64_t least = round_up(spec.size, kPage);
  uint64_t wish = spec.size < (uint64_t{1} << 43) ? least * kGrowthFactor : least;
  Result<void> reserved = memory->reserve(std::max(wish, kLeastReservation));
  // A limited address space (RLIMIT_AS) only prevents growth.
  if (!reserved) reserved = memory->reserve(least);
  if (reserved) reserved = memory->make_usable(spec.size);
  if (!reserved) return Error{reserved.error()};
  return Result<std::unique_ptr<Backend>>(std::move(memory));
}

Result<void> Memory::reserve(uint64_t bytes) {
  void* data = map(bytes, PROT_NONE);
  void* bitmap = data ? map(bitmap_bytes(bytes), PROT_READ | PROT_WRITE) : nullptr;
  if (!bitmap) {
    Error error{"memory: can't reserve " + format_size(bytes) + " of address space: " +
                std::strerror(errno) + "; choose a smaller size or raise the limit (ulimit -v)"};
    if (data) munmap(data, bytes);
    return error;
  }
  data_ = static_cast<uint8_t*>(data);
  bitmap_ = static_cast<std::atomic<uint64_t>*>(bitmap);
  reserved_ = bytes;
  return {};
}

Result<void> Memory::make_usable(uint64_t new_size) {
  if (mprotect(data_, round_up(new_size, kPage), PROT_READ | PROT_WRITE) == 0) return {};
  return Error{"memory: can't use " + format_size(new_size) + ": " + std::strerror(errno) +
               "; free memory or choose a smaller size"};
}

bool Memory::submit(Io& io, Aio& aio) {
  if (io.op == Op::kFlush || io.op == Op::kCheckFence) {
    io.result = 0;
    return true;
  }
  if (io.length == 0 || !within(io.offset, io.length, size_bytes())) {
    io.result = -EINVAL;
    return true;
  }
  if (io.op == Op::kRead) {
    read(io);
    return true;
  }
  if (info_.read_only) {
    io.result = -EROFS;
    return true;
  }
  if (io.op == Op::kWrite) {
    // Nothing here survives power loss.
    if (io.flags & kIoAtomic) {
      io.result = -EOPNOTSUPP;
    } else {
      write(io);
    }
    return true;
  }
  return zero(io, aio);
}

void Memory::read(Io& io) const {
  const uint8_t* from = data_ + io.offset;
  for (uint32_t i = 0; i < io.iovcnt; ++i) {
    std::memcpy(io.iov[i].iov_base, from, io.iov[i].iov_len);
    from += io.iov[i].iov_len;
  }
  io.result = static_cast<int64_t>(io.length);
}

void Memory::write(Io& io) {
  uint8_t* to = data_ + io.offset;
  for (uint32_t i = 0; i < io.iovcnt; ++i) {
    std::memcpy(to, io.iov[i].iov_base, io.iov[i].iov_len);
    to += io.iov[i].iov_len;
  }
  mark_written(io.offset, io.length);
  io.result = static_cast<int64_t>(io.length);
}

bool Memory::zero(Io& io, Aio& aio) {
  io.priv.backend = this;
  io.priv.aio = &aio;
  io.priv.a = 0;  // bytes zeroed
  io.aio = AioOp{};
  io.aio.kind = AioOp::Kind::kTimeout;
  io.aio.done = &Memory::on_next_step;
  io.aio.context = &io;
  return zero_step(io);
}

bool Memory::zero_step(Io& io) {
  const uint64_t offset = io.offset + io.priv.a;
  const uint64_t length = std::min(kZeroStep, io.length - io.priv.a);
  if (io.op == Op::kDiscard || (io.flags & kIoMayUnmap) != 0) {
    deallocate(offset, length);
  } else {
    std::memset(data_ + offset, 0, length);
    mark_written(offset, length);
  }
  io.priv.a += length;
  if (io.priv.a == io.length) {
    io.result = 0;
    return true;
  }
  io.priv.aio->submit(io.aio);
  return false;
}

void Memory::on_next_step(AioOp& op, int32_t) {
  Io& io = *static_cast<Io*>(op.context);
  if (static_cast<Memory*>(io.priv.backend)->zero_step(io)) io.done(io);
}

void Memory::mark_written(uint64_t offset, uint64_t length) {
  const uint64_t last = (offset + length - 1) / kPage;
  for (uint64_t page = offset / kPage; page <= last;) {
    const uint64_t bit = page % 64;
    const uint64_t count = std::min(64 - bit, last - page + 1);
    const uint64_t mask = (count == 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1) << bit;
    std::atomic<uint64_t>& word = bitmap_[page / 64];
    // Rewriting is the common case and must not take the cache line from other reactors.
    if ((word.load(std::memory_order_relaxed) & mask) != mask) {
      word.fetch_or(mask, std::memory_order_relaxed);
    }
    page += count;
  }
}

void Memory::deallocate(uint64_t offset, uint64_t length) {
  const uint64_t end = offset + length;
  const uint64_t first = round_up(offset, kPage);
  const uint64_t last = end / kPage * kPage;
  if (first >= last) {
    // Covers no whole page. Zeroing an unwritten page would only allocate it, hence the checks.
    for (uint64_t at = offset; at < end;) {
      uint64_t piece = std::min(end, (at / kPage + 1) * kPage) - at;
      if (written(at / kPage)) std::memset(data_ + at, 0, piece);
      at += piece;
    }
    return;
  }
  if (offset < first && written(offset / kPage)) std::memset(data_ + offset, 0, first - offset);
  if (last < end && written(last / kPage)) std::memset(data_ + last, 0, end - last);
  for (uint64_t page = first / kPage; page < last / kPage;) {
    const uint64_t bit = page % 64;
    const uint64_t count = std::min(64 - bit, last / kPage - page);
    const uint64_t mask = (count == 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1) << bit;
    if ((bitmap_[page / 64].load(std::memory_order_relaxed) & mask) != 0) {
      bitmap_[page / 64].fetch_and(~mask, std::memory_order_relaxed);
    }
    page += count;
  }
  const auto [dropped, kept] = whole_pages(first, last, page_size());
  // Locked memory can't be dropped, but the range must read zeros.
  if (dropped == kept || madvise(data_ + dropped, kept - dropped, MADV_DONTNEED) != 0) {
    std::memset(data_ + first, 0, last - first);
    return;
  }
  std::memset(data_ + first, 0, dropped - first);
  std::memset(data_ + kept, 0, last - kept);
}

const uint8_t* Memory::borrow(uint64_t offset, uint64_t length) const {
  return within(offset, length, size_bytes()) ? data_ + offset : nullptr;
}

Result<void> Memory::set_write_cache(bool on) {
  write_cache_.store(on, std::memory_order_relaxed);
  return {};
}

Result<Extent> Memory::allocation(uint64_t offset, uint64_t limit) const {
  const uint64_t size = size_bytes();
  if (limit == 0 || offset >= size) return Error{"allocation asked beyond the end"};
  const uint64_t end = offset + std::min(limit, size - offset);
  const bool state = written(offset / kPage);
  const uint64_t same_word = state ? ~uint64_t{0} : 0;
  uint64_t page = offset / kPage + 1;
  while (page * kPage < end) {
    if (page % 64 == 0 && bitmap_[page / 64].load(std::memory_order_relaxed) == same_word) {
      page += 64;
    } else if (written(page) == state) {
      ++page;
    } else {
      break;
    }
  }
  return Extent{std::min(page * kPage, end) - offset, state};
}

Result<void> Memory::resize(uint64_t new_size) {
  if (new_size < size_bytes()) return Error{"memory: a LUN can't shrink; data would be lost"};
  if (new_size > reserved_) {
    return Error{"memory: can grow to " + format_size(reserved_) +
                 " while open; restart the gateway with the new size for more"};
  }
  Result<void> usable = make_usable(new_size);
  if (usable) size_.store(new_size, std::memory_order_release);
  return usable;
}

}  // namespace sluice::backend
