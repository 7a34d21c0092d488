// kDiscard and kWriteZeroes through a file descriptor. In Io::priv, a is the number of completed
// bytes and b the RangeMethod in use.
#include <linux/falloc.h>
#include <sys/uio.h>

#include <algorithm>

#include "backend/descriptor.h"
#include "backend/zeros.h"

namespace sluice::backend {
namespace {

// Zeros are written in steps of this size.
constexpr uint64_t kWriteStep = uint64_t{1} << 20;  // bytes
static_assert(kWriteStep <= kZerosSize);

bool is_refusal(int64_t result) {
  // Some drivers and older filesystems answer EINVAL to an unknown fallocate mode.
  return result == -EOPNOTSUPP || result == -ENOSYS || result == -EINVAL;
}

int fallocate_mode(RangeMethod method) {
  return FALLOC_FL_KEEP_SIZE |
         (method == RangeMethod::kPunchHole ? FALLOC_FL_PUNCH_HOLE : FALLOC_FL_ZERO_RANGE);
}

}  // namespace

bool Descriptor::range(Io& io) {
  RangeMethod method = discard_;
  if (io.op == Op::kDiscard) {
    if (info_.discard_granularity == 0) {
      io.result = -EOPNOTSUPP;
      return true;
    }
  } else {
    method = (io.flags & kIoMayUnmap) != 0 ? RangeMethod::kPunchHole : RangeMethod::kZeroRange;
  }
  io.priv.a = 0;
  io.priv.b = static_cast<uint64_t>(method);
  return range_step(io);
}

// Starts the next step. True: io is complete.
bool Descriptor::range_step(Io& io) {
  auto method = static_cast<RangeMethod>(io.priv.b);
  while (method < RangeMethod::kWriteZeros && refused(method)) {
    method = static_cast<RangeMethod>(static_cast<unsigned>(method) + 1);
  }
  io.priv.b = static_cast<uint64_t>(method);
  const uint64_t offset = base_ + io.offset + io.priv.a;
  uint64_t length = io.length - io.priv.a;
  AioOp& op = io.aio = AioOp{};
  op.fd = fd();
  op.offset = offset;
  op.done = &Descriptor::on_range_step;
  op.context = &io;
  if (method == RangeMethod::kWriteZeros) {
    length = std::min(length, kWriteStep);
    // Never written to: iovec has no const form.
    io.priv.iov = {const_cast<uint8_t*>(zeros()), length};
    op.kind = AioOp::Kind::kWritev;
    op.iov = &io.priv.iov;
    op.iovcnt = 1;
  } else if (method == RangeMethod::kDeviceDiscard) {
    op.kind = AioOp::Kind::kDiscard;
    if (refused(method)) {
      op.length = length;
      discarder_.submit(op, *io.priv.aio);
      return false;
    }
  } else {
    op.kind = AioOp::Kind::kFallocate;
    op.mode = fallocate_mode(method);
  }
  op.length = length;
  io.priv.aio->submit(op);
  return false;
}

// Processes the result of a step. True: io is complete.
bool Descriptor::range_advance(Io& io, int64_t result) {
  const auto method = static_cast<RangeMethod>(io.priv.b);
  if (result == -EINTR) return range_step(io);
  // The ring can't discard before Linux 6.12, a thread can (discarder.h).
  const bool replaced = method < RangeMethod::kWriteZeros || io.aio.kind == AioOp::Kind::kDiscard;
  if (replaced && is_refusal(result)) {
    refuse(method);
    return range_step(io);
  }
  if (result < 0) {
    io.result = contract_errno(result);
    return true;
  }
  if (method == RangeMethod::kWriteZeros) {
    const int64_t written = result - result % block_size_;
    if (written == 0) {
      io.result = -EIO;
      return true;
    }
    io.priv.a += static_cast<uint64_t>(written);
    if (io.priv.a < io.length) return range_step(io);
  }
  if (must_be_durable(io)) return sync(io, 0);
  io.result = 0;
  return true;
}

void Descriptor::on_range_step(AioOp& op, int32_t result) {
  Io& io = *static_cast<Io*>(op.context);
  auto& self = static_cast<Descriptor&>(*io.priv.backend);
  if (!self.range_advance(io, result)) return;
  self.judge(io);
  io.done(io);
}

}  // namespace sluice::backend
