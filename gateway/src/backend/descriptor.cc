#include "backend/descriptor.h"

#include <fcntl.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "backend/atomic_write.h"
#include "backend/failure.h"
#include "backend/range.h"

namespace sluice::backend {
namespace {

// The submitting thread copies no longer transfers from the page cache: the copy takes much longer
// than the ring, and delays the reactor's other connections.
constexpr uint64_t kNowaitLimit = uint64_t{1} << 20;  // bytes

// <linux/fs.h> of Linux 6.11.
#ifdef RWF_ATOMIC
constexpr int kRwfAtomic = RWF_ATOMIC;
#else
constexpr int kRwfAtomic = 0x40;
#endif

bool is_atomic(const Io& io) { return io.op == Op::kWrite && (io.flags & kIoAtomic) != 0; }

std::string name_of(dev_t device) {
  return "device " + std::to_string(major(device)) + ':' + std::to_string(minor(device));
}

AioOp& prepare(Io& io, AioOp::Kind kind, int fd, void (*done)(AioOp&, int32_t)) {
  io.aio = AioOp{};
  io.aio.kind = kind;
  io.aio.fd = fd;
  io.aio.done = done;
  io.aio.context = &io;
  return io.aio;
}

// What the refusal of a write means depends on the space that is left (writeback_losses.h).
void note_free_bytes(AioOp& op) {
  Io& io = *static_cast<Io*>(op.context);
  io.priv.a = io.priv.backend->free_bytes();
}

}  // namespace

Descriptor::Descriptor(const Spec& spec, Setup setup)
    : file_(std::move(setup.fd)),
      info_(setup.info),
      path_(spec.path),
      hangs_with_(name_of(device_of(fd()))),
      block_size_(spec.block_size),
      base_(setup.base),
      atomic_segments_(setup.atomic_segments),
      buffered_(setup.buffered),
      device_(DeviceThreads::of(device_of(fd()))),
      writes_(DeviceThreads::make_strand()),
      syncs_(DeviceThreads::make_strand()),
      medium_({.fd = fd(),
               .path = spec.path,
               .base = setup.base,
               .is_device = setup.is_device,
               .read_only = setup.info.read_only,
               .sentinel = std::move(setup.sentinel)},
              setup.size),
      eraser_({.fd = fd(),
               .threads = device_.get(),
               .strand = setup.is_device ? nullptr : writes_.get(),
               .base = setup.base,
               .block_size = spec.block_size,
               .discard = setup.discard},
              &Descriptor::on_range_step),
      write_cache_(spec.write_cache) {}

// Acknowledged data must not stay in the page cache only when the gateway ends: after an orderly
// stop or the removal of a LUN all data is on the medium.
Descriptor::~Descriptor() {
  if (must_sync_at_end()) file_.sync_at_end();
}

bool Descriptor::must_sync_at_end() const {
  return !closed_.load(std::memory_order_relaxed) && write_cache() && !info_.read_only;
}

void Descriptor::sync_cache() {
  if (must_sync_at_end()) fdatasync(fd());
}

void Descriptor::close(std::function<void()> closed) {
  if (!closed_.exchange(true)) medium_.stop();
  file_.release(std::move(closed));
}

bool Descriptor::submit(Io& io, Aio& aio) {
  io.priv.backend = this;
  io.priv.aio = &aio;
  io.priv.seen = losses_.count();
  if (io.op == Op::kFlush || io.op == Op::kCheckFence) {
    io.result = 0;
    if (io.op == Op::kCheckFence) return true;
    if (!info_.read_only) return sync(io, 0);
    judge(io);
    return true;
  }
  if (io.length == 0 || !within(io.offset, io.length, size_bytes())) {
    io.result = -EINVAL;
    return true;
  }
  if (io.op != Op::kRead) {
    io.result = refuse_write(io);
    if (io.result != 0) return true;
  } else if (medium_.is_known_cut_short()) {
    io.result = -EIO;
    return true;
  }
  const bool complete = io.op == Op::kRead || io.op == Op::kWrite ? transfer(io) : range(io);
  if (complete) judge(io);
  return complete;
}

// 0, or the errno of a write or range operation that must not begin.
int64_t Descriptor::refuse_write(const Io& io) {
  if (info_.read_only) return -EROFS;
  if (medium_.may_extend(io.offset + io.length)) return -EIO;
  return is_atomic(io) ? refuse_atomic(io, info_.atomic_write_bytes) : 0;
}

bool Descriptor::must_be_durable(const Io& io) const {
  return (io.flags & kIoFua) != 0 || !write_cache();
}

bool Descriptor::transfer(Io& io) {
  const bool write = io.op == Op::kWrite;
  io.priv.p = nullptr;
  const bool atomic = is_atomic(io);
  if ((info_.memory_alignment > 1 && misaligned(io)) || (atomic && io.iovcnt > atomic_segments_)) {
    if (!bounce(io)) return true;
  } else if (!atomic && buffered_ && try_page_cache(io)) {
    return true;
  }
  AioOp& op = prepare(io, write ? AioOp::Kind::kWritev : AioOp::Kind::kReadv, fd(),
                      &Descriptor::on_transferred);
  const bool dsync =
      write && must_be_durable(io) && !dsync_refused_.load(std::memory_order_relaxed);
  op.rw_flags = (dsync ? RWF_DSYNC : 0) | (atomic ? kRwfAtomic : 0);
  op.offset = base_ + io.offset;
  op.iov = io.priv.p ? &io.priv.iov : io.iov;
  op.iovcnt = io.priv.p ? 1 : io.iovcnt;
  op.length = io.priv.p ? io.priv.iov.iov_len : io.length;
  if (write) op.call = &note_free_bytes;
  submit_transfer(io);
  return false;
}

// The reactor's ring must not wait for a device. Direct I/O therefore goes to the ring with
// RWF_NOWAIT: the kernel refuses it with EAGAIN if the device's queue is full. The page cache has
// no such guarantee, because its read-ahead waits for the queue.
void Descriptor::submit_transfer(Io& io) {
  AioOp& op = io.aio;
  // An atomic write that is cut short is an error, and RWF_NOWAIT may cut it short.
  if (!buffered_ && (op.rw_flags & kRwfAtomic) == 0 &&
      !nowait_direct_refused_.load(std::memory_order_relaxed)) {
    op.rw_flags |= RWF_NOWAIT;
    return io.priv.aio->submit(op);
  }
  BlockingCalls::Strand* strand = nullptr;
  if (buffered_ && io.op == Op::kWrite) {
    const bool durable = (op.rw_flags & RWF_DSYNC) != 0;
    op.shares_sync = durable && !write_cache();
    strand = durable ? syncs_.get() : writes_.get();
  }
  io.priv.aio->submit_blocking(op, *device_, strand);
}

// The device may accept memory at any multiple of four bytes. But each piece must consist of whole
// blocks (Linux up to 6.17 refuses others with EINVAL), and data from the network is split
// anywhere.
bool Descriptor::misaligned(const Io& io) const {
  uintptr_t bases = 0;
  size_t lengths = 0;
  for (uint32_t i = 0; i < io.iovcnt; ++i) {
    bases |= reinterpret_cast<uintptr_t>(io.iov[i].iov_base);
    lengths |= io.iov[i].iov_len;
  }
  return (bases & (info_.memory_alignment - 1)) != 0 || lengths % block_size_ != 0;
}

// Transfers as much as one bounce buffer holds; the result is then short and the submitter
// continues.
bool Descriptor::bounce(Io& io) {
  Bounce* buffer = bounces_.take(io.length);
  if (!buffer) {
    io.result = -ENOMEM;
    return false;
  }
  io.priv.p = buffer;
  io.priv.iov = {buffer->data, std::min<uint64_t>(io.length, buffer->capacity)};
  if (io.op == Op::kWrite) gather(io.iov, io.priv.iov.iov_len, buffer->data);
  return true;
}

void Descriptor::unbounce(Io& io, int64_t transferred) {
  auto* buffer = static_cast<Bounce*>(io.priv.p);
  if (io.op == Op::kRead && transferred > 0) {
    scatter(buffer->data, io.iov, static_cast<uint64_t>(transferred));
  }
  bounces_.give_back(buffer);
  io.priv.p = nullptr;
}

// Transfers from or into the page cache, if that needs no wait. True: io is complete.
bool Descriptor::try_page_cache(Io& io) {
  if (io.length > kNowaitLimit) return false;
  const bool write = io.op == Op::kWrite;
  // Durability always waits for a device.
  if (write && must_be_durable(io)) return false;
  std::atomic<bool>& refusal = write ? nowait_writes_refused_ : nowait_reads_refused_;
  if (refusal.load(std::memory_order_relaxed)) return false;
  const auto offset = static_cast<off_t>(base_ + io.offset);
  const int count = static_cast<int>(io.iovcnt);
  const ssize_t n = write ? pwritev2(fd(), io.iov, count, offset, RWF_NOWAIT)
                          : preadv2(fd(), io.iov, count, offset, RWF_NOWAIT);
  if (n == static_cast<ssize_t>(io.length)) {
    // The cache was switched off meanwhile, and its flush may have missed this write: writes again,
    // durably.
    if (write && must_be_durable(io)) return false;
    io.result = n;
    return true;
  }
  if (n < 0 && errno == EOPNOTSUPP) refusal.store(true, std::memory_order_relaxed);
  return false;
}

// Converts the kernel's result into the contract's: whole blocks, never 0.
int64_t Descriptor::settle(const Io& io, int64_t result) const {
  if (result < 0) return contract_errno(result);
  const int64_t whole = result - result % block_size_;
  // No bytes where there should be some: the file shrank, or the device vanished.
  if (whole == 0) return -EIO;
  return std::min(whole, static_cast<int64_t>(io.length));
}

void Descriptor::on_transferred(AioOp& op, int32_t result) {
  Io& io = *static_cast<Io*>(op.context);
  auto& self = static_cast<Descriptor&>(*io.priv.backend);
  if ((op.rw_flags & RWF_NOWAIT) != 0 && (result == -EAGAIN || result == -EOPNOTSUPP)) {
    if (result == -EOPNOTSUPP) self.nowait_direct_refused_.store(true, std::memory_order_relaxed);
    op.rw_flags &= ~RWF_NOWAIT;
    io.priv.aio->submit_blocking(op, *self.device_, nullptr);
    return;
  }
  const bool dsync = (op.rw_flags & RWF_DSYNC) != 0;
  const bool atomic = (op.rw_flags & kRwfAtomic) != 0;
  // A refused atomic write does not show which flag was refused, and without either flag it would
  // be weaker than requested.
  if (dsync && !atomic && result == -EOPNOTSUPP) {
    self.dsync_refused_.store(true, std::memory_order_relaxed);
    op.rw_flags = 0;
    self.submit_transfer(io);
    return;
  }
  if (dsync) result = static_cast<int32_t>(self.outcome(io, result));
  const bool torn = atomic && result >= 0 && static_cast<uint64_t>(result) != io.length;
  io.result = torn ? -EIO : self.settle(io, result);
  if (io.priv.p) self.unbounce(io, io.result);
  if (io.op == Op::kWrite && io.result > 0 && !dsync && self.must_be_durable(io)) {
    self.sync(io, io.result);
    return;
  }
  self.judge(io);
  io.done(io);
}

int64_t Descriptor::outcome(const Io& io, int64_t result) {
  if (!buffered_) return result;  // of direct I/O, each request gets its own error
  const bool refused = result == -ENOSPC && io.aio.kind == AioOp::Kind::kWritev;
  return losses_.outcome(io, result, refused ? std::optional(io.priv.a) : std::nullopt);
}

// Makes earlier writes durable, then completes io with `result`.
bool Descriptor::sync(Io& io, int64_t result) {
  io.result = result;
  io.priv.aio->submit_blocking(prepare(io, AioOp::Kind::kFdatasync, fd(), &Descriptor::on_synced),
                               *device_, buffered_ ? syncs_.get() : nullptr);
  return false;
}

void Descriptor::on_synced(AioOp& op, int32_t result) {
  Io& io = *static_cast<Io*>(op.context);
  auto& self = static_cast<Descriptor&>(*io.priv.backend);
  const int64_t outcome = self.outcome(io, result);
  if (outcome < 0) io.result = contract_errno(outcome);
  self.judge(io);
  io.done(io);
}

// True: io is complete.
bool Descriptor::range(Io& io) {
  if (io.op == Op::kDiscard && info_.discard_granularity == 0) {
    io.result = -EOPNOTSUPP;
    return true;
  }
  return end_range(io, eraser_.begin(io));
}

// True: io is complete.
bool Descriptor::end_range(Io& io, RangeEraser::Progress progress) {
  if (progress == RangeEraser::Progress::kSubmitted) return false;
  if (progress == RangeEraser::Progress::kFailed) return true;
  if (must_be_durable(io)) return sync(io, 0);
  io.result = 0;
  return true;
}

void Descriptor::on_range_step(AioOp& op, int32_t result) {
  Io& io = *static_cast<Io*>(op.context);
  auto& self = static_cast<Descriptor&>(*io.priv.backend);
  if (!self.end_range(io, self.eraser_.advance(io, result))) return;
  self.judge(io);
  io.done(io);
}

void Descriptor::judge(Io& io) {
  if (medium_.fails(io.result)) io.result = -EIO;
}

Result<void> Descriptor::set_write_cache(bool on) {
  write_cache_.store(on, std::memory_order_relaxed);
  return {};
}

}  // namespace sluice::backend
