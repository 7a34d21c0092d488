#include "backend/descriptor.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "backend/atomic_write.h"
#include "backend/range.h"

namespace sluice::backend {
namespace {

// The submitting thread copies no longer transfers from the page cache: the copy takes much longer
// than the ring, and delays the reactor's other connections.
constexpr uint64_t kNowaitLimit = uint64_t{1} << 20;  // bytes
// After a miss the next attempts will probably miss too. The ring tries the page cache itself
// before it uses a worker, so a wrong guess costs little.
constexpr uint32_t kSkipAfterMiss = 16;

// <linux/fs.h> of Linux 6.11.
#ifdef RWF_ATOMIC
constexpr int kRwfAtomic = RWF_ATOMIC;
#else
constexpr int kRwfAtomic = 0x40;
#endif

// A filesystem may refuse space although some is left, which it needs for metadata.
constexpr uint64_t kScarce = uint64_t{16} << 20;  // bytes

bool is_atomic(const Io& io) { return io.op == Op::kWrite && (io.flags & kIoAtomic) != 0; }

AioOp& prepare(Io& io, AioOp::Kind kind, int fd, void (*done)(AioOp&, int32_t)) {
  io.aio = AioOp{};
  io.aio.kind = kind;
  io.aio.fd = fd;
  io.aio.done = done;
  io.aio.context = &io;
  return io.aio;
}

}  // namespace

FileDescriptor::~FileDescriptor() {
  if (fd_ >= 0) ::close(fd_);
}

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

Descriptor::Descriptor(const Spec& spec, Setup setup)
    : fd_(std::move(setup.fd)),
      info_(setup.info),
      path_(spec.path),
      block_size_(spec.block_size),
      base_(setup.base),
      atomic_segments_(setup.atomic_segments),
      buffered_(setup.buffered),
      discard_(setup.discard),
      is_device_(setup.is_device),
      sentinel_(std::move(setup.sentinel)),
      size_(setup.size),
      write_cache_(spec.write_cache) {}

// Acknowledged data must not stay in the page cache only when the gateway ends: after an orderly
// stop or the removal of a LUN all data is on the medium.
Descriptor::~Descriptor() {
  if (closed_.load(std::memory_order_relaxed)) return;
  if (write_cache() && !info_.read_only) fdatasync(fd_.get());
}

// The sentinel's mapping keeps the open file and its lock alive, so the lock is released
// explicitly. The descriptor number stays in use: a check() on another thread must not access
// another file.
void Descriptor::close(std::function<void()> closed) {
  if (!closed_.exchange(true)) {
    flock(fd_.get(), LOCK_UN);
    const FileDescriptor nothing(::open("/dev/null", O_PATH | O_CLOEXEC));
    // Without a free descriptor the file stays open until the destructor, but unlocked.
    if (nothing.valid()) dup3(nothing.get(), fd_.get(), O_CLOEXEC);
  }
  closed();
}

bool Descriptor::submit(Io& io, Aio& aio) {
  io.priv.backend = this;
  io.priv.aio = &aio;
  io.priv.seen = losses_.load(std::memory_order_acquire);
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
  } else if (cut_short_.load(std::memory_order_relaxed)) {
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
  if (may_extend(io)) return -EIO;
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
  io.priv.aio->submit(op);
  return false;
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
  if (uint32_t skip = skip_nowait_.load(std::memory_order_relaxed); skip > 0) {
    // Reactors may overwrite each other's count; it is only a guess.
    skip_nowait_.store(skip - 1, std::memory_order_relaxed);
    return false;
  }
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
  if (n < 0 && errno == EOPNOTSUPP) {
    refusal.store(true, std::memory_order_relaxed);
  } else {
    skip_nowait_.store(kSkipAfterMiss, std::memory_order_relaxed);
  }
  return false;
}

int64_t Descriptor::contract_errno(int64_t result) {
  if (result == -EDQUOT) return -ENOSPC;
  // A block that the device can't read or write; filesystems report that as EIO.
  return result == -ENODATA ? -EIO : result;
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
  const bool dsync = (op.rw_flags & RWF_DSYNC) != 0;
  const bool atomic = (op.rw_flags & kRwfAtomic) != 0;
  // A refused atomic write does not show which flag was refused, and without either flag it would
  // be weaker than requested.
  if (dsync && !atomic && result == -EOPNOTSUPP) {
    self.dsync_refused_.store(true, std::memory_order_relaxed);
    op.rw_flags = 0;
    io.priv.aio->submit(op);
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

// Whether pages of the file, possibly of other requests, did not reach the medium. The kernel
// passes on the device's error: EIO, but also ENODATA, ENOLINK, ETIMEDOUT and others.
bool Descriptor::is_loss(const Io& io, int64_t result) const {
  switch (-result) {
    case EOPNOTSUPP:
    case EINVAL:
    case EFBIG:
    case EFAULT:
    case EAGAIN:
    case EINTR:
    case ECANCELED:  // refused or cancelled before any page was examined
      return false;
    case EDQUOT:
    case ENOSPC:
      // A write without space from the filesystem has no page. If there is enough space, or none
      // was requested, the layer below had no space for a page (thin provisioning).
      return io.aio.kind != AioOp::Kind::kWritev ||
             (result == -ENOSPC && free_bytes() > io.length + kScarce);
    default:
      return result < 0;
  }
}

// The kernel reports a writeback error once per open file (errseq_t), so the first request that
// checks receives it, whichever page failed. So every request in flight fails. Data that was only
// cached may be lost too, so the next flush also reports the loss
// (gateway/decisions/local-media.md).
int64_t Descriptor::outcome(const Io& io, int64_t result) {
  if (!buffered_) return result;  // each request gets its own error
  if (is_loss(io, result)) losses_.fetch_add(1, std::memory_order_acq_rel);
  const uint64_t losses = losses_.load(std::memory_order_acquire);
  bool lost = io.priv.seen != losses;
  if (io.op == Op::kFlush) {
    lost = flushed_at_.exchange(losses, std::memory_order_acq_rel) != losses || lost;
  }
  return lost && result >= 0 ? -EIO : result;
}

// Makes earlier writes durable, then completes io with `result`.
bool Descriptor::sync(Io& io, int64_t result) {
  io.result = result;
  io.priv.aio->submit(prepare(io, AioOp::Kind::kFdatasync, fd(), &Descriptor::on_synced));
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

Result<void> Descriptor::set_write_cache(bool on) {
  write_cache_.store(on, std::memory_order_relaxed);
  return {};
}

}  // namespace sluice::backend
